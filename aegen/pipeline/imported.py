"""Write imported pairs and the edits of their annotators, shard by shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from aegen.arithmetic.goals import goal_of
from aegen.arithmetic.tasks import TASKS
from aegen.columns.arrow import of_numbers, of_texts
from aegen.columns.schemas import ANNOTATIONS, PAIRS
from aegen.core.description import FileInfo, PairsDescription
from aegen.core.errors import BadData
from aegen.core.format import SPLITS, ConfigName, SplitName
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.names import shard_name
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import write_shard
from aegen.files.parquet import ROW_GROUP
from aegen.pairs.importing import Import, Parsed

Batches = Callable[[Iterator[Parsed], int], Iterator[pa.RecordBatch]]
CHANGED = "the input has changed"


def write_imported(
    source: Import, recipe: Recipe, counts: dict[str, int], folder: Folder, progress: Progress = silent
) -> dict[str, FileInfo]:
    """Write all shards of an import that are missing, split by split."""
    return _write("pairs", _batches, source, recipe, counts, folder, progress)


def write_annotations(
    source: Import, recipe: Recipe, counts: dict[str, int], folder: Folder, progress: Progress = silent
) -> dict[str, FileInfo]:
    """Write what all annotators of M2 files would change: a row for each pair and annotator, shards as of pairs."""
    return _write("annotations", _annotated, source, recipe, counts, folder, progress)


def _write(
    config: ConfigName,
    batches: Batches,
    source: Import,
    recipe: Recipe,
    counts: dict[str, int],
    folder: Folder,
    progress: Progress,
) -> dict[str, FileInfo]:
    """Write the shards of a config that are missing; ``batches`` makes those of some pairs and their first id."""
    files, first_id = {}, 0
    with progress(config, sum(counts.values())) as advance:
        for split in SPLITS:
            rows = (pair for pair in source.rows() if pair.split == split)
            shards = max(1, -(-counts[split] // source.rows_per_shard))
            for index in range(shards):
                size = min(source.rows_per_shard, counts[split] - index * source.rows_per_shard)
                name = shard_name(config, split, index, shards)
                if done := folder.done(name, recipe):  # by an interrupted run
                    files[name] = done
                    deque(islice(rows, size if index + 1 < shards else 0), maxlen=0)
                else:
                    part, describe = batches(_next(rows, size), first_id), partial(_describe, recipe, split, config)
                    files[name] = write_shard(folder / name, config, part, describe)
                    if index + 1 == shards and next(rows, None) is not None:
                        raise BadData(f"{CHANGED}: more pairs in {split} than when it was checked")
                first_id += size
                advance(size)
    return files


def _next(rows: Iterator[Parsed], count: int) -> Iterator[Parsed]:
    """The next ``count`` pairs; they were counted before."""
    for number in range(count):
        if (row := next(rows, None)) is None:
            raise BadData(f"{CHANGED}: {count - number:,} pairs fewer than when it was checked")
        yield row


def _annotated(rows: Iterator[Parsed], first_id: int) -> Iterator[pa.RecordBatch]:
    """The annotations of some pairs, in batches; a sentence without any is one that annotator 0 left alone."""
    found = ((number, row.annotations or ((0, ()),)) for number, row in enumerate(rows, first_id))
    numbered = ((number, *one) for number, annotations in found for one in annotations)
    for some in batched(numbered, ROW_GROUP):
        ids, annotators, edits = (list(column) for column in zip(*some, strict=True))
        arrays = [
            pa.array(column, field.type) for column, field in zip((ids, annotators, edits), ANNOTATIONS, strict=True)
        ]
        yield pa.record_batch(arrays, schema=ANNOTATIONS)


def batched(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many rows; the last may be shorter."""
    while part := list(islice(rows, size)):
        yield part


def _describe(recipe: Recipe, split: SplitName, config: ConfigName) -> PairsDescription:
    task = TASKS.get(recipe.task)
    return PairsDescription(
        config=config,
        split=split,
        task=recipe.task,
        tokens=getattr(recipe.pairs, "tokens", "words"),
        arithmetic=task is not None,
        one_source=task is not None and task.one_source,
        goal=goal_of(recipe.task),
        spec=recipe.tree(),
    )


def _batches(rows: Iterator[Parsed], first_id: int) -> Iterator[pa.RecordBatch]:
    """Some pairs, in batches."""
    for some in batched(rows, ROW_GROUP):
        ids = np.arange(first_id, first_id + len(some))
        texts = [of_texts([getattr(row, side) for row in some]) for side in ("source", "target")]
        yield pa.record_batch([of_numbers(ids), *texts], schema=PAIRS)
        first_id += len(some)
