"""Whole columns of texts that are put together from pieces: the form in which pairs are generated.

A *piece* is some tokens that come together (one token; ``( 25 - 20 )``; an inserted token and the one behind it), known
by a number. Rows have equally many pieces, some of them absent, so every step is one operation on a matrix; the
texts come from a table of the pieces' bytes, padded to one width, from which the padding is then dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.arithmetic.candidates import Equations, Space
from aegen.arithmetic.equation import SUBTRACT
from aegen.arithmetic.permutation import TABLE
from aegen.arithmetic.vocabulary import EQUALS_ID, FIRST_INTEGER_ID, Vocabulary, integer_ids
from aegen.columns.ragged import ABSENT, packed
from aegen.core.randomness import Words, keyed_hash
from aegen.core.types import Integers


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
