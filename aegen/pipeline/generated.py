"""Write the pairs of a spec, shard by shard."""

from __future__ import annotations

from contextlib import ExitStack

from aegen.core.format import FORMAT, SPLITS
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import FileInfo
from aegen.dataset.names import shard_name, shard_parts
from aegen.dataset.shards import Description, ShardWriter
from aegen.engines.local import Engine
from aegen.pairs.generate import Layout, part_of, stripe_batches, stripes
from aegen.pairs.spec import ONE_SOURCE, Spec, spec_tree
from aegen.pipeline.resume import write_missing


def describe(spec: Spec, config: str, split: str) -> Description:
    """The self-description of a shard of generated pairs."""
    return {
        "format": FORMAT,
        "config": config,
        "split": split,
        "task": spec.task,
        "tokens": "words",
        "arithmetic": True,
        "one_source": spec.task in ONE_SOURCE,
        "spec": spec_tree(spec),
    }


def write_stripe(folder: Folder, names: tuple[str, ...], spec: Spec, layout: Layout, index: int) -> list[FileInfo]:
    """Shard ``index`` of every split: a pure function of spec and index (the layout follows from the spec)."""
    with ExitStack() as stack:
        shards = {
            shard_parts(name): stack.enter_context(ShardWriter(folder / name, shard_parts(name)[0])) for name in names
        }
        for config, split, batch in stripe_batches(spec, layout, index):
            shards[config, split].write(batch)
        for (config, split), shard in shards.items():
            shard.finish(describe(spec, config, split))
    return [shard.info for shard in shards.values()]


def write_pairs(
    spec: Spec, layout: Layout, folder: Folder, engine: Engine, progress: Progress = silent
) -> dict[str, FileInfo]:
    """Write all pairs of a spec that are not there yet; the caller holds the folder and finishes it."""
    parts = [("pairs", split) for split in SPLITS] + ([("variants", "train")] if spec.variants else [])
    total, calls = stripes(spec, layout), {}
    for index in range(total):
        names = tuple(shard_name(config, split, index, total) for config, split in parts)
        calls[names] = (folder, names, spec, part_of(layout, spec, index), index)
    return write_missing(folder, spec_tree(spec), engine, progress, "pairs", write_stripe, calls)
