"""Arithmetic Equation Simplification."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from aegen.columns import ABSENT, CLOSE_ID, OPEN_ID, integer_ids, integers_of
from aegen.equation import ADD, DIVIDE, MULTIPLY, SUBTRACT, Integers
from aegen.sampling import TABLE, Draws, picked

WIDTH = 6  # ( - a o b )


@dataclass(frozen=True)
class Aes:
    """Some integers are written as expressions: ``65 + ( 25 - 20 ) = ( 7 * 10 )`` -> ``65 + 5 = 70``.

    k is uniform in 0 … L; k of the L integers are replaced, each by one of all ``( a o b )`` of that value,
    equally likely, where a may be negative. A value that no expression has (possible for N under 4) stays.
    """

    n: int
    division: bool = False
    name: ClassVar[str] = "aes"
    one_target: ClassVar[bool] = True

    @cached_property
    def _divisors(self) -> tuple[Integers, Integers]:
        """Proper divisors (neither 1 nor v) of each v up to N+1 in one flat array, and where those of v begin."""
        top = self.n + 1
        pairs = [np.stack([np.arange(2 * a, top + 1, a), np.full(top // a - 1, a)]) for a in range(2, top // 2 + 1)]
        multiples, factors = np.concatenate([np.zeros((2, 0), dtype=np.int64), *pairs], axis=1)
        order = np.argsort(multiples, kind="stable")
        return factors[order], np.searchsorted(multiples[order], np.arange(top + 2))

    @cached_property
    def ends(self) -> Integers:
        """For each kind of expression and each value, how many expressions that kind and those before it have.

        The last row is the number of all expressions with that value.
        """
        v = np.arange(self.n + 2)
        _, begins = self._divisors
        counts = [
            np.maximum(v - 3, 0),  # a + b, a from 2 to v-2
            np.maximum(self.n - v, 0),  # -a + b, b from v+2 to N+1
            np.maximum(self.n - v, 0),  # a - b, a from v+2 to N+1
            np.diff(begins),  # a * b
            np.maximum((self.n + 1) // np.maximum(v, 1) - 1, 0) * self.division,  # a / b, b from 2 to (N+1)/v
        ]
        return np.cumsum(counts, axis=0)

    def expression(self, v: Integers, index: Integers) -> tuple[Integers, Integers, Integers]:
        """Number ``index`` of the expressions with value v: signed a, operator, b."""
        factors, begins = self._divisors
        ends = self.ends.take(v, axis=1)
        kind = (index >= ends).sum(axis=0)
        offset = index - np.where(kind > 0, ends[kind - 1, np.arange(len(v))], 0)
        plus = offset + 2
        first = np.choose(kind, [plus, -plus, v + plus, plus, v * plus])
        second = np.choose(kind, [v - plus, v + plus, plus, plus, plus])
        (product,) = np.nonzero(kind == 3)
        factor = factors[begins[v[product]] + offset[product]]
        first[product], second[product] = factor, v[product] // factor
        return first, np.array([ADD, ADD, SUBTRACT, MULTIPLY, DIVIDE])[kind], second

    def sources(self, cells: Integers, draws: Draws) -> Integers:
        """Write some integers as expressions."""
        before, integers = cells[:, 0::2], cells[:, 1::2]  # each integer and the sign or operator before it
        rows, width = integers.shape
        out = np.full((rows, width, 1 + WIDTH), ABSENT, dtype=cells.dtype)
        out[:, :, 0], out[:, :, 1] = before, integers
        row, column = picked(draws.fork("where"), draws.below(0, width + 1), np.full(rows, width))
        v = integers_of(integers[row, column]).astype(np.int64)
        ways = self.ends[-1].take(v)
        if not ways.all():
            row, column, v, ways = (array[ways > 0] for array in (row, column, v, ways))
        index = draws.fork("which").at(row, column, width).below(0, ways)
        out.reshape(-1, 1 + WIDTH)[row * width + column, 1:] = self._written(v, index)
        return out.reshape(rows, width * (1 + WIDTH))

    def _written(self, v: Integers, index: Integers) -> npt.NDArray[np.int32]:
        """The expressions as cells, WIDTH each; looked up where all of them fit a table."""
        if self._table is not None:
            begins, table = self._table
            return table.take(begins.take(v) + index, axis=0)
        first, operator, second = self.expression(v, index)
        cells = np.empty((len(v), WIDTH), dtype=np.int32)
        cells[:, 0], cells[:, -1] = OPEN_ID, CLOSE_ID
        cells[:, 1] = np.where(first < 0, SUBTRACT, ABSENT)
        cells[:, 2], cells[:, 3], cells[:, 4] = integer_ids(abs(first)), operator, integer_ids(second)
        return cells

    @cached_property
    def _table(self) -> tuple[Integers, npt.NDArray[np.int32]] | None:
        """All expressions, those of value v from ``begins[v]`` on."""
        counts = self.ends[-1].copy()
        counts[:2] = 0
        if counts.sum() > TABLE:
            return None
        begins = np.concatenate([[0], np.cumsum(counts)])
        v = np.repeat(np.arange(len(counts)), counts)
        plain = Aes(self.n, self.division)
        plain.__dict__["_table"] = None  # a frozen instance still caches its properties in its dictionary
        return begins, plain._written(v, np.arange(len(v)) - begins[v])
