from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.arithmetic.equation import OPERATORS, fold, integer_type, value
from aegen.core.errors import InvalidSpec
from tests import oracle

FUNCTIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> tuple[list[str], Fraction | None, int]:
    """An expression as tokens, its value by a tree walk, and the precedence of its top operator."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 120))
        return [str(number)], Fraction(number), 3
    sign = draw(st.sampled_from(OPERATORS))
    level = 1 if sign in "+-" else 2
    left, a, low = draw(trees(depth - 1))
    right, b, high = draw(trees(depth - 1))
    left = ["(", *left, ")"] if low < level else left
    right = ["(", *right, ")"] if high <= level else right
    known = a is not None and b is not None and not (sign == "/" and b == 0)
    return [*left, sign, *right], FUNCTIONS[sign](a, b) if known else None, level


@given(trees())
def test_value_agrees_with_a_tree_walk(tree):
    tokens, expected, _ = tree
    assert value(tokens) == expected


@given(st.lists(st.sampled_from([*OPERATORS, "(", ")", "=", "2", "10", "x", "", "²", "-3"]), max_size=12))
def test_value_never_raises(tokens):
    value(tokens)


@pytest.mark.parametrize(
    "text", ["", "4 / / 2", "2 +", "* 2", "( 2", "2 )", "( )", "- - 2", "2 ( 3 )", "4 / ( 2 - 2 )", "2 - - 2"]
)
def test_what_is_no_expression(text):
    assert value(text.split()) is None


def test_depth_costs_no_stack():
    assert value(["("] * 50_000 + ["7"] + [")"] * 50_000) == 7


@given(
    st.integers(2, 120).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sampled_from([*range(-n, -1), *range(2, n + 2)]),
            st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(2, n + 1)), min_size=1, max_size=6),
        )
    )
)
def test_columns_agree_with_fractions(case):
    n, first, rest = case
    kind = integer_type(n, len(rest) + 2)
    start = np.array([first], dtype=kind)
    operators = np.array([[OPERATORS.index(sign) for sign, _ in rest]])
    operands = np.array([[number for _, number in rest]], dtype=kind)
    total, term, denominator = fold(start * 0, start, np.ones_like(start), operators, operands)
    assert Fraction(int(total[0] + term[0]), int(denominator[0])) == oracle.evaluate(first, rest)


@pytest.mark.parametrize("n,l", [(10, 5), (100, 5), (7, 9), (1000, 6)])
def test_the_bound_is_never_exceeded(n, l):
    """The largest products, in every arrangement of one operator and one other."""
    kind = integer_type(n, l)
    for sign in range(4):
        for other in range(4):
            operators = np.array([[sign] * (l - 3) + [other]])
            operands = np.full((1, l - 2), n + 1, dtype=kind)
            start = np.array([n + 1], dtype=kind)
            wide = fold(
                start.astype(object) * 0,
                start.astype(object),
                np.array([1], dtype=object),
                operators,
                operands.astype(object),
            )
            narrow = fold(start * 0, start, np.ones_like(start), operators, operands)
            assert [int(column[0]) for column in narrow] == [int(column[0]) for column in wide]


def test_too_large_is_refused_with_the_limit():
    with pytest.raises(InvalidSpec, match="63 bits"):
        integer_type(10**6, 5)
