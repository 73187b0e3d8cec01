"""One action for each state of a pair, whatever the metric, the count of TA and the sample."""

from __future__ import annotations

import zlib
from itertools import groupby

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aegen.columns.ragged import Ragged, slice_hashes
from aegen.core.actions import DESIGNS
from aegen.core.edits import Splice
from aegen.core.environment import Environment
from aegen.core.format import split_state
from aegen.experts.augment import Augmentation
from aegen.experts.custom import Custom
from aegen.experts.policy import decide, policy
from aegen.experts.trajectory import Summary
from tests.aegen.experts.test_trajectory import EDIT, augmented_steps, columns, expert_steps, plain_rows, rows
from tests.aegen.strategies import LCS, LEVENSHTEIN, SPAN, spans

few = st.lists(st.sampled_from("ab"), max_size=6).map(tuple)  # so that almost everything ties
fewer = few.map(lambda row: row[:4])
tied = st.lists(st.tuples(few, few), min_size=1, max_size=4)
SAMPLED = {"max_edits": 2, "max_states": 6}


def moody(state, goal):
    """A user's metric: by the state it finds few edits, or many, some of which may change nothing."""
    mood = zlib.crc32(" ".join(state).encode()) % 3
    if mood == 0:
        return LEVENSHTEIN.splices(state, goal)
    both = min(len(state), len(goal)) if mood == 1 else 0
    surplus = [Splice(both, both + 1, ())] * (len(state) - both)
    return [
        *(Splice(k, k + 1, (token,)) for k, token in enumerate(goal[:both])),
        *surplus,
        *(Splice(k, k, (goal[k],)) for k in range(both, len(goal))),
    ]


MOODY = Custom("moody", moody, {})


def check_policy(many, metric, design, options):
    """One action for each state in all trajectories; each of them reaches its goal, by a shortest script."""
    pairs, summary = columns(many), Summary()
    made = {
        algorithm: rows(augmented_steps(pairs, metric, design, Augmentation(algorithm, **options), summary))
        for algorithm in ("paper", "released")
    }
    expert = [] if metric is MOODY else rows(expert_steps(pairs, metric, design))
    actions = {}
    for pair, _, _, state, action in (*expert, *made["paper"], *made["released"]):
        assert actions.setdefault((pair, state), action) == action
    # A circle of the user's own script is in no trajectory, but the authors' code starts in it.
    assert metric is MOODY or actions.keys() == {(row[0], row[3]) for row in made["paper"]}
    game = Environment(design, frozenset(pairs.alphabet), 99)
    for steps in made.values():
        for (pair, origin), several in groupby(steps, key=lambda row: row[:2]):
            (source, goal), taken = many[pair], list(several)
            begin = state = split_state(taken[0][3])
            assert origin or begin == source
            for number, step in enumerate(taken):
                assert (number, state) == (step[2], split_state(step[3]))
                outcome = game.step(state, tuple(step[4]))
                assert not outcome.refusal and outcome.done == (step is taken[-1])
                state = outcome.state
            assert state == goal
            assert metric is MOODY or len(taken) == len(metric.splices(begin, goal)) + 1
    everything = made["paper"] + made["released"]
    assert summary.max_steps == max(row[2] for row in everything) + 1
    assert summary.max_state == max(len(split_state(row[3])) for row in everything)
    assert sum(summary.kinds.values()) == sum(row[4] != list(design.done) for row in everything)


@pytest.mark.parametrize("options", [{}, SAMPLED], ids=["all", "sampled"])
@pytest.mark.parametrize("metric", [LEVENSHTEIN, LCS, MOODY], ids=["levenshtein", "lcs", "moody"])
@given(many=tied)
@example(many=[((), tuple("abb"))])  # two choices of edits lead to one state
@example(many=[(tuple("ab"), tuple("dc"))])  # none do, but the user's metric finds fewer edits on the way
@example(many=[(tuple("aa"), tuple("aa"))] * 2)  # all states are one, and the same in the next pair
def test_a_state_of_a_pair_has_one_action(metric, options, many):
    check_policy(many, metric, EDIT, options)


@pytest.mark.parametrize("options", [{}, SAMPLED], ids=["all", "sampled"])
@given(many=st.lists(spans(), min_size=1, max_size=4))
def test_a_state_of_a_pair_has_one_action_with_spans(options, many):
    check_policy(many, SPAN, DESIGNS["span"], options)


@pytest.mark.parametrize("metric", [LEVENSHTEIN, LCS, MOODY], ids=["levenshtein", "lcs", "moody"])
@given(many=st.lists(st.tuples(fewer, fewer), min_size=1, max_size=4))
def test_whole_columns_follow_the_definition(metric, many):
    assert rows(augmented_steps(columns(many), metric, EDIT)) == plain_rows(many, metric, EDIT, augment=True)


@given(tied)
def test_the_expert_is_as_without_ta(many):
    """A pair's own script decides before all others."""
    pairs = columns(many)
    own = [row for row in rows(augmented_steps(pairs, LEVENSHTEIN, EDIT)) if row[1] == 0]
    assert own == rows(expert_steps(pairs, LEVENSHTEIN, EDIT))


def test_the_edits_that_are_left_are_preferred_to_others_that_are_as_few():
    """From ``b`` the library writes the missing ``b`` before the other one, the pair's own script behind it."""
    own, anew = (LEVENSHTEIN.splices(state, tuple("abb")) for state in ((), ("b",)))
    assert own[2] == Splice(2, 2, ("b",)) and anew == [Splice(0, 0, ("a",)), Splice(1, 1, ("b",))]
    decided = policy((), tuple("abb"), LEVENSHTEIN)
    assert [decided["a", "b"], decided["b",]] == [own[2], own[0]]


def test_a_script_that_comes_back_goes_on_as_the_last_time():
    circle = [Splice(0, 0, ("a",)), Splice(1, 2, ()), Splice(1, 1, ("b",))]
    assert decide([(("a",), circle)]) == {("a",): circle[2], ("a", "a"): circle[1], ("a", "b"): None}


@given(st.lists(st.tuples(few, few), min_size=1))
def test_the_hash_of_pieces_is_that_of_the_whole(many):
    left, right, whole = ([*map(tuple, side)] for side in (*zip(*many, strict=True), (a + b for a, b in many)))
    lengths = [np.array([len(row) for row in rows_]) for rows_ in (left, right, whole)]
    ids = [np.array([ord(token) for row in rows_ for token in row], dtype=np.int64) for rows_ in (left, right, whole)]
    begins = [np.cumsum(each) - each for each in lengths]
    pieces = [(begins[0], lengths[0]), (begins[1] + len(ids[0]), lengths[1])]
    joined = Ragged(ids[2], np.append(begins[2], len(ids[2])))
    assert slice_hashes(5, np.concatenate(ids[:2]), pieces).tolist() == joined.hashes(5).tolist()
