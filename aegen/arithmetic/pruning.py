"""Which candidates of a large space are worth trying: what cannot be an equation is left out by the thousand.

Prefixes are sorted so that neighbours are alike and cut into runs of equal length; so are suffixes. A *tile* is one
run of prefixes with one run of suffixes. From the least and the greatest numbers of both runs follows between which
bounds all values of a tile lie, and what their denominators can be: a tile in which no value can be an integer of
2 … N+1 is left out, the others are numbered. Bounds are integers, rounded outwards: no equation is ever left out,
and whether a candidate is one is not decided here.

Of all candidates for N = 100 and L = 5 every 22nd is an equation, of those in the tiles that are left every third.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegen.core.types import Integers

Marks = npt.NDArray[np.bool_]
Bounds = tuple[Integers, Integers]

RUNS = 640  # of prefixes, and of suffixes, at most
STRIPS = 16  # neighbouring runs that are sorted by the second key together
BITS = 12  # behind the binary point of a bound, if there is room


@dataclass(frozen=True)
class Fractions:
    """Columns of numbers in lowest terms; denominators are positive."""

    above: Integers
    below: Integers

    @classmethod
    def of(cls, numerators: Integers, denominators: Integers) -> Fractions:
        common = np.gcd(numerators, denominators)
        return cls(numerators // common, denominators // common)

    @property
    def whole(self) -> Marks:
        """Which are integers."""
        return np.equal(self.below, 1)

    @property
    def size(self) -> npt.NDArray[np.float64]:
        """About how large they are: good enough to sort by."""
        return self.above / self.below

    def scaled(self, bits: int) -> Bounds:
        """Times 2^bits, rounded down and rounded up."""
        large = self.above << bits
        return large // self.below, -(-large // self.below)


@dataclass(frozen=True)
class Runs:
    """Sorted rows in runs of ``length``; the last row is repeated to fill the last run."""

    order: npt.NDArray[np.int64]  # the rows, run after run
    length: int
    count: int  # rows that are not there just to fill up

    @classmethod
    def sort(cls, group: Integers, first: Integers, second: Integers) -> Runs:
        """Alike means: of the same group, then about the same in ``first``, then in ``second``."""
        count = len(group)
        length = -(-count // RUNS)
        strip = np.empty(count, dtype=np.int64)
        strip[np.lexsort((first, group))] = np.arange(count) // (length * STRIPS)
        order = np.lexsort((second, strip, group))
        return cls(np.concatenate([order, np.repeat(order[-1:], -count % length)]), length, count)

    def bounds(self, low: Integers, high: Integers) -> Bounds:
        """The least ``low`` and the greatest ``high`` of each run."""
        shape = -1, self.length
        return low[self.order].reshape(shape).min(axis=1), high[self.order].reshape(shape).max(axis=1)

    def all(self, marks: Marks) -> Marks:
        """Which runs are marked in all rows."""
        found: Marks = np.asarray(marks[self.order].reshape(-1, self.length).all(axis=1))
        return found


@dataclass(frozen=True)
class Tiles:
    """The tiles that are left. ``front`` and ``back`` are the tables of a ``Space``, sorted into runs."""

    front: Integers
    back: Integers
    prefixes: Runs
    suffixes: Runs
    first_row: npt.NDArray[np.int32]  # of each tile, in ``front``
    first_column: npt.NDArray[np.int32]  # and in ``back``

    def __len__(self) -> int:
        return len(self.first_row)

    @property
    def size(self) -> int:
        """Candidates of one tile."""
        return self.prefixes.length * self.suffixes.length

    def rows(self, tile: Integers, within: Integers) -> tuple[Integers, Integers]:
        """Rows of ``front`` and ``back``: candidate ``within`` of a tile."""
        row = within // self.suffixes.length
        column = within - row * self.suffixes.length
        return self.first_row.take(tile) + row, self.first_column.take(tile) + column

    def halves(self, front: Integers, back: Integers) -> tuple[Integers, Integers, Integers]:
        """Which of these rows are not there just to fill up a run, and the prefixes and suffixes of those."""
        (there,) = np.nonzero((front < self.prefixes.count) & (back < self.suffixes.count))
        return there, self.prefixes.order.take(front.take(there)), self.suffixes.order.take(back.take(there))

    @classmethod
    def of(cls, front: Integers, back: Integers, n: int, largest: int) -> Tiles | None:
        """From the tables of a space and the largest number in them; None where bounds would not fit 63 bits."""
        bits = min(BITS, (62 - (4 * largest).bit_length()) // 2)
        if bits < 0:
            return None
        total, term, denominator = (front[:, column].astype(np.int64) for column in range(3))
        factor, adds, divisor = (back[:, column].astype(np.int64) for column in range(3))
        halves = _Halves(
            Fractions.of(total, denominator),
            Fractions.of(term, denominator),
            Fractions.of(total + term, denominator),
            Fractions.of(factor, divisor),
            Fractions.of(adds, divisor),
        )
        prefixes, suffixes, left = halves.left(n, bits)
        row, column = np.nonzero(left)
        return cls(
            front[prefixes.order],
            back[suffixes.order],
            prefixes,
            suffixes,
            (row * prefixes.length).astype(np.int32),
            (column * suffixes.length).astype(np.int32),
        )


@dataclass(frozen=True)
class _Halves:
    """A prefix is ``total + term`` = ``value`` with its last term open; a suffix makes total + term * factor + adds."""

    total: Fractions
    term: Fractions
    value: Fractions
    factor: Fractions
    adds: Fractions

    def left(self, n: int, bits: int) -> tuple[Runs, Runs, Marks]:
        """The runs, and which of their tiles can hold an equation."""
        prefixes, suffixes = self._prefixes(), self._suffixes()
        fine = 2 * bits  # a term and its factor have ``bits`` each
        least, most = 2 << fine, (n + 1) << fine

        def reach(low: Integers, high: Integers) -> Marks:
            return (low <= most) & (high >= least)

        totals, values = (prefixes.bounds(*part.scaled(fine)) for part in (self.total, self.value))
        sums = suffixes.bounds(*self.adds.scaled(fine))
        terms, factors = prefixes.bounds(*self.term.scaled(bits)), suffixes.bounds(*self.factor.scaled(bits))
        left = reach(
            np.minimum(*(terms[0][:, None] * end for end in factors)) + (totals[0][:, None] + sums[0]),
            np.maximum(*(terms[1][:, None] * end for end in factors)) + (totals[1][:, None] + sums[1]),
        )
        # Where the suffix only adds, value + adds is the result: it is whole only if both have one denominator.
        only_adds = suffixes.all(self._only_adds)
        mine, theirs = (
            runs.bounds(part.below, part.below) for runs, part in ((prefixes, self.value), (suffixes, self.adds))
        )
        left &= ~only_adds | (
            reach(values[0][:, None] + sums[0], values[1][:, None] + sums[1])
            & (mine[0][:, None] <= theirs[1])
            & (mine[1][:, None] >= theirs[0])
        )
        # Where all but term * factor is whole, the denominator of each must divide the numerator of the other.
        above, below = abs(self.term.above), self.term.below
        left &= ~(prefixes.all(self.total.whole)[:, None] & suffixes.all(self.adds.whole)) | (
            (prefixes.bounds(below, below)[0][:, None] <= suffixes.bounds(self.factor.above, self.factor.above)[1])
            & (prefixes.bounds(above, above)[1][:, None] >= suffixes.bounds(self.factor.below, self.factor.below)[0])
        )
        return prefixes, suffixes, left

    @property
    def _only_adds(self) -> Marks:
        return np.equal(self.factor.above, 1) & self.factor.whole

    def _prefixes(self) -> Runs:
        whole = self.value.whole
        return Runs.sort(~whole, np.where(whole, self.term.size, self.value.below), self.value.size)

    def _suffixes(self) -> Runs:
        """By kind: what only adds, what multiplies, divides, does both; and whether what is added is whole."""
        times, by, plain = self.factor.above > 1, ~self.factor.whole, self._only_adds
        return Runs.sort(
            times + 2 * by + 4 * ~self.adds.whole,
            np.where(plain, self.adds.below, np.where(by, self.factor.below, self.factor.above)),
            np.where(times & by, self.factor.size, self.adds.size),
        )
