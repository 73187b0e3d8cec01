"""Write imported pairs, shard by shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa

from aegen.arithmetic.goals import goal_of
from aegen.arithmetic.tasks import TASKS
from aegen.columns.arrow import of_numbers, of_texts
from aegen.columns.schemas import PAIRS
from aegen.core.description import FileInfo, PairsDescription
from aegen.core.format import SPLITS, SplitName
from aegen.core.progress import Progress, silent
from aegen.dataset.folder import Folder
from aegen.dataset.names import shard_name
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import write_shard
from aegen.files.parquet import ROW_GROUP
from aegen.pairs.importing import Import, Parsed


def write_imported(
    source: Import, recipe: Recipe, counts: dict[str, int], folder: Folder, progress: Progress = silent
) -> dict[str, FileInfo]:
    """Write all shards of an import that are missing, split by split."""
    files, first_id = {}, 0
    with progress("pairs", sum(counts.values())) as advance:
        for split in SPLITS:
            rows = (pair for pair in source.rows() if pair[0] == split)
            shards = max(1, -(-counts[split] // source.rows_per_shard))
            for index in range(shards):
                size = min(source.rows_per_shard, counts[split] - index * source.rows_per_shard)
                name = shard_name("pairs", split, index, shards)
                if done := folder.done(name, recipe):  # by an interrupted run
                    files[name] = done
                    deque(islice(rows, size if index + 1 < shards else 0), maxlen=0)
                else:
                    batches, describe = _batches(rows, first_id, size), partial(_describe, recipe, split)
                    files[name] = write_shard(folder / name, "pairs", batches, describe)
                first_id += size
                advance(size)
    return files


def _describe(recipe: Recipe, split: SplitName) -> PairsDescription:
    task = TASKS.get(recipe.task)
    return PairsDescription(
        config="pairs",
        split=split,
        task=recipe.task,
        tokens=getattr(recipe.pairs, "tokens", "words"),
        arithmetic=task is not None,
        one_source=task is not None and task.one_source,
        goal=goal_of(recipe.task),
        spec=recipe.tree(),
    )


def _batches(rows: Iterator[Parsed], first_id: int, count: int) -> Iterator[pa.RecordBatch]:
    """The next ``count`` pairs, in batches."""
    for start in range(0, count, ROW_GROUP):
        size = min(ROW_GROUP, count - start)
        sources, targets = [], []
        for _, source, target in (next(rows) for _ in range(size)):
            sources.append(source)
            targets.append(target)
        ids = np.arange(first_id + start, first_id + start + size)
        yield pa.record_batch([of_numbers(ids), of_texts(sources), of_texts(targets)], schema=PAIRS)
