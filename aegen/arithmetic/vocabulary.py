"""The numbers that stand for arithmetic tokens: operators, ``=``, parentheses, then the integers from 2 on."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.arithmetic.equation import EQUALS, OPERATORS
from aegen.columns.arrow import of_texts
from aegen.core.types import Integers

# Ids of arithmetic tokens: four operators as in equation.py, these three, then the integers from 2 on.
SYMBOLS = (*OPERATORS, EQUALS, "(", ")")
EQUALS_ID, OPEN_ID, CLOSE_ID = 4, 5, 6
FIRST_INTEGER_ID = len(SYMBOLS)


@lru_cache(maxsize=4)
def arithmetic_vocabulary(n: int) -> pa.StringArray:
    """The token of each arithmetic id, for the integers 2 … n+1."""
    return of_texts([*SYMBOLS, *map(str, range(2, n + 2))])


def integer_ids(values: Integers) -> npt.NDArray[np.int32]:
    """The token ids of integers from 2 on."""
    ids: npt.NDArray[np.int32] = np.asarray(values + (FIRST_INTEGER_ID - 2), dtype=np.int32)
    return ids


def integers_of(ids: Integers) -> Integers:
    """The integers of token ids, the inverse of :func:`integer_ids`."""
    return ids - (FIRST_INTEGER_ID - 2)
