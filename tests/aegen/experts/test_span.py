"""AES's metric: the columns against the definition, for pairs in order and for any others."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from aegen.core.edits import Splice, replay
from aegen.core.errors import InvalidEdit
from aegen.experts.custom import Custom
from aegen.experts.span import _scripts, span
from tests.aegen.experts.test_metrics import as_splices, columns
from tests.aegen.strategies import SPAN, spans

DEFINITION = Custom("span", span, {})
tokens = st.sampled_from(["(", ")", "1", "+"])
anything = st.tuples(st.lists(tokens, max_size=9).map(tuple), st.lists(tokens, max_size=5).map(tuple))


@st.composite
def nearly(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A pair in order with one token replaced, inserted or removed on either side."""
    sides = list(draw(spans()))
    which = draw(st.integers(0, 1))
    start = draw(st.integers(0, len(sides[which])))
    stop = min(len(sides[which]), start + draw(st.integers(0, 1)))
    new = tuple(draw(st.lists(tokens, max_size=1)))
    sides[which] = Splice(start, stop, new).apply(sides[which])
    return sides[0], sides[1]


@given(spans())
def test_span_reaches_the_goal_in_one_edit_a_parenthesis(pair):
    found = SPAN.splices(*pair)
    assert replay(pair[0], found) == pair[1]
    assert len(found) == pair[0].count("(")


def outcome(find):
    try:
        return find()
    except InvalidEdit as error:
        return str(error)


@given(st.lists(spans() | nearly() | anything, min_size=1, max_size=6))
@example([(tuple("((1)"), ("1",))])  # nested: up to the first ")"
@example([(tuple(")(1)"), tuple(")1"))])  # a ")" before any "("
@example([(tuple("(1)"), (")",))])
@example([(tuple("(1)"), ("(",))])  # what is written opens a parenthesis again
@example([(("(",), ("1",)), ((")",), ("1",))])  # closed in another row only
@example([(tuple("1(1)"), ("1",))])  # no token in the goal
@example([(tuple("(1)"), tuple("11"))])
def test_the_columns_are_the_definition(many):
    """The same scripts, or the same error about the same pair."""
    wanted = outcome(lambda: [DEFINITION.splices(*pair) for pair in many])
    assert outcome(lambda: as_splices(SPAN.scripts(*columns(many)), many)) == wanted


@given(spans() | nearly() | anything)
@example((tuple("((1)(2)"), tuple("12")))
@example((tuple("(1))(2)"), tuple(")))")))
def test_the_edits_are_independent(pair):
    """After each subset of a script's edits the others are the script, and no two of these states are equal."""
    state, goal = pair
    try:
        edits = DEFINITION.splices(state, goal)
    except InvalidEdit:
        assume(False)
    seen = set()
    for count in range(len(edits) + 1):
        for chosen in combinations(edits, count):
            shrunk, shifted, left = 0, state, []
            for edit in edits:
                if edit in chosen:
                    shifted = Splice(edit.start + shrunk, edit.stop + shrunk, edit.new).apply(shifted)
                else:
                    left.append(edit)
                    shrunk -= edit.growth
            seen.add(shifted)
            assert DEFINITION.splices(shifted, goal) == left
    assert len(seen) == 2 ** len(edits)


def test_span_needs_parentheses_that_close():
    with pytest.raises(InvalidEdit, match="span: a parenthesis that is not closed.* for '\\( 1' -> '1'"):
        SPAN.splices(("(", "1"), ("1",))
    with pytest.raises(InvalidEdit, match="end at '1'"):
        SPAN.splices(("1",), ("2",))
    with pytest.raises(InvalidEdit, match="end at '1'"):
        SPAN.scripts(*columns([(("1",), ("1",)), (("1",), ("2",))]))


@given(st.lists(spans(), min_size=1, max_size=6))
def test_pairs_in_order_need_no_loop(many):
    """The definition, which is called pair by pair, is for malformed pairs alone."""
    found = _scripts(*columns(many))
    assert found is not None and as_splices(found, many) == [DEFINITION.splices(*pair) for pair in many]
