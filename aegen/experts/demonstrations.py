"""From pairs to the steps of the configs ``expert`` (TG) and ``augmented`` (TG and TA), batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from aegen.core.actions import Design
from aegen.core.types import Integers
from aegen.experts.augment import Augmentation, augmented_starts
from aegen.experts.metrics import Metric
from aegen.experts.scripts import Scripts
from aegen.experts.subsets import steps_of_all, subset_batch
from aegen.experts.trajectory import Pairs, Starts, Summary, expert_starts, step_batch

BATCH = 1024  # pairs at a time; the rows do not depend on it
PORTION = 1 << 22  # tokens of states that are in memory at once, about


def step_batches(
    pairs: Pairs, metric: Metric, design: Design, augmentation: Augmentation | None, summary: Summary
) -> Iterator[pa.RecordBatch]:
    """All steps of these pairs, in batches of limited size; the metric is asked once for each state."""
    scripts = metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)
    edits = scripts.counts
    lengths = pairs.sources.lengths + pairs.goals.lengths + 1
    if not augmentation:
        starts = expert_starts(pairs)
        for begin, end in portions((edits + 1) * lengths):
            yield step_batch(pairs, starts.part(begin, end), scripts.part(begin, end), design, summary)
        return
    if (
        edits.max(initial=0) <= augmentation.max_edits
        and (steps_of_all(edits) * lengths).sum() <= PORTION
        and metric.independent(pairs.goals, scripts)
    ):
        yield subset_batch(pairs, scripts, design, augmentation, summary)
        return
    states = np.where(edits > augmentation.max_edits, augmentation.max_states, 2 ** np.minimum(edits, 20)) + 1
    for first, last in portions(states * lengths):
        part, own = pairs.part(first, last), scripts.part(first, last)
        starts = augmented_starts(part, own, augmentation, summary)
        weights = ((edits + 1) * lengths)[first:last]
        for begin, end in portions(weights[starts.pair]):
            some = starts.part(begin, end)
            yield step_batch(part, some, start_scripts(part, some, own, metric), design, summary)


def start_scripts(pairs: Pairs, starts: Starts, own: Scripts, metric: Metric) -> Scripts:
    """The script of each start: the pair's own for its source, the metric's answer for shifted states."""
    (sources,), (shifted,) = np.nonzero(starts.origin == 0), np.nonzero(starts.origin)
    asked = metric.scripts(starts.states.rows(shifted), pairs.goals.rows(starts.pair[shifted]), pairs.alphabet)
    return Scripts.merged(len(starts.pair), [(sources, own.rows(starts.pair[sources])), (shifted, asked)])


def portions(weights: Integers) -> Iterator[tuple[int, int]]:
    """Split neighbours into ranges whose weights add up to at most PORTION; a heavier one is alone.

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
