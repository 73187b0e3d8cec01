"""Arithmetic equations as token sequences, and their exact values.

Two evaluators that never see a float: :func:`value` reads any expression, one at a time, with
``fractions``; :func:`fold` runs over whole NumPy columns of integers with a common denominator,
after :func:`integer_type` has shown that nothing can overflow. The tests hold them against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from aegen.core.errors import InvalidSpec
from aegen.core.format import MAX_DIGITS
from aegen.core.types import Integers

OPERATORS = ("+", "-", "*", "/")
EQUALS = "="
ADD, SUBTRACT, MULTIPLY, DIVIDE = range(4)


def is_integer(token: str) -> bool:
    """Whether a token is a plain decimal integer (no sign, ASCII digits only).

    >>> is_integer("101"), is_integer("-3"), is_integer("²")
    (True, False, False)
    """
    return token.isascii() and token.isdigit() and len(token) <= MAX_DIGITS


def value(tokens: Sequence[str]) -> Fraction | None:
    """The exact value of an expression; None if it is not one, or divides by zero.

    A minus sign may lead the expression or a parenthesis.

    >>> value("- 3 - 6 / 2 + 9".split())
    Fraction(3, 1)
    >>> value("4 / / 2".split()) is None
    True
    """
    # One frame per open parenthesis: (total, open term, pending operator); no recursion, so depth costs memory only.
    stack: list[tuple[Fraction, Fraction, str]] = []
    total, term, pending = Fraction(0), Fraction(0), "+"
    need_operand = fresh = True
    for token in tokens:
        if need_operand:
            if token == "(":
                stack.append((total, term, pending))
                total, term, pending, fresh = Fraction(0), Fraction(0), "+", True
                continue
            if token == "-" and fresh:
                pending, fresh = "-", False
                continue
            if not is_integer(token):
                return None
            operand = Fraction(int(token))
        elif token == ")":
            if not stack:
                return None
            operand = total + term
            total, term, pending = stack.pop()
        elif token in OPERATORS:
            pending, need_operand, fresh = token, True, False
            continue
        else:
            return None
        if pending == "*":
            term *= operand
        elif pending == "/":
            if not operand:
                return None
            term /= operand
        else:
            total, term = total + term, operand if pending == "+" else -operand
        need_operand = fresh = False
    return None if need_operand or stack else total + term


def largest(n: int, l: int) -> int:
    """A bound of every intermediate number of :func:`fold`.

    With one common denominator each term of a left side is a product of at most all its l-1 integers,
    each at most n+1, and there are at most l-1 terms; a comparison multiplies the denominator by n+1 once more.
    """
    return max(l - 1, 1) * int((n + 1) ** (l - 1))


def integer_type(n: int, l: int) -> type[np.signedinteger[Any]]:
    """The narrowest NumPy integer that holds every intermediate number of :func:`fold`."""
    bound = largest(n, l)
    for kind in (np.int32, np.int64):
        if bound <= np.iinfo(kind).max:
            return kind
    raise InvalidSpec(f"n={n}, l={l}: intermediate values take {bound.bit_length()} bits, beyond 63 bits")


def fold(
    total: Integers,
    term: Integers,
    denominator: Integers,
    operators: Integers,
    operands: Integers,
    fresh: int = 1,
) -> tuple[Integers, Integers, Integers]:
    """Go on evaluating ``total/denominator + term/denominator`` over columns of (operator, operand).

    ``operators`` and ``operands`` are (rows, k). The value at the end is ``(total + term) / denominator``.
    ``fresh=0`` drops every term that the columns begin themselves, which leaves the factor by which
    they multiply the open term: so a suffix can be tabulated without knowing its prefix.

    >>> one = np.array([8])
    >>> total, term, denominator = fold(one * 0, one, one // 8, np.array([[DIVIDE, ADD]]), np.array([[2, 3]]))
    >>> ((total + term) / denominator).tolist()
    [7.0]
    """
    for column in range(operators.shape[1]):
        operator, operand = operators[:, column], operands[:, column]
        one = np.ones_like(operand)
        divisor = np.where(operator == DIVIDE, operand, one)
        closes = operator <= SUBTRACT
        total = (total + np.where(closes, term, 0)) * divisor
        denominator = denominator * divisor
        begins = np.where(operator == ADD, operand, -operand) * denominator * fresh
        term = np.where(closes, begins, term * np.where(operator == MULTIPLY, operand, one))
    return total, term, denominator
