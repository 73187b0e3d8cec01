from __future__ import annotations

import random

import pytest
import torch
from Levenshtein import distance

from trainer.data.contract import Contract
from trainer.game.correction import NEVER, Scripts, expert_games
from trainer.game.rules import rules_of

SLOTS = {
    "insert": ("position", "token"),
    "edit": ("operation", "position", "token"),
    "span": ("left", "right", "token"),
}


def contract_of(design, operations=("DELETE", "INSERT", "REPLACE"), writable=("a", "b", "c")):
    slots = SLOTS[design]
    return Contract(
        config="expert", split="train", task="text", tokens="words", arithmetic=False, spec={}, metric="m", backend={},
        design=design, slots=slots, state_tokens=("a", "b", "c"), writable=writable, max_state=9,
        action_tokens=tuple(sorted({*operations, *writable})) if design == "edit" else writable,
        action_length=len(slots), max_steps=9,
    )  # fmt: skip


def padded(texts):
    ids = [["abc".index(letter) + 1 for letter in text] for text in texts]
    return torch.tensor([row + [0] * (9 - len(row)) for row in ids]), torch.tensor([len(row) for row in ids])


def random_texts(count, seed):
    rng = random.Random(seed)
    return ["".join(rng.choices("abc", k=rng.randint(0, 6))) for _ in range(count)]


def play(contract, starts, goals):
    """What the expert's games lead to, and in how many edits, by their start."""
    games = expert_games(contract, rules_of(contract), padded(starts)[0], [tuple(goal) for goal in goals])
    steps = (games.starts[1:] - games.starts[:-1] - 1).tolist()
    words = [
        "".join(" abc"[token] for token in row if token) for row in torch.cat((games.sources, games.ends)).tolist()
    ]
    return {(words[game], words[len(games) + game]): edits for game, edits in enumerate(steps)}


def test_scripts_of_all_edits_are_the_shortest():
    starts, goals = random_texts(400, 0), random_texts(400, 1)
    wanted = {pair: distance(*pair) for pair in zip(starts, goals, strict=True)}
    assert play(contract_of("edit"), starts, goals) == wanted


def test_without_replacements_a_script_deletes_and_inserts():
    starts, goals = random_texts(200, 0), random_texts(200, 1)
    found = play(contract_of("edit", ("DELETE", "INSERT")), starts, goals)
    wanted = {pair: distance(*pair, weights=(1, 1, 2)) for pair in zip(starts, goals, strict=True)}
    assert found == {pair: edits for pair, edits in wanted.items() if edits < 9}  # no longer than a game


@pytest.mark.parametrize("start, goal, edits", [("ac", "abc", 1), ("", "ab", 2), ("ca", "abc", None), ("ab", "ab", 0)])
def test_insertions_lead_to_what_contains_the_state(start, goal, edits):
    assert play(contract_of("insert"), [start], [goal]) == ({} if edits is None else {(start, goal): edits})


@pytest.mark.parametrize(
    "start, goal, edits",
    [("abbbc", "acc", 1), ("abab", "cc", 2), ("a", "abc", None), ("abc", "abc", 0), ("abc", "c", 1)],
)
def test_spans_become_one_token(start, goal, edits):
    assert play(contract_of("span"), [start], [goal]) == ({} if edits is None else {(start, goal): edits})


def test_the_leftmost_edit_comes_first_and_what_may_not_be_written_has_no_answer():
    contract = contract_of("insert", writable=("a",))
    states, lengths = padded(["bc"])
    for goal, action, edits in (("abac", ["POS_0", "a"], 2), ("bcb", None, NEVER)):
        goals, sizes = padded([goal])
        actions, needed = Scripts.find(contract, states, lengths, goals, sizes).first_actions()
        assert needed.tolist() == [edits]
        assert action is None or [contract.actions[token] for token in actions[0].tolist()] == action
