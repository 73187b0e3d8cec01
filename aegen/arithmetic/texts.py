"""Whole columns of texts that are put together from pieces: the form in which pairs are generated.

A *piece* is some tokens that come together (one token; ``( 25 - 20 )``; an inserted token and the one behind it), known
by a number. Rows have equally many pieces, some of them absent, so every step is one operation on a matrix; the
texts come from a table of the pieces' bytes, padded to one width, from which the padding is then dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.arithmetic.candidates import Equations, Space
from aegen.arithmetic.equation import SUBTRACT
from aegen.arithmetic.permutation import TABLE
from aegen.arithmetic.vocabulary import EQUALS_ID, FIRST_INTEGER_ID, arithmetic_vocabulary, integer_ids
from aegen.columns.ragged import ABSENT, Ragged, packed
from aegen.core.randomness import Words, derive_key, keyed_hash
from aegen.core.types import Integers


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


@dataclass(frozen=True, eq=False)
class Pieces:
    """One row a text: numbers of pieces, -1 where there is none. The last of a row is always there.

    >>> Pieces(np.array([[-1, 8, 0, 7], [1, 7, -1, 8]]), Vocabulary.of(2)).texts().to_pylist()
    ['3 + 2', '- 2 3']
    """

    numbers: Integers
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, index: Integers) -> Pieces:
        """Some of the rows, in any order."""
        return Pieces(self.numbers.take(index, axis=0), self.vocabulary)

    def texts(self) -> pa.StringArray:
        """The tokens of each row, joined by one space."""
        numbers = self.numbers.astype(np.intp)
        words = self.vocabulary.spaced.take(numbers)
        words[:, -1] = self.vocabulary.final.take(numbers[:, -1])
        lengths = self.vocabulary.lengths.take(numbers)
        offsets = np.zeros(len(numbers) + 1, dtype=np.int32)
        ends = offsets[1:]
        ends -= 1  # the space behind the last piece
        for column in range(lengths.shape[1]):  # several times faster than a sum over the short axis
            ends += lengths[:, column]
        np.cumsum(ends, dtype=np.int32, out=ends)
        return packed(words.view(np.uint8).ravel(), offsets)

    def hashes(self, key: int) -> Words:
        """A 64-bit hash of each row under a key: equal tokens, equal hashes, whatever the pieces are.

        A polynomial of the tokens' hashes in an odd base, modulo 2^64.
        """
        factors, sums = self.vocabulary.hashing(key)
        found = np.zeros(len(self), dtype=np.uint64)
        for column in range(self.numbers.shape[1]):
            numbers = self.numbers[:, column].astype(np.intp)
            found *= factors.take(numbers)
            found += sums.take(numbers)
        return keyed_hash(key, found)


def equation_cells(equations: Equations) -> Integers:
    """Equations as cells: sign or nothing, integer, then operator and integer in turn, ``=``, integer.

    >>> from aegen.arithmetic.candidates import Order
    >>> equation_cells(Order(3, 4, 0).equations(0, 9)[1]).shape[1]
    8
    """
    space = equations.space
    rights = integer_ids(equations.right)
    tables = _half_cells(space)
    if tables is None:
        left = left_cells(space, equations.prefix, equations.suffix)
        ends = np.stack([np.full_like(rights, EQUALS_ID), rights], axis=1)
        return np.concatenate([left, ends.astype(left.dtype)], axis=1)
    # Each half moves as one item.
    halves = tables[0].take(equations.prefix), tables[1].take(equations.suffix)
    kind = _cell_type(space)
    items = np.empty(
        len(equations),
        dtype=[("prefix", halves[0].dtype), ("suffix", halves[1].dtype), ("equals", kind), ("right", kind)],
    )
    items["prefix"], items["suffix"] = halves
    items["equals"], items["right"] = EQUALS_ID, rights
    return items.view(kind).reshape(len(equations), 2 * space.l)


def left_cells(space: Space, prefix: Integers, suffix: Integers) -> Integers:
    """Left sides by their numbers, as cells."""
    first, operators, operands = space.decode(prefix, suffix)
    cells = np.empty((len(first), 2 * space.l - 2), dtype=_cell_type(space))
    cells[:, 0] = np.where(first < 0, SUBTRACT, ABSENT)
    cells[:, 1] = integer_ids(abs(first))
    cells[:, 2::2] = operators
    cells[:, 3::2] = integer_ids(operands)
    return cells


def _cell_type(space: Space) -> type[np.signedinteger[Any]]:
    return np.int16 if space.n + FIRST_INTEGER_ID < 1 << 15 else np.int32  # the less, the faster


@lru_cache(maxsize=2)
def _half_cells(space: Space) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]] | None:
    """The cells of every prefix and every suffix, each as one item; None where there are too many."""
    if max(space.prefixes, space.suffixes) > TABLE:
        return None
    cut = 2 + 2 * space.prefix_pairs
    prefixes, suffixes = np.arange(space.prefixes), np.arange(space.suffixes)
    front = left_cells(space, prefixes, np.zeros_like(prefixes))[:, :cut]
    back = left_cells(space, np.zeros_like(suffixes), suffixes)[:, cut:]
    return _items(front), _items(back)


def _items(cells: Integers) -> npt.NDArray[np.void]:
    """Each row as one item."""
    return np.ascontiguousarray(cells).view(f"V{cells.shape[1] * cells.itemsize}").ravel()
