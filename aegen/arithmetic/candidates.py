"""Which equation comes when: the numbering of left sides, a keyed permutation, randomness by position.

The left sides of a spec are numbered by pairs (prefix, suffix) of a ``Space``; a Feistel network over exactly
that product of ranges (generalised as by Black and Rogaway, 2002) visits each of them once in an order that only the
key knows. So rows are unique without remembering any, and any range of positions can be made alone, anywhere.
All other randomness is a hash of (key, position, number of the draw), never a running generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from aegen.arithmetic.equation import fold, integer_type, largest
from aegen.arithmetic.permutation import TABLE, Permutation
from aegen.arithmetic.pruning import Tiles
from aegen.core.types import Integers

CHUNK = 1 << 13  # candidates at a time: the working set stays in the processor's cache
BLOCK = 1 << 13  # equations that are made at a time, about
ENUMERABLE = 1 << 24  # spaces up to this many candidates are listed


@dataclass(frozen=True)
class Space:
    """All left sides for N and L, cut into a prefix (first integer and some pairs) and a suffix (the other pairs)."""

    n: int
    l: int

    @property
    def prefix_pairs(self) -> int:
        return (self.l - 2) // 2

    @property
    def prefixes(self) -> int:
        return int((2 * self.n - 1) * (4 * self.n) ** self.prefix_pairs)

    @property
    def suffixes(self) -> int:
        return int((4 * self.n) ** (self.l - 2 - self.prefix_pairs))

    @property
    def candidates(self) -> int:
        return self.prefixes * self.suffixes

    def _pairs(self, index: Integers, count: int) -> tuple[Integers, Integers, Integers]:
        """Read ``count`` digits of base 4N as (operator, integer) pairs; also what is left of the index."""
        kind = integer_type(self.n, self.l)
        operators = np.empty((len(index), count), dtype=np.int8)
        operands = np.empty((len(index), count), dtype=kind)
        for column in reversed(range(count)):
            index, digit = np.divmod(index, 4 * self.n)
            operator, operand = np.divmod(digit, self.n)
            operators[:, column] = operator
            operands[:, column] = operand + 2
        return index, operators, operands

    def _first(self, digit: Integers) -> Integers:
        """0 … N-1 are the integers 2 … N+1, the rest -N … -2."""
        return np.where(digit < self.n, digit + 2, digit - (2 * self.n)).astype(integer_type(self.n, self.l))

    def decode(self, prefix: Integers, suffix: Integers) -> tuple[Integers, Integers, Integers]:
        """The left sides with these numbers: (first integers, operators, operands)."""
        digit, front_operators, front_operands = self._pairs(prefix, self.prefix_pairs)
        _, back_operators, back_operands = self._pairs(suffix, self.l - 2 - self.prefix_pairs)
        operators = np.concatenate([front_operators, back_operators], axis=1)
        return self._first(digit), operators, np.concatenate([front_operands, back_operands], axis=1)

    def encode(self, first: Integers, operators: Integers, operands: Integers) -> Integers:
        """The number of each left side, the inverse of :meth:`decode` (prefix * suffixes + suffix)."""
        number: Integers = np.where(first > 0, first - 2, first + 2 * self.n).astype(np.int64)
        for column in range(operators.shape[1]):
            digit = operators[:, column].astype(np.int64) * self.n + operands[:, column] - 2
            number = number * (4 * self.n) + digit
        return number

    def _front(self, prefix: Integers) -> Integers:
        """(total, open term, denominator) after each prefix, one row a prefix."""
        digit, operators, operands = self._pairs(prefix, self.prefix_pairs)
        first = self._first(digit)
        total, term, denominator = fold(np.zeros_like(first), first, np.ones_like(first), operators, operands)
        return np.stack([total, term, denominator, denominator], axis=1)  # four columns: rows of 16 bytes move faster

    def _back(self, suffix: Integers) -> Integers:
        """What each suffix does to any prefix: (factor of the open term, what it adds, its denominator)."""
        _, operators, operands = self._pairs(suffix, self.l - 2 - self.prefix_pairs)
        one = np.ones(len(suffix), dtype=operands.dtype)
        total, term, denominator = fold(one * 0, one, one, operators, operands, fresh=0)
        added, adding, _ = fold(one * 0, one * 0, one, operators, operands)
        return np.stack([total + term, added + adding, denominator, denominator], axis=1)

    @cached_property
    def _tables(self) -> tuple[Integers | None, Integers | None]:
        front = self._front(np.arange(self.prefixes)) if self.prefixes <= TABLE else None
        back = self._back(np.arange(self.suffixes)) if self.suffixes <= TABLE else None
        return front, back

    def valid(self, prefix: Integers, suffix: Integers) -> tuple[Integers, Integers]:
        """Which of the candidates are equations (their indices), and the right-hand sides of those."""
        front_table, back_table = self._tables
        front = self._front(prefix) if front_table is None else front_table.take(prefix, axis=0)
        back = self._back(suffix) if back_table is None else back_table.take(suffix, axis=0)
        return self.holding(front, back)

    def holding(self, front: Integers, back: Integers) -> tuple[Integers, Integers]:
        """Indices and values of the rows where prefix and suffix together make an integer in 2 … N+1."""
        total, term, denominator = front[..., 0], front[..., 1], front[..., 2]
        factor, adds, divisor = back[..., 0], back[..., 1], back[..., 2]
        numerator = (total * divisor + term * factor + adds * denominator).ravel()
        denominator = (denominator * divisor).ravel()
        # The range first: it drops most candidates, and the remainder is the one slow operation.
        (near,) = np.nonzero((numerator >= 2 * denominator) & (numerator <= (self.n + 1) * denominator))
        quotient, remainder = np.divmod(numerator[near], denominator[near])
        exact = remainder == 0
        return near[exact], quotient[exact]

    @cached_property
    def listed(self) -> tuple[Integers, Integers, Integers] | None:
        """Prefix, suffix and right-hand side of all equations of a small space, in order; None for a large one."""
        front, back = self._tables
        if front is None or back is None or self.candidates > ENUMERABLE:
            return None
        numbers, rights = [], []
        rows = max(1, 4 * CHUNK // self.suffixes)
        for start in range(0, self.prefixes, rows):
            hits, right = self.holding(front[start : start + rows, None], back[None])
            numbers.append(hits + start * self.suffixes)
            rights.append(right)
        return *np.divmod(np.concatenate(numbers), self.suffixes), np.concatenate(rights)

    @cached_property
    def tiles(self) -> Tiles | None:
        """What is worth trying in a large space; None where it has too many halves to look at them all."""
        front, back = self._tables
        return None if front is None or back is None else Tiles.of(front, back, self.n, largest(self.n, self.l))


@dataclass(frozen=True)
class Equations:
    """Columns of valid equations: the two halves of the left side by their numbers, and the right-hand side."""

    space: Space
    prefix: Integers
    suffix: Integers
    right: Integers

    def __len__(self) -> int:
        return len(self.right)


class Order:
    """The keyed order of all equations for N and L: positions 0 … size-1, some of them empty.

    A small space is listed first and the permutation runs over the list; of a large one the tiles are permuted that
    are worth trying, or all of it, and every candidate is tried when its turn comes.
    """

    def __init__(self, n: int, l: int, key: int) -> None:
        self.space = Space(n, l)
        self.listed = self.space.listed
        self.tiles = None if self.listed else self.space.tiles
        share = 1  # candidates for one equation, about
        if self.listed:
            side = max(1, math.isqrt(len(self.listed[0])))
            halves = side, max(1, -(-len(self.listed[0]) // side))
        elif self.tiles:
            halves, share = (max(1, len(self.tiles)), self.tiles.size), 4
        else:
            halves, share = (self.space.prefixes, self.space.suffixes), 16
        self.permutation = Permutation(key, *halves)
        self.size = halves[0] * halves[1]
        self.block = BLOCK * share

    def equations(self, start: int, stop: int) -> tuple[npt.NDArray[np.int64], Equations]:
        """The equations at positions start … stop-1, with those positions.

        >>> from aegen.core.randomness import derive_key
        >>> positions, found = Order(10, 5, derive_key("example")).equations(0, 1000)
        >>> len(positions) == len(found), bool((found.right >= 2).all())
        (True, True)
        """
        parts = [self._chunk(at, min(at + CHUNK, stop, self.size)) for at in range(start, min(stop, self.size), CHUNK)]
        positions, prefix, suffix, right = (np.concatenate(column) for column in zip(*parts, strict=True))
        return positions, Equations(self.space, prefix, suffix, right)

    def _chunk(self, start: int, stop: int) -> tuple[Integers, ...]:
        """Positions, prefixes, suffixes and right-hand sides of the equations among some candidates."""
        left, right = self.permutation(np.arange(start, stop, dtype=np.int64))
        if self.listed:
            index = left * self.permutation.b + right
            (hits,) = np.nonzero(index < len(self.listed[0]))
            index = index.take(hits)
            return hits + start, *(column.take(index) for column in self.listed)
        if self.tiles:
            front, back = self.tiles.rows(left, right)
            hits, value = self.space.holding(self.tiles.front.take(front, axis=0), self.tiles.back.take(back, axis=0))
            there, prefix, suffix = self.tiles.halves(front.take(hits), back.take(hits))
            return hits[there] + start, prefix, suffix, value[there]
        hits, value = self.space.valid(left, right)
        return hits + start, left[hits], right[hits], value


@lru_cache(maxsize=4)
def order(n: int, l: int, key: int) -> Order:
    """The order under a key; cached because its tables take a moment to fill."""
    return Order(n, l, key)
