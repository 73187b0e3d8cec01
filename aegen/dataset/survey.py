"""What the card says about rows, counted shard by shard wherever the engine runs; only the counts come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegen.columns.arrow import SPACE, to_numbers
from aegen.columns.schemas import SCHEMAS
from aegen.core.actions import Design
from aegen.core.edits import Splice
from aegen.core.errors import BadData
from aegen.dataset.contract import Contract
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches
from aegen.engines.engine import Engine, bundled
from aegen.files.places import Remote

BUNDLE_ROWS = 100_000  # of shards that are counted in one go


@dataclass
class Survey:
    """Counts over the rows of one shard or of several: they add up."""

    bytes: int = 0  # in memory
    unchanged: int = 0  # pairs that need no edit
    reached: Counter[int] = field(default_factory=Counter)  # rows by the number of their step
    kinds: Counter[str] = field(default_factory=Counter)  # edits by what they do

    @property
    def trajectories(self) -> int:
        return self.reached[0]

    @property
    def lengths(self) -> Counter[int]:
        """Trajectories by their number of steps, DONE included."""
        # Who has a step k but no step k+1 has k+1 steps.
        ended = {step + 1: count - self.reached[step + 1] for step, count in sorted(self.reached.items())}
        return Counter({steps: count for steps, count in ended.items() if count})

    def add(self, batch: pa.RecordBatch, design: Design | None) -> None:
        """Count some rows: of pairs, or of demonstrations, whose edits can be read in words of a design."""
        self.bytes += batch.nbytes
        if "source" in batch.schema.names:
            self.unchanged += int(pc.sum(pc.equal(batch.column("source"), batch.column("target"))).as_py() or 0)
            return
        self.reached.update(dict(enumerate(np.bincount(to_numbers(batch.column("step"))).tolist())))
        if design is None:  # tags and variants have no histogram of their own
            return
        for entry in pc.value_counts(pc.binary_join(batch.column("action"), SPACE)).to_pylist():
            edit = design.decode(tuple(entry["values"].split(" ")))
            if isinstance(edit, Splice):
                self.kinds[edit_kind(edit)] += entry["counts"]


def together(surveys: Iterable[Survey]) -> Survey:
    """One survey of all.

    >>> together([Survey(bytes=1), Survey(bytes=2)]).bytes
    3
    """
    total = Survey()
    for found in surveys:
        total.bytes += found.bytes
        total.unchanged += found.unchanged
        total.reached.update(found.reached)
        total.kinds.update(found.kinds)
    return total


def survey(
    folder: Folder, manifest: Manifest, contracts: dict[str, Contract], engine: Engine
) -> dict[tuple[str, str], Survey]:
    """The counts by (config, split), one row group in memory at a time."""
    jobs = [
        (config, name, contracts[config].design if config in contracts else None)
        for config in manifest.configs
        for name in manifest.shards(config)
    ]
    found: dict[tuple[str, str], Survey] = {}
    calls = ((folder / name, config, design) for config, name, design in jobs)
    rows = (manifest.files[name].rows for _, name, _ in jobs)
    surveys = bundled(engine, survey_shard, calls, rows, most=BUNDLE_ROWS)
    for (config, name, _), counted in zip(jobs, surveys, strict=True):
        key = config, name.partition("/")[2].partition("-")[0]
        found[key] = together([found.get(key, Survey()), counted])
    return found


def survey_shard(path: Path | Remote, config: str, design: Design | None) -> Survey:
    """The counts of one shard."""
    counted = Survey()
    for batch in read_batches(path, config, list(SCHEMAS[config].names)):
        if len(batch) and "step" in batch.schema.names and pc.min(batch.column("step")).as_py() < 0:
            raise BadData(f"{path}: a step with a number below 0")
        counted.add(batch, design)
    return counted


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
