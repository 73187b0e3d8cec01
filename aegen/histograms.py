"""How long the trajectories are, and of which kinds their edits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow.compute as pc

from aegen.actions import DONE, Design
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
    found = Histograms()
    for name in manifest.shards(config):
        for batch in read_batches(folder / name, config, ["step", "action"]):
            last = pc.equal(pc.list_element(batch.column("action"), 0), DONE)
            for entry in pc.value_counts(pc.filter(batch.column("step"), last)).to_pylist():
                found.lengths[entry["values"] + 1] += entry["counts"]
            for entry in pc.value_counts(pc.binary_join(batch.column("action"), " ")).to_pylist():
                edit = design.decode(tuple(entry["values"].split(" ")))
                if isinstance(edit, Splice):
                    found.kinds[edit_kind(edit)] += entry["counts"]
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
