"""Write imported pairs, shard by shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from aegen.columns.arrow import of_numbers, of_texts
from aegen.columns.schemas import PAIRS
from aegen.core.format import FORMAT, SPLITS, TASKS
from aegen.core.progress import Progress, silent
from aegen.core.types import SpecTree
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import FileInfo
from aegen.dataset.names import shard_name
from aegen.dataset.shards import write_shard
from aegen.files.parquet import ROW_GROUP
from aegen.pairs.importing import Import, Parsed
from aegen.pairs.spec import ONE_SOURCE


def write_imported(
    wanted: Import, counts: dict[str, int], folder: Folder, progress: Progress = silent
) -> dict[str, FileInfo]:
    """All shards of an import that are not there yet, split by split."""
    tree = wanted.spec_tree()
    files, first_id = {}, 0
    with progress("pairs", sum(counts.values())) as advance:
        for split in SPLITS:
            rows = (pair for pair in wanted.rows() if pair[0] == split)
            shards = max(1, -(-counts[split] // wanted.rows_per_shard))
            for index in range(shards):
                size = min(wanted.rows_per_shard, counts[split] - index * wanted.rows_per_shard)
                name = shard_name("pairs", split, index, shards)
                if there := folder.done(name, tree):  # by a run that was interrupted
                    files[name] = there
                    deque(islice(rows, size if index + 1 < shards else 0), maxlen=0)
                else:
                    about = _describe(wanted, split, tree)
                    files[name] = write_shard(folder / name, "pairs", _batches(rows, first_id, size), about.copy)
                first_id += size
                advance(size)
    return files


def _describe(wanted: Import, split: str, tree: SpecTree) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "config": "pairs",
        "split": split,
        "task": wanted.task,
        "tokens": wanted.tokens,
        "arithmetic": wanted.task in TASKS,
        "one_source": wanted.task in ONE_SOURCE,
        "spec": tree,
    }


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
