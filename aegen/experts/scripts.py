"""Edit scripts of whole columns of pairs.

Edits are executed from left to right, and each leaves the goal's tokens behind it. So the state before an edit is a
prefix of the goal followed by a suffix of the source, and a script is four integers per edit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegen.columns.ragged import Ragged
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

    def rows(self, index: Integers) -> Scripts:
        """The scripts of some pairs, in any order."""
        counts = self.counts[index]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        which = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], counts)
        return Scripts(offsets, *(column.take(which) for column in self.edits))

    @classmethod
    def merged(cls, rows: int, parts: list[tuple[Integers, Scripts]]) -> Scripts:
        """The scripts of rows 0 … rows-1, from parts with the rows that each one holds."""
        counts = np.zeros(rows, dtype=np.int64)
        for where, part in parts:
            counts[where] = part.counts
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        columns = np.empty((4, offsets[-1]), dtype=np.int64)
        for where, part in parts:
            places = np.arange(part.offsets[-1]) + np.repeat(offsets[where] - part.offsets[:-1], part.counts)
            columns[:, places] = part.edits
        return cls(offsets, *columns)


KINDS = ("insert", "delete", "replace", "replace a span")


def edit_kinds(removed: Integers, added: Integers) -> Integers:
    """What edits do, as indices of KINDS, by how many tokens they remove and add.

    >>> [KINDS[kind] for kind in edit_kinds(np.array([0, 1, 1, 5]), np.array([1, 0, 1, 1]))]
    ['insert', 'delete', 'replace', 'replace a span']
    """
    return np.where(removed == 0, 0, np.where(added == 0, 1, np.where(removed == 1, 2, 3)))


def unambiguous_insertions(goals: Ragged, scripts: Scripts) -> bool:
    """Whether all edits insert one token, and no state between a source and its goal lies in the goal in two ways.

    Two ways mean that a token is in the goal twice, with nothing but missing tokens between the two places. So tokens
    that are inserted side by side, and their two neighbours in the source, must all be different.

    >>> insert = Scripts(*map(np.array, ([0, 1], [1], [1], [1], [2])))
    >>> [unambiguous_insertions(Ragged(np.array(goal), np.array([0, 3])), insert) for goal in ([7, 8, 9], [7, 7, 9])]
    [True, False]
    """
    if (scripts.stop > scripts.start).any() or (scripts.new_stop - scripts.new_start != 1).any():
        return False
    tokens = goals.padded()
    row = np.repeat(np.arange(len(tokens)), scripts.counts)
    inserted = np.zeros(tokens.shape, dtype=bool)
    inserted[row, scripts.new_start] = True
    for apart in range(1, tokens.shape[1]):
        # Pairs of places with nothing but insertions between them, one of the two an insertion.
        near = inserted[:, :-apart] | inserted[:, apart:]
        for between in range(1, apart):
            near &= inserted[:, between : between - apart]
        if not near.any():
            break
        if (near & (tokens[:, :-apart] == tokens[:, apart:])).any():
            return False
    return True
