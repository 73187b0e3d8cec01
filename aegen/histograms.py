"""How long the trajectories are, and of which kinds their edits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from aegen.actions import Design
from aegen.arrow import SPACE, to_numbers
from aegen.edits import Splice
from aegen.folder import Folder, Manifest
from aegen.shards import read_batches


@dataclass(frozen=True)
class Histograms:
    """Trajectories by their number of steps (DONE included), edits by their kind."""

    lengths: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


def histograms(folder: Folder, manifest: Manifest, config: str, design: Design) -> Histograms:
    """Counted over all splits of a config, one row group in memory at a time."""
    found, reached = Histograms(), Counter[int]()
    for name in manifest.shards(config):
        for batch in read_batches(folder / name, config, ["step", "action"]):
            reached.update(dict(enumerate(np.bincount(to_numbers(batch.column("step"))).tolist())))
            for entry in pc.value_counts(pc.binary_join(batch.column("action"), SPACE)).to_pylist():
                edit = design.decode(tuple(entry["values"].split(" ")))
                if isinstance(edit, Splice):
                    found.kinds[edit_kind(edit)] += entry["counts"]
    for step, count in sorted(reached.items()):  # who has a step k but no step k+1 has k+1 steps
        if ended := count - reached[step + 1]:
            found.lengths[step + 1] = ended
    return found


def edit_kind(edit: Splice) -> str:
    """What an edit does, in one word or two.

    >>> edit_kind(Splice(2, 2, ("+",))), edit_kind(Splice(2, 7, ("91",)))
    ('insert', 'replace a span')
    """
    if edit.start == edit.stop:
        return "insert"
    if not edit.new:
        return "delete"
    return "replace" if edit.stop - edit.start == 1 else "replace a span"
