"""The rows of pairs, of their variants, and of sources without targets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from aegen.columns.arrow import of_numbers, to_numbers
from aegen.core.errors import BadData
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.shards import read_batches
from aegen.dataset.verify.counted import Place, check_counts
from aegen.dataset.verify.tasks import check_task_sources, equation_numbers
from aegen.pairs.spec import Spec


def check_pairs(path: Place, config: str, spec: Spec | None) -> int:
    """Ids ascend; of generated pairs every equation holds and every source is one of its target. Rows seen."""
    rows, last, counts = 0, -1, Counts()
    descends = np.less_equal if config == "pairs" else np.less  # the variants of a pair share its id
    for batch in read_batches(path, config):
        ids = to_numbers(batch.column("id"))
        if (bad := np.flatnonzero(descends(ids, np.append(last, ids[:-1])[: len(ids)]))).size:
            raise BadData(f"{path}: ids do not ascend at row {rows + bad[0]}")
        last = int(ids[-1]) if len(ids) else last
        if spec:
            numbers = equation_numbers(batch.column("target"), spec)
            if (bad := np.flatnonzero(numbers < 0)).size:
                raise BadData(f"{path}: row {rows + bad[0]}: not an equation: {batch.column('target')[int(bad[0])]}")
            check_task_sources(path, rows, batch, spec)
        counts += count_rows(batch)
        rows += len(batch)
    check_counts(path, config, counts)
    return rows


def check_variants(path: Place, pairs: Place, spec: Spec) -> int:
    """Every pair has its variants, in order, with its own id and target. No rows: they are counted elsewhere."""
    table = pa.Table.from_batches(read_batches(pairs, "pairs", ["id", "target"]))
    rows = 0
    for batch in read_batches(path, "variants", ["id", "target"]):
        of = np.arange(rows, rows + len(batch)) // spec.variants
        wanted = table.take(of_numbers(of[of < len(table)])).combine_chunks()
        if not pa.Table.from_batches([batch]).equals(wanted):
            raise BadData(f"{path}: variants that do not belong to the pairs of {pairs.name}, from row {rows} on")
        rows += len(batch)
    if rows != spec.variants * len(table):
        raise BadData(f"{path}: {rows} variants of {len(table)} pairs; expected {spec.variants} each")
    return 0


def check_sources(path: Place) -> int:
    """Ids ascend. Rows seen."""
    rows, last, counts = 0, -1, Counts()
    for batch in read_batches(path, "sources"):
        ids = to_numbers(batch.column("id"))
        if (bad := np.flatnonzero(np.less_equal(ids, np.append(last, ids[:-1])[: len(ids)]))).size:
            raise BadData(f"{path}: ids do not ascend at row {rows + bad[0]}")
        last, rows, counts = int(ids[-1]) if len(ids) else last, rows + len(batch), counts + count_rows(batch)
    check_counts(path, "sources", counts)
    return rows
