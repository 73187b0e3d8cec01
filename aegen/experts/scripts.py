"""Edit scripts of whole columns of pairs.

Because every edit leaves the goal's own tokens behind it, the state before an edit is always a prefix of the goal and
a suffix of the source; so a script is four integers an edit, and no state needs to be built to find it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegen.columns.ragged import ABSENT, Ragged
from aegen.core.types import Integers

Offsets = npt.NDArray[np.int64]
Edits = tuple[Offsets, Offsets, Offsets, Offsets]


@dataclass(frozen=True)
class Scripts:
    """Edit k turns ``source[start:stop]`` into ``goal[new_start:new_stop]``.

    The edits of pair i are those from ``offsets[i]`` to ``offsets[i + 1]``, left to right.
    """

    offsets: Offsets
    start: Offsets
    stop: Offsets
    new_start: Offsets
    new_stop: Offsets

    @property
    def counts(self) -> Offsets:
        """Edits of each pair."""
        return np.diff(self.offsets)

    @property
    def edits(self) -> Edits:
        """The four columns."""
        return self.start, self.stop, self.new_start, self.new_stop

    def part(self, begin: int, end: int) -> Scripts:
        """The scripts of the pairs begin … end-1."""
        if (begin, end) == (0, len(self.offsets) - 1):
            return self
        first, last = self.offsets[begin], self.offsets[end]
        return Scripts(self.offsets[begin : end + 1] - first, *(column[first:last] for column in self.edits))

    @classmethod
    def merged(cls, rows: int, parts: list[tuple[Integers, Scripts]]) -> Scripts:
        """Scripts of the rows 0 … rows-1 from parts that say which rows theirs are."""
        counts = np.zeros(rows, dtype=np.int64)
        for where, part in parts:
            counts[where] = part.counts
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        columns = np.empty((4, offsets[-1]), dtype=np.int64)
        for where, part in parts:
            places = np.arange(part.offsets[-1]) + np.repeat(offsets[where] - part.offsets[:-1], part.counts)
            columns[:, places] = part.edits
        return cls(offsets, *columns)


def forced_scripts(states: Ragged, goals: Ragged) -> tuple[Integers, Scripts]:
    """The rows where only one shortest script exists, and those scripts.

    If a state lies in its goal as a subsequence, every shortest script inserts the rest of the goal and nothing else,
    and there are as many as ways to find the state in the goal. Found from the left and from the right in the same
    places, there is one way: nobody has to be asked which script is meant. Likewise for deletions.
    """
    grows = states.lengths <= goals.lengths
    inner, outer = states, goals
    if not grows.all():
        inner, outer = Ragged.chosen(grows, states, goals), Ragged.chosen(grows, goals, states)
    found, whole, early = _find(inner.padded(), outer.padded(), inner.lengths)
    _, _, late = _find(inner.padded(reverse=True), outer.padded(reverse=True), inner.lengths)
    late = inner.lengths * (outer.lengths - 1) - late  # counted from the left again
    # No token is found further left than from the left: equal sums of places mean equal places.
    (rows,) = np.nonzero(whole & (early == late))
    left_out = (np.arange(found.shape[1]) < outer.lengths[rows][:, None]) & ~found[rows]
    row, place = np.divmod(np.flatnonzero(left_out), max(found.shape[1], 1))
    counts = outer.lengths[rows] - inner.lengths[rows]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    before = place - (np.arange(len(row)) - offsets[row])  # tokens of the inner sequence to the left
    inserted = grows[rows][row]
    start, new_start = np.where(inserted, before, place), np.where(inserted, place, before)
    return rows, Scripts(offsets, start, start + ~inserted, new_start, new_start + inserted)


def _find(inner: Integers, outer: Integers, lengths: Integers) -> tuple[npt.NDArray[np.bool_], Integers, Integers]:
    """Look for each inner sequence in its outer one, as early as possible.

    Where its tokens are (a mark for each place), whether all of it is there, and the sum of the places.
    """
    rows, width = inner.shape
    reached, places = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    # One more column that nothing equals: there the search waits when it has found everything.
    wanted = np.concatenate([inner, np.full((rows, 1), ABSENT - 1, dtype=inner.dtype)], axis=1).ravel()
    wanted[np.arange(rows) * (width + 1) + lengths] = ABSENT - 1
    base = np.arange(rows) * (width + 1)
    found = np.empty(outer.shape, dtype=bool)
    for column in range(outer.shape[1]):
        here = wanted.take(base + reached) == outer[:, column]
        found[:, column] = here
        reached += here
        places += here * column
    return found, reached == lengths, places
