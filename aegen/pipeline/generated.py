"""Write the pairs of a spec, shard by shard."""

from __future__ import annotations

from contextlib import ExitStack

from aegen.arithmetic.goals import goal_of
from aegen.arithmetic.tasks import TASKS
from aegen.core.description import FileInfo, PairsDescription
from aegen.core.format import SPLITS, ConfigName, SplitName
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.names import shard_name, shard_parts
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import ShardWriter
from aegen.engines.engine import Engine
from aegen.pairs.generate import Layout, part_of, stripe_batches, stripes
from aegen.pairs.spec import Spec
from aegen.pipeline.resume import write_missing


def describe(spec: Spec, config: ConfigName, split: SplitName) -> PairsDescription:
    """The description of a shard of generated pairs."""
    return PairsDescription(
        config=config,
        split=split,
        task=spec.task,
        tokens="words",
        arithmetic=True,
        one_source=TASKS[spec.task].one_source,
        goal=goal_of(spec.task, spec.errors, spec.l),
        spec=Recipe(spec).tree(),
    )


def write_stripe(folder: Folder, names: tuple[str, ...], spec: Spec, layout: Layout, index: int) -> list[FileInfo]:
    """Write shard ``index`` of every split: a pure function of spec and index (the layout follows from the spec)."""
    with ExitStack() as stack:
        shards = {
            shard_parts(name): stack.enter_context(ShardWriter(folder / name, shard_parts(name)[0])) for name in names
        }
        for config, split, batch in stripe_batches(spec, layout, index):
            shards[config, split].write(batch)
        for (config, split), shard in shards.items():
            shard.finish(describe(spec, config, split))
    return [shard.info for shard in shards.values()]


def shard_names(spec: Spec, index: int, total: int) -> tuple[str, ...]:
    """The shards of one stripe: pairs of every split, and the variants of the training pairs."""
    parts = [("pairs", split) for split in SPLITS] + ([("variants", "train")] if spec.variants else [])
    return tuple(shard_name(config, split, index, total) for config, split in parts)


def write_pairs(
    recipe: Recipe, layout: Layout, folder: Folder, engine: Engine, progress: Progress = silent
) -> dict[str, FileInfo]:
    """Write all pairs of a spec that are missing; the caller holds the folder and finishes it."""
    spec = recipe.spec
    assert spec
    total, calls = stripes(spec, layout), {}
    for index in range(total):
        names = shard_names(spec, index, total)
        calls[names] = (folder, names, spec, part_of(layout, spec, index), index)
    return write_missing(folder, recipe.part("pairs"), engine, progress, "pairs", write_stripe, calls)
