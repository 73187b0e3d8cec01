"""Errors that are made can be undone, and are as frequent as those that are shown."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from trainer.models.editor.edits import Edit, made
from trainer.models.editor.errors import MISSING, Errors, choices, chosen

words = st.integers(1, 6)
texts = st.lists(words, max_size=8)


@st.composite
def demonstrations(draw):
    """A state, and edits of some of its places."""
    state = draw(st.lists(words, min_size=1, max_size=8))
    edits = []
    for place in range(len(state)):
        how = draw(st.sampled_from(["keep", "insert", "delete", "replace"]))
        if how != "keep":
            width, new = how != "insert", None if how == "delete" else draw(words)
            edits.append(Edit(place, place + width, new))
    return state, edits


@given(st.lists(demonstrations(), max_size=5), texts, st.integers(0, 1 << 60))
def test_the_edits_undo_the_errors(shown, goal, seed):
    state, edits = Errors(shown).make(goal, Random(seed))
    assert made(state, edits, [True] * len(edits))[0] == goal
    gaps = [edit.start for edit in edits if edit.start == edit.stop]
    assert len(gaps) == len(set(gaps))  # one insertion for each gap: a place has one class
    assert Errors(shown).make(goal, Random(seed)) == (state, edits)


def test_errors_are_as_frequent_as_those_shown():
    """A quarter of the 5s is missing, a quarter was a 6, and one in two 7s has a needless 8 before it."""
    shown = [([1], [Edit(1, 1, 5)]), ([6], [Edit(0, 1, 5)]), ([5, 5], []), ([8, 7, 7], [Edit(0, 1, None)])]
    errors, draw, counts = Errors(shown), Random(1), Counter()
    for _ in range(2000):
        counts["missing"] += errors.make([1, 5], draw)[0] == [1]
        counts["wrong"] += errors.make([1, 5], draw)[0] == [1, 6]
        counts["needless"] += errors.make([1, 7], draw)[0] == [1, 8, 7]
    assert all(abs(counts[name] / 2000 - rate) < 0.04 for name, rate in [("missing", 0.25), ("wrong", 0.25)])
    assert abs(counts["needless"] / 2000 - 0.5) < 0.04
    assert chosen(None, 0.0) is None and chosen(choices(Counter({MISSING: 1}), 4), 0.3) is None
