"""Arithmetic Equation Correction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from aegen.arithmetic.equation import OPERATORS
from aegen.arithmetic.texts import Pieces
from aegen.arithmetic.vocabulary import FIRST_INTEGER_ID, Vocabulary
from aegen.columns.ragged import ABSENT
from aegen.core.actions import Design
from aegen.core.randomness import SUBSETS, Draws, picked, subsets
from aegen.core.types import Integers

DELETE, INSERT, SUBSTITUTE = range(3)
PAIRS = 1 << 14  # as many pieces of two tokens are listed, at most


@dataclass(frozen=True)
class Aec:
    """Up to three mistakes: ``- 2 * + 4 10 + 8 / 8 = 8`` -> ``- 2 + 10 * 8 / 8 = 8``.

    k is uniform in 0 … ``errors``; at k places of all tokens but the last, one of delete, insert before, substitute,
    equally likely; the new token is one of the four operators and N integers. A token may be substituted by itself.
    """

    n: int
    errors: int = 3
    name: ClassVar[str] = "aec"
    one_target: ClassVar[bool] = False
    one_source: ClassVar[bool] = False

    @property
    def _tokens(self) -> int:
        return len(OPERATORS) + self.n

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens, and each of them behind each token that can be inserted, if these are not too many."""
        size = FIRST_INTEGER_ID + self.n
        if size * size > PAIRS:
            return Vocabulary.of(self.n)
        return Vocabulary.of(self.n, np.stack(np.divmod(np.arange(size * size), size), axis=1))

    def sources(self, cells: Integers, draws: Draws) -> Pieces:
        """Put mistakes into equations."""
        row, column, what = self._mistakes(cells, draws)
        kind = what // self._tokens
        token = what - kind * self._tokens
        token += (token >= len(OPERATORS)) * (FIRST_INTEGER_ID - len(OPERATORS))
        rows, width = cells.shape
        place = row * width + column
        inserted = kind == INSERT
        size = FIRST_INTEGER_ID + self.n
        if len(self.vocabulary.tokens) > size:
            out = cells.copy()
            token += inserted * (size + token * (size - 1) + cells.ravel().take(place))
        else:  # every token may have one before it
            out = np.full((rows, width, 2), ABSENT, dtype=cells.dtype)
            out[:, :, 1] = cells
            place = 2 * place + ~inserted
        token[kind == DELETE] = ABSENT
        out.ravel()[place] = token
        return Pieces(out.reshape(rows, -1), self.vocabulary)

    def _mistakes(self, cells: Integers, draws: Draws) -> tuple[Integers, Integers, Integers]:
        """Rows and columns of all mistakes, and a number below 3 * tokens for each: what it is."""
        width = cells.shape[1]
        unsigned = cells[:, 0] == ABSENT
        table = _places(self.errors, width - 1)
        if table is None:
            row, place = picked(draws.fork("where"), draws.below(0, self.errors + 1), width - 1 - unsigned)
            column = place + unsigned[row]
            return row, column, draws.fork("what").at(row, column, width).below(0, 3 * self._tokens)
        outcomes = table.shape[1]
        which, *digits = draws.digits([outcomes, *[3 * self._tokens] * self.errors])
        columns = table.reshape(2 * outcomes, -1).take(which + unsigned * outcomes, axis=0)
        what = np.empty(columns.shape, dtype=np.int64)
        for mistake, digit in enumerate(digits):
            what[:, mistake] = digit
        found = np.flatnonzero(columns.ravel() != ABSENT)
        return found // columns.shape[1], columns.ravel().take(found).astype(np.int64), what.ravel().take(found)

    @staticmethod
    def writable(design: Design, tokens: frozenset[str]) -> frozenset[str]:
        """Any token that occurs."""
        return tokens


@lru_cache(maxsize=4)
def _places(errors: int, columns: int) -> npt.NDArray[np.int8] | None:
    """For signed equations and for unsigned ones, a list of places of mistakes in which to choose uniformly."""
    signed, unsigned = subsets(errors, columns), subsets(errors, columns - 1)
    if signed is None or unsigned is None:
        return None
    length = math.lcm(len(signed), len(unsigned))
    if length > SUBSETS:
        return None
    table = np.full((2, length, 1 << max(errors - 1, 0).bit_length()), ABSENT, dtype=np.int8)
    for first, (found, out) in enumerate(zip((signed, unsigned), table, strict=True)):
        for index, places in enumerate(found * (length // len(found))):
            out[index, : len(places)] = [place + first for place in places]
    return table
