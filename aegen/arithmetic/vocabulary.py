"""The numbers that stand for arithmetic tokens: operators, ``=``, parentheses, then the integers from 2 on.

Behind them come the *pieces* of a task: some tokens that are written together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.arithmetic.equation import EQUALS, OPERATORS
from aegen.columns.arrow import of_texts
from aegen.columns.ragged import Ragged
from aegen.core.randomness import Words, derive_key, keyed_hash
from aegen.core.types import Integers

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


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Pieces by number: first the arithmetic tokens for the integers 2 … n+1, then what a task adds.

    >>> Vocabulary.of(3, np.array([[5, 7, 0, 7, 6]])).spaced[-3:].tolist()
    [b'4 ', b'( 2 + 2 ) ', b'']
    """

    tokens: Ragged  # of each piece
    n: int

    @classmethod
    def of(cls, n: int, more: Integers | None = None) -> Vocabulary:
        """The tokens, and ``more`` pieces as cells."""
        single = Ragged.of_cells(np.arange(FIRST_INTEGER_ID + n)[:, None])
        return cls(single if more is None else Ragged.joined([single, Ragged.of_cells(more)]), n)

    @cached_property
    def final(self) -> npt.NDArray[np.bytes_]:
        """The bytes of each piece; at the end the absent piece (number -1)."""
        return _fixed([*self.tokens.texts(arithmetic_vocabulary(self.n)).to_pylist(), ""])

    @cached_property
    def spaced(self) -> npt.NDArray[np.bytes_]:
        """The same with a space behind each piece that is there."""
        return _fixed([f"{text} " for text in self.final[:-1].astype(str).tolist()] + [""])

    @cached_property
    def lengths(self) -> npt.NDArray[np.uint8]:
        """Bytes of ``spaced``."""
        return np.strings.str_len(self.spaced).astype(np.uint8)

    @lru_cache(maxsize=4)  # noqa: B019 (vocabularies are few and live as long as their tasks)
    def hashing(self, key: int) -> tuple[Words, Words]:
        """What a piece does to the hash of the tokens before it: it is multiplied, then added to."""
        base, values = derive_key(key, "base") | 1, keyed_hash(key, self.tokens.values)
        factors, sums = np.ones((2, len(self.tokens) + 1), dtype=np.uint64)
        sums[:] = 0
        for place in range(int(self.tokens.lengths.max())):
            (there,) = np.nonzero(self.tokens.lengths > place)
            sums[there] = sums[there] * np.uint64(base) + values[self.tokens.offsets[there] + place]
            factors[there] *= np.uint64(base)
        return factors, sums


def _fixed(texts: list[str]) -> npt.NDArray[np.bytes_]:
    """ASCII texts as items of one width; widths of 4, 8, 16 … bytes are moved fastest."""
    width = max(map(len, texts))
    return np.array(texts, dtype=f"S{max(4, 1 << (width - 1).bit_length())}")
