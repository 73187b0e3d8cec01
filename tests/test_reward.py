"""The reward of both packages: aegen's on tokens, one state at a time, and trainer's on batches of ids."""

from __future__ import annotations

import random

import pytest
import torch
from Levenshtein import distance

from aegen.arithmetic.goals import goal_of, reward, share
from aegen.core.description import Goal
from aegen.core.format import split_state
from aegen.engines.local import Local
from aegen.pairs.generate import batches, plan
from aegen.pairs.spec import Spec
from trainer.core.description import Goal as SameGoal
from trainer.core.records import convert, plain
from trainer.data.contract import Contract
from trainer.game.accuracy import equation_holds
from trainer.game.reward import Reward, distances

TASKS = ("aor", "aes", "aec", "text")
SYMBOLS = ("+", "-", "*", "/", "=", "(", ")")
HUGE = ("0", "07", "9" * 18, "9" * 19, "9" * 999)  # integers that fit 64 bits, do not, or are strange


def pairs_of(task):
    if task == "text":
        rng = random.Random(3)
        words = [tuple(rng.choices(("a", "b", "c", "+", "2"), k=rng.randint(0, 6))) for _ in range(400)]
        return list(zip(words[::2], words[1::2], strict=True))
    spec = Spec(task, 10, 5, 400)
    rows = [row for batch in batches(spec, plan(spec, Local()), "pairs", "train") for row in batch.to_pylist()]
    return [(split_state(row["source"]), split_state(row["target"])) for row in rows]


def contract_of(tokens):
    return Contract(
        config="expert", split="train", task="any", tokens="words", arithmetic=True, spec={}, metric="m", backend={},
        design="edit", slots=("operation", "position", "token"), state_tokens=tuple(sorted(tokens)), action_tokens=(),
        writable=(), max_state=64, action_length=3, max_steps=9,
    )  # fmt: skip


def random_states(rng, pairs, vocabulary, count):
    """States near a win and far from it: the pair's own, some edits away, operators exchanged, and noise."""
    for _ in range(count):
        source, target = rng.choice(pairs)
        state = list(rng.choice((source, target, target, target)))
        kind = rng.random()
        if kind < 0.2:
            state = [rng.choice("+-*/") if token in "+-*/" and rng.random() < 0.4 else token for token in state]
        elif kind < 0.8:
            for _ in range(rng.randint(0, 3)):
                place = rng.randint(0, len(state))
                state[place : place + rng.randint(0, 1)] = rng.choices(vocabulary, k=rng.randint(0, 1))
        elif kind < 0.9:
            state = rng.choices(vocabulary, k=rng.randint(0, 9))
        elif len(state) > 2:  # numbers that are too large for 64 bits, on both sides
            large = rng.choice(HUGE)
            state = [large, rng.choice("*-+/"), rng.choice(state), *state[2:-2], "=", rng.choice((large, state[-1]))]
        yield source, tuple(state[:64]), target


def compare(task, count, seed):
    """How often both rewards were the same, and how often a state won: with a target, and without."""
    rng, pairs = random.Random(seed), pairs_of(task)
    vocabulary = sorted({token for pair in pairs for text in pair for token in text} | {*SYMBOLS, "12", *HUGE})
    goal, wins = goal_of(task, 3, 5), [0, 0]
    batched = Reward(convert(plain(goal), SameGoal, "test"), contract_of(vocabulary))
    for first in range(0, count, 10_000):
        rows = list(random_states(rng, pairs, vocabulary, min(10_000, count - first)))
        sources, states, targets = zip(*rows, strict=True)
        ids, lengths = batched.encode(states)
        for known in (True, False):
            if task == "text" and not known:
                continue
            wanted = batched.wanted(sources, targets if known else None)
            found = batched(ids, lengths, wanted).tolist()
            if task == "text":
                shares = [share(state, target) for state, target in zip(states, targets, strict=True)]
                assert batched.share(ids, lengths, wanted).tolist() == shares
                assert found == [part == 1 for part in shares]
            for row, (source, state, target) in enumerate(rows):
                paid = reward(goal, source, state, target if known else None)
                assert found[row] == bool(paid), (known, source, state, target)
                if paid and known and task != "text":  # a reward is never paid for what the accuracy calls wrong
                    assert equation_holds(state, target)
            wins[known] += sum(found)
    return wins


