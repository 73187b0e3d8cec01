"""The one thing the packages share is the dataset: what ``aegen`` writes, ``trainer`` plays, to the same states."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from aegen.core import escape
from aegen.dataset import contract as ours
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.experts.tags import TaggingGame
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from trainer.core import text as trainer_text
from trainer.core.errors import BadData
from trainer.data.dataset import Dataset
from trainer.game.baselines import rules_of
from trainer.game.environment import Environment, Verdict
from trainer.sweeps.cell import describe

CASES = {
    "aor": ("aor", None, None),
    "aes": ("aes", None, None),
    "aes span2": ("aes", "span", "span2"),
    "aes span3": ("aes", "span", "span3"),
    "aes levenshtein": ("aes", "levenshtein", "edit"),
    "aec": ("aec", None, None),
    "aec lcs": ("aec", "lcs", "edit"),
    "aor edit": ("aor", "lcs", "edit"),
    "text": ("text", None, None),
    "text lcs": ("text", "lcs", "edit"),
}


@pytest.fixture(scope="module", params=CASES)
def dataset(request, tmp_path_factory):
    task, metric, design = CASES[request.param]
    path = tmp_path_factory.mktemp("contract")
    folder = Folder(path / "data")
    augmentation = Augmentation(max_edits=4, max_states=20)
    if task == "text":
        rng = random.Random(1)
        words = ["the", "POS_3", "DONE", "a b", "\\s", "é", "INSERT", "x\ty"]
        pairs = [["_".join(rng.choices(words, k=rng.randint(1, 3))) for _ in range(2)] for _ in range(60)]
        pq.write_table(pa.table({"source": [p[0] for p in pairs], "target": [p[1] for p in pairs]}), path / "a.parquet")
        pipeline.import_pairs(Import((path / "a.parquet",), tokens="chars"), folder)
        pipeline.add_expert(folder, Expert.of(task, metric, design), Local())
        pipeline.add_augmented(folder, augmentation, Local())
    else:
        pipeline.build(
            Spec(task, 10, 4, 100), folder, Local(), expert=Expert.of(task, metric, design), augmentation=augmentation
        )
    return folder


def both(folder, config, split):
    """The same rules on both sides: the environment in words, and the one on id tensors."""
    theirs = Dataset(folder.path)
    contract = theirs.contract(theirs.footers(config, split))
    words = ours.read_contract(folder, folder.manifest(), config)
    return words, contract


def play(contract, rows):
    """One action each, on tensors; states and verdicts in words."""
    states = torch.zeros(len(rows), contract.max_state, dtype=torch.long)
    for row, (state, _) in enumerate(rows):
        states[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state], dtype=torch.long)
    lengths = torch.tensor([len(state) for state, _ in rows])
    actions = torch.tensor([[contract.action_ids[token] for token in action] for _, action in rows])
    after, lengths, verdicts = Environment(contract).step(states, lengths, actions)
    names = ("", *contract.state_tokens)
    found = [tuple(names[i] for i in row[:n]) for row, n in zip(after.tolist(), lengths.tolist(), strict=True)]
    return list(zip(found, [Verdict(verdict).reason for verdict in verdicts.tolist()], strict=True))


def expected(environment, rows):
    """The same in words, by aegen's environment."""
    outcomes = [environment.step(state, action) for state, action in rows]
    return [(o.state, "done" if o.done else str(o.refusal) if o.refusal else "applied") for o in outcomes]


@pytest.mark.parametrize("config", ["expert", "augmented"])
def test_every_step_leads_to_the_next_state_on_both_sides(dataset, config):
    words, contract = both(dataset, config, "train")
    table = pa.concat_tables(pq.read_table(dataset / name) for name in dataset.manifest().shards(config, "train"))
    rows = [(escape.split_state(row["state"]), tuple(row["action"])) for row in table.to_pylist()]
    played = play(contract, rows)
    assert played == expected(words.environment, rows)
    for (after, verdict), (state, _) in zip(played[:-1], rows[1:], strict=True):
        assert verdict == "done" or after == state


def test_random_actions_valid_or_not_have_the_same_outcome(dataset):
    words, contract = both(dataset, "augmented", "train")
    rng = random.Random(7)
    table = pq.read_table(dataset / dataset.manifest().shards("augmented", "train")[0])
    states = [escape.split_state(state) for state in rng.choices(table["state"].to_pylist(), k=4000)]
    actions = [tuple(rng.choices(contract.actions, k=contract.action_length)) for _ in states]
    rows = list(zip(states, actions, strict=True))
    played = play(contract, rows)
    assert played == expected(words.environment.__class__(words.design, words.writable, contract.max_state), rows)
    assert len({verdict for _, verdict in played}) >= 3


def test_both_sides_escape_alike():
    rng = random.Random(3)
    for _ in range(2000):
        text = "".join(
            rng.choices(
                ["\\", " ", "s", "POS_3", "DONE", "\t", "\n", "é", "\u2028", "u0020", "e", "BOS"], k=rng.randint(0, 4)
            )
        )
        for kind in ("words", "chars"):
            assert tuple(trainer_text.split(text, kind)) == tuple(escape.tokenize(text, kind))
            assert trainer_text.join(trainer_text.split(text, kind), kind) == text


@pytest.mark.parametrize("task,n", [("aor", 10), ("aec", 10)])
def test_rounds_of_tags_have_the_same_outcome_on_both_sides(task, n, tmp_path):
    folder = Folder(tmp_path / task)
    pipeline.generate(Spec(task, n, 4, 100), folder, Local())
    pipeline.add_tags(folder, "levenshtein", Local())
    words, contract = both(folder, "tags", "train")
    table = pq.read_table(folder / folder.manifest().shards("tags", "train")[0])
    rows = [(escape.split_state(row["state"]), tuple(row["action"])) for row in table.to_pylist()]
    rng = random.Random(2)
    rows += [(state, tuple(rng.choices(contract.actions, k=len(state) + 1))) for state, _ in rng.choices(rows, k=500)]
    keep = contract.action_ids["KEEP"]
    states = torch.zeros(len(rows), contract.max_state, dtype=torch.long)
    actions = torch.full((len(rows), contract.action_length), keep)
    for row, (state, tags) in enumerate(rows):
        states[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state])
        actions[row, : len(tags)] = torch.tensor([contract.action_ids[tag] for tag in tags])
    lengths = torch.tensor([len(state) for state, _ in rows])
    after, lengths, verdicts = rules_of(contract).step(states, lengths, actions)
    names = ("", *contract.state_tokens)
    found = [tuple(names[i] for i in row[:n]) for row, n in zip(after.tolist(), lengths.tolist(), strict=True)]
    played = list(zip(found, [Verdict(verdict).reason for verdict in verdicts.tolist()], strict=True))
    assert played == expected(TaggingGame(words.writable, contract.max_state), rows)
    assert len({verdict for _, verdict in played}) >= 3


def test_a_sweep_learns_what_a_dataset_is(dataset):
    blank = dict.fromkeys(("task", "metric", "design"), "")
    found = describe(str(dataset.path), blank)
    spec = dataset.manifest().spec
    assert (found["metric"], found["design"]) == (spec["expert"]["metric"], spec["expert"]["design"])
    assert found["size"] == ({"n": 10, "l": 4, "d": 100} if found["task"] != "text" else {})
    with pytest.raises(BadData, match="its task is"):
        describe(str(dataset.path), blank | {"task": "other"})
