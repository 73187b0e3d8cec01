"""Counts of a shard's rows: taken while it is written, stored in its footer."""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta, Struct

from aegen.columns.arrow import SPACE, text_offsets, to_numbers
from aegen.core.actions import Design
from aegen.core.description import Count
from aegen.core.edits import Splice
from aegen.core.format import MAX_STEPS
from aegen.experts.scripts import KINDS, edit_kinds


class Counts(Struct, frozen=True):
    """Counts of the rows of one shard or of several.

    >>> Counts(bytes=1, reached=(2, 1)) + Counts(bytes=2, reached=(1,), kinds={"insert": 1})
    Counts(bytes=3, unchanged=0, reached=(3, 1), kinds={'insert': 1})
    """

    bytes: Count = 0  # in memory
    unchanged: Count = 0  # pairs that need no edit
    reached: Annotated[tuple[Count, ...], Meta(max_length=MAX_STEPS)] = ()  # rows by the number of their step
    kinds: dict[str, Count] = {}  # edits by what they do

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.bytes + other.bytes,
            self.unchanged + other.unchanged,
            tuple(map(sum, zip_longest(self.reached, other.reached, fillvalue=0))),
            {kind: self.kinds.get(kind, 0) + other.kinds.get(kind, 0) for kind in sorted({*self.kinds, *other.kinds})},
        )

    @property
    def trajectories(self) -> int:
        return self.reached[0] if self.reached else 0

    @property
    def lengths(self) -> dict[int, int]:
        """Trajectories by their number of steps, DONE included.

        >>> Counts(reached=(5, 4, 1)).lengths
        {1: 1, 2: 3, 3: 1}
        """
        ended = zip(self.reached, (*self.reached[1:], 0), strict=True)
        return {steps: count - later for steps, (count, later) in enumerate(ended, start=1) if count > later}


def count_rows(batch: pa.RecordBatch, design: Design | None = None) -> Counts:
    """The counts of some rows; the kinds of edits are read from the actions, if their design is given."""
    size = sum(map(_bytes, batch.columns))
    if "edits" in batch.schema.names or ("target" not in batch.schema.names and "source" in batch.schema.names):
        return Counts(size)
    if "source" in batch.schema.names:
        same = pc.sum(pc.equal(batch.column("source"), batch.column("target"))).as_py() or 0
        return Counts(size, unchanged=same)
    reached = np.bincount(to_numbers(batch.column("step"))).tolist()
    return Counts(size, reached=tuple(reached), kinds=_kinds(batch.column("action"), design) if design else {})


def _kinds(actions: pa.ListArray, design: Design) -> dict[str, int]:
    found = np.zeros(len(KINDS), dtype=np.int64)
    for entry in pc.value_counts(pc.binary_join(actions, SPACE)).to_pylist():
        edit = design.decode(tuple(entry["values"].split(" ")))
        if isinstance(edit, Splice):
            found[edit_kinds(np.array(edit.stop - edit.start), np.array(len(edit.new)))] += entry["counts"]
    return {kind: count for kind, count in zip(KINDS, found.tolist(), strict=True) if count}


def _bytes(column: pa.Array) -> int:
    """The size of a column in memory, whatever the batches that it comes in: one offset per row and no bitmaps."""
    if pa.types.is_list(column.type):
        return 4 * len(column) + _bytes(column.flatten())
    if pa.types.is_string(column.type):
        offsets = text_offsets(column)
        return 4 * len(column) + int(offsets[-1] - offsets[0])
    return len(column) * int(column.type.bit_width) // 8
