"""Relatives: which words look alike, and that an editor learns to write them."""

import random
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.game.test_environment import contract
from tests.trainer.reference import write_dataset
from tests.trainer.runs import QUIET
from trainer.agents.agent import Agent
from trainer.data.contract import OpenContract
from trainer.models.editor.reading import relatives
from trainer.models.editor.reading.relatives import LEAST, MOST, Lookalikes, Relatives, parts
from trainer.training.fit import train_run
from trainer.training.presets import preset

WORDS = ("because", "become", "house", "government", "governor", "Because", "the", "there", "a", "")


@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=40))
def test_the_nearest_words_are_those_that_share_most(word, words):
    near, alike = Lookalikes(words).nearest(word)
    mine = parts(word)
    shares = [2 * len(mine & parts(other)) / (len(mine) + len(parts(other))) for other in words]
    expected = sorted((-share, at) for at, share in enumerate(shares) if share >= LEAST and words[at] != word)[:MOST]
    assert near.tolist() == [at for _, at in expected]
    assert alike.tolist() == pytest.approx([-share for share, _ in expected])


def test_only_the_scores_of_relatives_change():
    torch.manual_seed(0)
    known = contract("edit", OpenContract)
    word = known.word_id("becouse")
    model = Relatives(known, WORDS, 3, 4)
    scores, asked, replaced = torch.zeros(2, 3 + len(WORDS)), torch.randn(2, 4), torch.tensor([word, 0])
    changed = model(scores, asked, replaced)
    assert not changed[1].any()  # no word is replaced
    best = [WORDS[at - 3] for at in changed[0].argsort(descending=True, stable=True).tolist() if changed[0, at] > 0]
    assert best[0].lower() == best[1].lower() == "because" and best[2:] == ["become", "house"]


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(relatives, "REMEMBERED", 3)
    model = Relatives(contract("edit", OpenContract), WORDS, 0, 4)
    first = model.of("becouse").copy()
    for number in range(10):
        model.of(f"x{number}")
    assert len(model.known) <= 3 and (model.of("becouse") == first).all()


def misspelt(word, rng):
    """One letter twice, or left out, or two in the other order."""
    at = rng.randrange(1, len(word) - 1)
    twice, without = word[:at] + word[at] + word[at:], word[:at] + word[at + 1 :]
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return rng.choice([twice, without, swapped])


def test_an_editor_mends_misspellings_that_it_has_not_seen(tmp_path, monkeypatch):
    """Each of 150 words is shown once, misspelt in one way; the test has another way."""
    rng, found = random.Random(0), {"train": [], "validation": [], "test": []}
    syllables = ["".join(two) for two in product("bdfgklmnprst", "aeiou")]
    for _ in range(150):
        word = "".join(rng.choices(syllables, k=4))
        for pairs in found.values():
            pairs.append((("a", misspelt(word, rng), "b"), ("a", word, "b")))
    data = write_dataset(tmp_path / "data", "edit", found, arithmetic=False)
    small = {"width": 32, "layers": 1, "learning_rate": 5e-3, "batch": 16, "select": "accuracy"}

    def right(name):
        train_run(data, preset("cpu", model="editor", updates=150, **small), tmp_path / name, **QUIET)
        return Agent.from_pretrained(tmp_path / name).evaluate(split="test")["sequence_accuracy"]

    having = right("having")
    monkeypatch.setattr(relatives, "LEAST", 2.0)
    assert having > 40 and right("lacking") < 10
