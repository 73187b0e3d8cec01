"""Write the demonstrations of pairs: TG, TA and tags.

A shard of demonstrations is a pure function of the shard of pairs with the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from aegen.arithmetic.tasks import writable_tokens
from aegen.core.actions import Design, load_design
from aegen.core.description import FileInfo, PairsDescription, StepsDescription
from aegen.core.errors import InvalidSpec
from aegen.core.format import ConfigName
from aegen.core.progress import Progress
from aegen.dataset.folder import Folder
from aegen.dataset.names import shard_of, shard_parts
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import read_batches, read_description_of, write_shard
from aegen.engines.engine import Engine
from aegen.experts.augment import RULE
from aegen.experts.demonstrations import BATCH, step_batches
from aegen.experts.expert import Expert
from aegen.experts.metrics import Metric, load_metric
from aegen.experts.tags import TAGS, tag_batch
from aegen.experts.trajectory import Pairs, Summary
from aegen.files.places import Remote
from aegen.pipeline.resume import write_missing

Place = Path | Remote
Steps = Callable[[pa.RecordBatch, Summary], Iterator[pa.RecordBatch]]


def write_expert(
    folder: Folder, recipe: Recipe, pairs: Sequence[str], engine: Engine, progress: Progress
) -> dict[str, FileInfo]:
    """Expert trajectories (TG) of all pairs and variants."""
    configs: dict[str, ConfigName] = {"pairs": "expert", "variants": "variants_expert"}
    made = {name: configs[shard_parts(name)[0]] for name in pairs}
    return _write(folder, recipe.part("expert"), made, write_expert_shard, engine, progress)


def write_augmented(
    folder: Folder, recipe: Recipe, pairs: Sequence[str], engine: Engine, progress: Progress
) -> dict[str, FileInfo]:
    """Expert trajectories and those from shifted states (TG and TA) of the training pairs."""
    made: dict[str, ConfigName] = {name: "augmented" for name in pairs if name.startswith("pairs/train-")}
    return _write(folder, recipe.part("augmented"), made, write_expert_shard, engine, progress)


def write_tags(
    folder: Folder, recipe: Recipe, pairs: Sequence[str], engine: Engine, progress: Progress
) -> dict[str, FileInfo]:
    """Rounds of token-level tags of all pairs."""
    made: dict[str, ConfigName] = {name: "tags" for name in pairs if name.startswith("pairs/")}
    return _write(folder, recipe.part("tags"), made, write_tags_shard, engine, progress)


def _write(
    folder: Folder,
    recipe: Recipe,
    made: dict[str, ConfigName],
    function: Callable[..., list[FileInfo]],
    engine: Engine,
    progress: Progress,
) -> dict[str, FileInfo]:
    calls: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for name, config in made.items():
        shard = shard_of(name, config)
        calls[(shard,)] = (folder / name, folder / shard, config, recipe)
    title = min(made.values(), default="expert")
    return write_missing(folder, recipe, engine, progress, title, function, calls)


def write_expert_shard(pairs: Place, path: Place, config: ConfigName, recipe: Recipe) -> list[FileInfo]:
    """One shard of ``expert``, ``variants_expert`` or ``augmented``."""
    assert recipe.expert
    expert = recipe.expert.expert
    metric, design = load_metric(expert.metric), load_design(expert.design)
    augmentation = recipe.augmented if config == "augmented" else None
    if augmentation and augmentation.rule != RULE:  # a shard of an older dataset is missing
        recorded = f"the dataset records rule {augmentation.rule} of augmentation"
        raise InvalidSpec(f"{path}: {recorded}, this version writes rule {RULE}: build the dataset again")

    def steps(batch: pa.RecordBatch, summary: Summary) -> Iterator[pa.RecordBatch]:
        return step_batches(Pairs.of(batch), metric, design, augmentation, summary)

    usual = expert == Expert.of(recipe.task)
    return _write_shard(pairs, path, config, recipe, metric, design, steps, usual=usual)


def write_tags_shard(pairs: Place, path: Place, config: ConfigName, recipe: Recipe) -> list[FileInfo]:
    """One shard of ``tags``."""
    assert recipe.tags
    metric = load_metric(recipe.tags.metric)

    def steps(batch: pa.RecordBatch, summary: Summary) -> Iterator[pa.RecordBatch]:
        yield tag_batch(batch, metric, summary)

    return _write_shard(pairs, path, config, recipe, metric, TAGS, steps, usual=True)


def _write_shard(
    pairs: Place,
    path: Place,
    config: ConfigName,
    recipe: Recipe,
    metric: Metric,
    design: Design,
    steps: Steps,
    usual: bool,
) -> list[FileInfo]:
    texts, summary = read_description_of(pairs), Summary()

    def batches() -> Iterator[pa.RecordBatch]:
        for group in read_batches(pairs, texts.config):
            for start in range(0, len(group), BATCH):
                yield from steps(group.slice(start, BATCH), summary)

    def describe() -> StepsDescription:
        return _described(texts, config, recipe, metric, design, summary, usual)

    return [write_shard(path, config, batches(), describe, summary.kinds)]


def _described(
    texts: PairsDescription,
    config: ConfigName,
    recipe: Recipe,
    metric: Metric,
    design: Design,
    summary: Summary,
    usual: bool,
) -> StepsDescription:
    tokens = frozenset(summary.state_tokens)
    return StepsDescription(
        config=config,
        split=texts.split,
        task=texts.task,
        tokens=texts.tokens,
        arithmetic=texts.arithmetic,
        one_source=texts.one_source,
        goal=texts.goal,
        spec=recipe.tree(),
        metric=metric.name,
        backend=dict(metric.backend),
        design=design.name,
        usual=usual,
        slots=design.slots,
        state_tokens=tuple(sorted(tokens)),
        action_tokens=tuple(sorted(summary.action_tokens)),
        writable=tuple(sorted(writable_tokens(texts.task, design, tokens))),
        max_state=summary.max_state,
        action_length=summary.max_state + 1 if design is TAGS else len(design.slots),
        max_steps=summary.max_steps,
        capped_pairs=summary.capped_pairs,
    )
