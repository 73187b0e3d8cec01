"""Pairs whose edits are independent: the pattern of all trajectories against the algorithms as printed."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aegen.core.actions import DESIGNS
from aegen.core.errors import InvalidEdit
from aegen.experts.augment import Augmentation
from aegen.experts.demonstrations import augmented_batches
from aegen.experts.scripts import unambiguous_insertions
from aegen.experts.subsets import subset_batch
from aegen.experts.trajectory import Summary
from tests.aegen.experts.test_trajectory import EDIT, columns, plain_rows, rows
from tests.aegen.strategies import LCS, LEVENSHTEIN, SPAN, spans


@st.composite
def growing(draw: st.DrawFn, tokens: str = "ab12") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A goal, and what is left of it without some of its tokens."""
    goal = tuple(draw(st.lists(st.sampled_from(tokens), max_size=6)))
    return tuple(token for token in goal if draw(st.booleans())), goal


def ways(state: tuple[str, ...], goal: tuple[str, ...]) -> int:
    """In how many places of the goal a state can be found, by brute force."""
    return sum(tuple(goal[i] for i in places) == state for places in combinations(range(len(goal)), len(state)))


def scripts_of(many, metric=LEVENSHTEIN):
    pairs = columns(many)
    return pairs, metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)


def without_doubt(source, goal) -> bool:
    """No state between source and goal (whatever of the insertions has been made) can be found twice."""
    if ways(source, goal) != 1:
        return False
    (kept,) = [p for p in combinations(range(len(goal)), len(source)) if tuple(goal[i] for i in p) == source]
    new = [place for place in range(len(goal)) if place not in kept]
    return all(
        ways(tuple(goal[i] for i in sorted((*kept, *made))), goal) == 1
        for count in range(len(new) + 1)
        for made in combinations(new, count)
    )


@given(growing().filter(lambda pair: ways(*pair) == 1))
@example((("1", "2"), ("1", "a", "b", "a", "2")))
@example((("1",), ("1", "a", "b")))
def test_insertions_are_unambiguous_if_no_state_has_two_ways(pair):
    pairs, scripts = scripts_of([pair])
    assert unambiguous_insertions(pairs.goals, scripts) == without_doubt(*pair)


def test_other_edits_are_never_independent():
    for pair in (("ab", "a"), ("ab", "ac"), ("", "aa")):
        pairs, scripts = scripts_of([tuple(map(tuple, pair))])
        assert not LEVENSHTEIN.independent(pairs.goals, scripts)
    pairs, scripts = scripts_of([((), ()), (("a",), ("a",)), ((), ("b",)), (("1", "1"), ("1", "a", "1"))])
    assert LEVENSHTEIN.independent(pairs.goals, scripts)


def check_rows(many, metric, design, algorithm):
    """The pattern's rows against those found by looking at every state, and against the algorithm as printed."""
    pairs, scripts = scripts_of(many, metric)
    assert metric.independent(pairs.goals, scripts)
    options, found, wanted = Augmentation(algorithm), Summary(), Summary()
    made = subset_batch(pairs, scripts, design, options, found)
    (looked_at,) = augmented_batches(pairs, scripts, metric, design, options, wanted)
    assert made.equals(looked_at) and found == wanted
    if algorithm == "paper":
        assert rows(made) == plain_rows(many, metric, design, augment=True)


@pytest.mark.parametrize("metric", [LEVENSHTEIN, LCS], ids=["levenshtein", "lcs"])
@pytest.mark.parametrize("algorithm", ["paper", "released"])
@given(many=st.lists(growing("abcdefgh1234").filter(lambda pair: without_doubt(*pair)), min_size=1, max_size=5))
def test_the_pattern_gives_the_rows_of_insertions(metric, algorithm, many):
    check_rows(many, metric, EDIT, algorithm)


@pytest.mark.parametrize("algorithm", ["paper", "released"])
@given(many=st.lists(spans(), min_size=1, max_size=5))
def test_the_pattern_gives_the_rows_of_spans(algorithm, many):
    check_rows(many, SPAN, DESIGNS["span"], algorithm)


def test_a_design_that_cannot_insert_says_so():
    pairs, scripts = scripts_of([(("1", "2"), ("1", "+", "2"))])
    with pytest.raises(InvalidEdit, match="design span cannot express an edit that replaces 0 tokens by 1: pair 0"):
        subset_batch(pairs, scripts, DESIGNS["span"], Augmentation(), Summary())
