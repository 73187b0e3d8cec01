"""From pairs on disk to the configs ``expert`` (TG) and ``augmented`` (TG and TA), shard by shard.

A shard of demonstrations is a pure function of the shard of pairs with the same name.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from aegen.core.actions import Design
from aegen.core.types import Integers
from aegen.experts.augment import Augmentation, augmented_starts
from aegen.experts.lattice import certain, lattice_batch, steps_of_all
from aegen.experts.metrics import Metric
from aegen.experts.trajectory import Pairs, Summary, expert_starts, step_batch

BATCH = 1024  # pairs at a time; has no influence on the rows
PORTION = 1 << 22  # tokens of states that are held at once, about


def _steps(
    batch: Pairs, metric: Metric, design: Design, augmentation: Augmentation | None, summary: Summary
) -> Iterator[pa.RecordBatch]:
    """All steps from these pairs, in portions that are together no longer than some million tokens."""
    scripts = metric.scripts(batch.sources, batch.goals, batch.alphabet)
    edits = scripts.counts
    lengths = batch.sources.lengths + batch.goals.lengths + 1
    if not augmentation:
        starts = expert_starts(batch)
        for begin, end in portions((edits + 1) * lengths):
            yield step_batch(batch, starts.part(begin, end), metric, design, summary)
        return
    if (
        edits.max(initial=0) <= augmentation.max_edits
        and (steps_of_all(edits) * lengths).sum() <= PORTION
        and metric.shortest
        and certain(batch, scripts)
    ):
        yield lattice_batch(batch, scripts, design, augmentation, summary)
        return
    states = np.where(edits > augmentation.max_edits, augmentation.max_states, 2 ** np.minimum(edits, 20)) + 1
    for first, last in portions(states * lengths):
        part = batch.part(first, last)
        starts = augmented_starts(part, scripts.part(first, last), augmentation, summary)
        heavy = ((edits + 1) * lengths)[first:last]
        for begin, end in portions(heavy[starts.pair]):
            yield step_batch(part, starts.part(begin, end), metric, design, summary)


def portions(weights: Integers) -> Iterator[tuple[int, int]]:
    """Neighbours together, up to PORTION; what is heavier than that is alone.

    >>> list(portions(np.array([1, 2, PORTION, 3])))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin = weight = 0
    if weights.sum() <= PORTION:  # the usual case, without a loop
        yield 0, len(weights)
        return
    for index, more in enumerate(weights.tolist()):
        if index > begin and weight + more > PORTION:
            yield begin, index
            begin = index
            weight = 0
        weight += more
    yield begin, len(weights)
