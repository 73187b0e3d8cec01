"""Arithmetic Equation Simplification."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from aegen.arithmetic.equation import ADD, DIVIDE, MULTIPLY, SUBTRACT, is_integer
from aegen.arithmetic.texts import Pieces
from aegen.arithmetic.vocabulary import CLOSE_ID, FIRST_INTEGER_ID, OPEN_ID, Vocabulary, integer_ids, integers_of
from aegen.columns.ragged import ABSENT
from aegen.core.actions import Design
from aegen.core.randomness import Draws, Words, below, picked, subsets
from aegen.core.types import Integers

WIDTH = 6  # ( - a o b )
EXPRESSIONS = 1 << 16  # as many are listed, at most


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
    one_source: ClassVar[bool] = False

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

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens, and all expressions by value, if these are not too many."""
        return Vocabulary.of(self.n, self._table[1] if self._table else None)

    @cached_property
    def _table(self) -> tuple[Integers, npt.NDArray[np.int32]] | None:
        """All expressions as cells, and where those of each value begin."""
        counts = self.ends[-1].copy()
        counts[:2] = 0
        if counts.sum() > EXPRESSIONS:
            return None
        begins = np.cumsum(counts) - counts
        v = np.repeat(np.arange(len(counts)), counts)
        return begins, self._written(v, np.arange(len(v)) - begins[v])

    def _written(self, v: Integers, index: Integers) -> npt.NDArray[np.int32]:
        """Expressions as cells, WIDTH each."""
        first, operator, second = self.expression(v, index)
        cells = np.empty((len(v), WIDTH), dtype=np.int32)
        cells[:, 0], cells[:, -1] = OPEN_ID, CLOSE_ID
        cells[:, 1] = np.where(first < 0, SUBTRACT, ABSENT)
        cells[:, 2], cells[:, 3], cells[:, 4] = integer_ids(abs(first)), operator, integer_ids(second)
        return cells

    def sources(self, cells: Integers, draws: Draws) -> Pieces:
        """Write some integers as expressions."""
        v = integers_of(cells[:, 1::2].astype(np.int64))
        rows, width = v.shape
        ways = self.ends[-1].take(v)
        index = below(_halves(draws.fork("which"), width), ways.view(np.uint64))
        chosen = self._chosen(draws, rows, width) & (ways > 0)
        if self._table:
            kind = cells.dtype if len(self.vocabulary.tokens) < 1 << 15 else np.int32
            out = cells.astype(kind)
            index += self._table[0].take(v) + (FIRST_INTEGER_ID + self.n)
            out[:, 1::2] = np.where(chosen, index, cells[:, 1::2])
            return Pieces(out, self.vocabulary)
        out = np.full((rows, width, 1 + WIDTH), ABSENT, dtype=cells.dtype)
        out[:, :, 0], out[:, :, -1] = cells[:, 0::2], cells[:, 1::2]
        out[chosen, 1:] = self._written(v[chosen], index[chosen])
        return Pieces(out.reshape(rows, -1), self.vocabulary)

    def _chosen(self, draws: Draws, rows: int, width: int) -> npt.NDArray[np.bool_]:
        """Which integers are replaced: k is uniform, and so are the subsets of k."""
        table = _subsets(width)
        if table is not None:
            return table.take(draws.digits([len(table)])[0], axis=0)
        chosen = np.zeros((rows, width), dtype=bool)
        chosen[picked(draws.fork("where"), draws.below(0, width + 1), np.full(rows, width))] = True
        return chosen

    @staticmethod
    def writable(design: Design, tokens: frozenset[str]) -> frozenset[str]:
        """Integers, in a design that replaces whole parentheses; token by token, anything may have to be written."""
        return frozenset(filter(is_integer, tokens)) if "left" in design.slots else tokens


def _halves(draws: Draws, width: int) -> Words:
    """For each row ``width`` halves of words, each in the upper half of its own: 32 bits are enough for a bound."""
    found = np.empty((len(draws.positions), width + 1), dtype=np.uint64)
    for column in range(0, width, 2):
        found[:, column] = words = draws.words(column)
        np.left_shift(words, np.uint64(32), out=found[:, column + 1])
    return found[:, :width]


@lru_cache(maxsize=4)
def _subsets(width: int) -> npt.NDArray[np.bool_] | None:
    """A list of subsets of the integers in which to choose uniformly."""
    found = subsets(width, width)
    if found is None:
        return None
    table = np.zeros((len(found), width), dtype=bool)
    for row, places in zip(table, found, strict=True):
        row[list(places)] = True
    return table
