"""What the shards' footers count: figures of a dataset without reading a row."""

from __future__ import annotations

from pathlib import Path

from aegen.core.errors import BadData
from aegen.core.records import convert
from aegen.dataset.counts import Counts
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.names import shard_parts
from aegen.dataset.shards import open_shard
from aegen.engines.engine import Engine, bundled
from aegen.files.places import Remote


def read_counts(folder: Folder, manifest: Manifest, engine: Engine) -> dict[tuple[str, str], Counts]:
    """The counts by (config, split)."""
    names = [name for config in manifest.configs for name in manifest.shards(config)]
    found: dict[tuple[str, str], Counts] = {}
    counts = bundled(engine, shard_counts, ((folder / name, shard_parts(name)[0]) for name in names))
    for name, counted in zip(names, counts, strict=True):
        found[shard_parts(name)] = found.get(shard_parts(name), Counts()) + counted
    return found


def shard_counts(path: Path | Remote, config: str) -> Counts:
    """The counts in one shard's footer."""
    file, about = open_shard(path, config)
    with file:
        rows, is_steps = file.metadata.num_rows, "step" in file.schema_arrow.names
    counts = convert(about.counts, Counts, f"{path}: field counts")
    if is_steps and sum(counts.reached) != rows:
        raise BadData(f"{path}: field counts: {sum(counts.reached):,} steps, but the shard has {rows:,} rows")
    return counts