@pytest.mark.parametrize("task", TASKS)
def test_both_pay_the_same(task):
    lost, won = 1000, compare(task, 3000, 0)
    assert 200 < won[True] < 3000 - lost  # states of both kinds were seen
    assert (won[False] > 200) == (task != "text")


@pytest.mark.faults
@pytest.mark.parametrize("task", TASKS)
def test_both_pay_the_same_in_a_million_states(task):
    assert min(compare(task, 250_000, 1)[task == "text" :]) > 10_000


@pytest.mark.parametrize("task", TASKS)
def test_every_target_wins(task):
    goal = goal_of(task, 3, 5)
    for source, target in pairs_of(task):
        assert reward(goal, source, target, target) == 1
        assert reward(goal, source, target) == (None if task == "text" else 1)


@pytest.mark.parametrize(
    "task, source, state, wins",
    [
        ("aor", "2 6 4", "- 2 + 6 = 4", True),
        ("aor", "2 6 4", "2 + 4 = 6", False),  # another order
        ("aor", "2 6 4", "6 - 2 = 4", False),
        ("aor", "2 6 8 8", "2 + 6 = 8", False),  # one of them left out
        ("aor", "4 2 2", "4 / / 2 = 2", False),
        ("aor", "4 2 2", "4 / 2 = 2", True),
        ("aor", "2 3", "2 3", False),
        ("aor", "7 2 3", "7 / 2 = 3", False),  # exactly, not rounded
        ("aes", "( 2 + 3 ) + 2 = 7", "5 + 2 = 7", True),
        ("aes", "( 2 + 3 ) + 2 = 7", "5 + 2 = ( 7 )", False),  # nothing in parentheses is left
        ("aes", "( 2 + 3 ) + 2 = 7", "( 5 ) + 2 = 7", False),
        ("aes", "( 2 + 3 ) + 2 = 7", "3 + 4 = 7", False),  # true, of other numbers
        ("aes", "( 2 + 3 ) + 2 = 7", "( 2 + 3 ) + 2 = 7", False),
        ("aes", "( 2 - 3 ) + 2 = 7", "1 + 2 = 3", False),  # a value that no token has: nothing can win
        ("aes", "( 2 + 3 + 2 = 7", "2 + 3 + 2 = 7", False),
        ("aes", "( ( 2 + 3 ) * 2 ) - 3 = 7", "10 - 3 = 7", True),
        ("aec", "2 + 3 + 4 + 5 = 15", "2 + 3 + 4 + 6 = 15", True),
        ("aec", "2 + 3 + 4 + 5 = 15", "2 + 3 + 10 = 15", False),  # four integers
        ("aec", "2 + 3 + 4 + 5 = 15", "3 * 4 * 5 / 10 = 6", False),  # too far away
        ("aec", "2 + 3 + 4 + 5 = 14", "2 + 3 + 4 + 5 = 14", True),
    ],
)
def test_what_wins_without_a_target(task, source, state, wins):
    assert reward(goal_of(task, 3, 5), split_state(source), split_state(state)) == wins
    batched = Reward(
        convert(plain(goal_of(task, 3, 5)), SameGoal, "test"), contract_of({*(source + " " + state).split()})
    )
    ids, lengths = batched.encode([split_state(state)])
    assert batched(ids, lengths, batched.wanted([split_state(source)])).tolist() == [wins]


def test_a_repair_that_wins_without_a_target_may_lose_with_one():
    source, state, target = (split_state(text) for text in ("2 + 2 = 5", "2 + 3 = 5", "3 + 2 = 5"))
    goal = goal_of("aec", 3, 3)
    assert (reward(goal, source, state), reward(goal, source, state, target)) == (1, 0)


def test_a_goal_says_what_is_kept_or_is_refused():
    for values in ({"wins": "equation"}, {"wins": "target", "keeps": "integers"}):
        with pytest.raises(Exception, match="keeps: expected"):
            convert(values, SameGoal, "shard")
    assert plain(Goal("target")) == plain(SameGoal("target"))


def test_distances_are_those_of_the_library():
    rng = random.Random(0)
    rows = [[rng.choices((1, 2, 3), k=rng.randint(0, 7)) for _ in range(2)] for _ in range(500)]
    lengths = torch.tensor([[len(side) for side in row] for row in rows])
    padded = torch.tensor([[side + [0] * (7 - len(side)) for side in row] for row in rows])
    found = distances(padded[:, 0], lengths[:, 0], padded[:, 1], lengths[:, 1])
    assert found.tolist() == [distance(*row) for row in rows]
