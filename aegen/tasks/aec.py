"""Arithmetic Equation Correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aegen.columns import ABSENT, FIRST_INTEGER_ID
from aegen.equation import OPERATORS, Integers
from aegen.sampling import Draws, picked

DELETE, INSERT, SUBSTITUTE = range(3)


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

    @property
    def _tokens(self) -> int:
        return len(OPERATORS) + self.n

    def sources(self, cells: Integers, draws: Draws) -> Integers:
        """Put mistakes into equations."""
        rows, width = cells.shape
        unsigned = cells[:, 0] == ABSENT
        row, place = picked(draws.fork("where"), draws.below(0, self.errors + 1), width - 1 - unsigned)
        column = place + unsigned[row]
        out = np.full((rows, width, 2), ABSENT, dtype=cells.dtype)
        out[:, :, 1] = cells
        kind, token = np.divmod(draws.fork("what").at(row, column, width).below(0, 3 * self._tokens), self._tokens)
        token += np.where(token < len(OPERATORS), 0, FIRST_INTEGER_ID - len(OPERATORS))
        token[kind == DELETE] = ABSENT
        out[row, column, np.where(kind == INSERT, 0, 1)] = token
        return out.reshape(rows, width * 2)
