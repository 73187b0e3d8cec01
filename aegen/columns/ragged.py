"""Whole columns of token sequences as flat arrays of ids: the form in which the fast paths work.

``Ragged`` is many sequences in one array; *cells* are a (rows, width) matrix with -1 where there is no token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegen.columns.arrow import EMPTY, SPACE, of_numbers, of_texts, text_offsets, to_numbers
from aegen.core.randomness import Words, derive_key, keyed_hash
from aegen.core.types import Integers

ABSENT = -1


@dataclass(frozen=True)
class Ragged:
    """Sequences of ids: row i is ``values[offsets[i]:offsets[i + 1]]``.

    >>> Ragged.of_cells(np.array([[7, -1, 8], [-1, 9, -1]])).lengths.tolist()
    [2, 1]
    """

    values: Integers
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each row."""
        return np.diff(self.offsets)

    @classmethod
    def of_cells(cls, cells: Integers) -> Ragged:
        """Drop the absent cells."""
        present = cells != ABSENT
        offsets = np.zeros(len(cells) + 1, dtype=np.int64)
        ends = offsets[1:]
        for column in present.T:  # several times faster than a sum over the short axis
            ends += column
        np.cumsum(ends, out=ends)
        # Several times faster than cells[present].
        return cls(cells.ravel().take(np.flatnonzero(present)), offsets)

    @classmethod
    def of_slices(cls, pool: Integers, starts: Integers, lengths: Integers, rows: Integers) -> Ragged:
        """Rows made of pieces ``pool[start:start + length]``; piece k ends its row where ``rows`` says.

        ``rows`` holds, for each row, the number of pieces before it (and the total at the end).
        """
        ends = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=ends[1:])
        within = np.arange(ends[-1], dtype=np.int64)
        within += np.repeat(starts - ends[:-1], lengths)
        return cls(pool.take(within), ends[rows])

    def tuples(self, alphabet: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The rows as tokens, one by one."""
        for start, stop in pairwise(self.offsets.tolist()):
            yield tuple(alphabet[index] for index in self.values[start:stop].tolist())

    @classmethod
    def joined(cls, columns: Sequence[Ragged]) -> Ragged:
        """One column after the other."""
        lengths = np.concatenate([column.lengths for column in columns])
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        return cls(np.concatenate([column.values for column in columns]), offsets)

    def rows(self, index: Integers) -> Ragged:
        """Some of the rows, in any order."""
        return Ragged.of_slices(self.values, self.offsets[index], self.lengths[index], np.arange(len(index) + 1))

    def padded(self) -> npt.NDArray[np.int32]:
        """The rows as cells, with -1 behind the last token."""
        lengths = self.lengths
        width = int(lengths.max(initial=0))
        cells = np.full((len(self), width), ABSENT, dtype=np.int32)
        rows = np.arange(len(self)) * width
        place = np.arange(len(self.values))
        place += np.repeat(rows - self.offsets[:-1], lengths)
        cells.ravel()[place] = self.values
        return cells

    def texts(self, vocabulary: pa.StringArray) -> pa.StringArray:
        """Each row as its tokens joined by one space."""
        # Every token with a space behind it, but the last one of a row: then the texts lie side by side.
        spaced = pc.call_function("binary_join_element_wise", [vocabulary, EMPTY, SPACE])
        ids = self.values.astype(np.int32)
        ids[self.offsets[1:][self.lengths > 0] - 1] += len(vocabulary)
        tokens = pa.concat_arrays([spaced, vocabulary]).take(of_numbers(ids))
        ends = text_offsets(tokens).take(self.offsets)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(ends), tokens.buffers()[2])

    def hashes(self, key: int) -> Words:
        """A 64-bit hash of each row under a key: equal sequences, equal hashes."""
        return slice_hashes(key, self.values, [(self.offsets[:-1], self.lengths)])


def slice_hashes(key: int, pool: Integers, pieces: Sequence[tuple[Integers, Integers]]) -> Words:
    """The hashes of rows made of pieces ``pool[start:start + length]``, without putting the rows together.

    ``pieces`` holds the starts and lengths of the first piece of each row, then those of the second, …
    The hash is a polynomial in an odd base modulo 2^64, for all rows in one running sum: dividing by the power at which
    a piece begins (odd numbers have inverses) makes it independent of where the piece lies.

    >>> pool = np.array([7, 8, 9, 8])
    >>> one, two = slice_hashes(1, pool, [(np.array([1, 3]), np.array([2, 1])), (np.array([0, 2]), np.array([0, 1]))])
    >>> bool(one == two)  # 8 9 and nothing, 8 and 9
    True
    """
    base = derive_key(key, "base") | 1
    size = 1 << len(pool).bit_length()
    powers, inverses = (_powers(root, size) for root in (base, pow(base, -1, 2**64)))
    sums = np.zeros(len(pool) + 1, dtype=np.uint64)
    words = keyed_hash(key, np.arange(pool.max(initial=-1) + 1)).take(pool)
    np.cumsum(words * powers[: len(pool)], out=sums[1:])
    (start, length), *others = pieces
    total, before = (sums.take(start + length) - sums.take(start)) * inverses.take(start), length
    for start, length in others:
        total += (sums.take(start + length) - sums.take(start)) * inverses.take(start) * powers.take(before)
        before = before + length
    return keyed_hash(key, total)


@lru_cache(maxsize=4)
def _powers(base: int, count: int) -> Words:
    factors = np.full(count, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors)


def packed(letters: npt.NDArray[np.uint8], offsets: Integers) -> pa.StringArray:
    """Texts from bytes with zeros in between, which are dropped; ``offsets`` are those without the zeros.

    >>> packed(np.frombuffer(b"a\\0bc\\0\\0d", dtype=np.uint8), np.array([0, 1, 4])).to_pylist()
    ['a', 'bcd']
    """
    mask = np.packbits(letters, bitorder="little")
    there = pa.BooleanArray.from_buffers(pa.bool_(), len(letters), [None, pa.py_buffer(mask)])
    data = of_numbers(letters).filter(there).buffers()[1]
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.astype(np.int32, copy=False)), data)


def intern(texts: pa.StringArray, tokens: Sequence[str] = ()) -> tuple[Ragged, list[str]]:
    """Texts as ids, and the token of each id; ``tokens`` get the first ids, whether they occur or not.

    >>> ragged, tokens = intern(of_texts(["a b", "", "b"]))
    >>> ragged.values.tolist(), ragged.offsets.tolist(), tokens
    ([0, 1, 1], [0, 2, 2, 3], ['a', 'b'])
    """
    lists = pc.split_pattern(texts, " ")
    values, offsets = lists.flatten(), to_numbers(lists.offsets).astype(np.int64)
    offsets -= offsets[0]
    empty = to_numbers(pc.binary_length(texts)) == 0
    if empty.any():  # splitting "" gives one empty token; the empty state has none
        values = values.take(of_numbers(np.flatnonzero(~np.repeat(empty, np.diff(offsets)))))
        offsets -= np.concatenate([[0], np.cumsum(empty)])
    encoded = pa.concat_arrays([of_texts(tokens), values]).dictionary_encode()
    ids = to_numbers(encoded.indices)[len(tokens) :].astype(np.int32, copy=False)
    return Ragged(ids, offsets), encoded.dictionary.to_pylist()
