"""From pairs to the steps of the configs ``expert`` (TG) and ``augmented`` (TG and TA), batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from aegen.core.actions import Design
from aegen.core.types import Integers
from aegen.experts.augment import Augmentation, augmented_starts
from aegen.experts.metrics import Metric
from aegen.experts.policy import one_action, start_scripts
from aegen.experts.scripts import Scripts
from aegen.experts.subsets import steps_of_all, subset_batch
from aegen.experts.trajectory import Pairs, Steps, Summary, edit_codes, expert_starts, step_batch

BATCH = 1024  # pairs at a time; the rows do not depend on it
PORTION = 1 << 22  # tokens of states that are in memory at once, about
EDIT = 8  # what an edit of each shifted state takes, as if it were so many tokens


def step_batches(
    pairs: Pairs, metric: Metric, design: Design, augmentation: Augmentation | None, summary: Summary
) -> Iterator[pa.RecordBatch]:
    """All steps of these pairs, in batches of limited size; a metric of ours is asked once for each pair."""
    scripts = metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)
    edits = scripts.counts
    lengths = pairs.sources.lengths + pairs.goals.lengths + 1
    if not augmentation:
        starts = expert_starts(pairs)
        for begin, end in portions((edits + 1) * lengths):
            yield step_batch(pairs, starts.part(begin, end), scripts.part(begin, end), design, summary)
        return
    if (
        not augmentation.capped(edits).any()
        and (steps_of_all(edits) * lengths).sum() <= PORTION
        and metric.independent(pairs.goals, scripts)
    ):
        yield subset_batch(pairs, scripts, design, augmentation, summary)
        return
    states = np.where(augmentation.capped(edits), augmentation.drawn, 2 ** np.minimum(edits, 20)) + 1
    for first, last in portions(states * (lengths + edits * EDIT)):
        part, own = pairs.part(first, last), scripts.part(first, last)
        yield from augmented_batches(part, own, metric, design, augmentation, summary)


def augmented_batches(
    pairs: Pairs, own: Scripts, metric: Metric, design: Design, augmentation: Augmentation, summary: Summary
) -> Iterator[pa.RecordBatch]:
    """All steps from the pairs' sources and shifted states, with one action for each state of a pair.

    ``own`` are the pairs' scripts. All trajectories of a pair have to be known before any of its rows is.
    """
    found = augmented_starts(pairs, own, augmentation, summary)
    starts = found.starts
    scripts, doubtful = start_scripts(pairs, found, metric)
    codes, tokens = edit_codes(pairs, np.repeat(starts.pair, scripts.counts), scripts, design)
    steps = one_action(pairs, starts, Steps.of(pairs, starts, scripts), found.new, doubtful)
    for begin, end in portions(np.add.reduceat(steps.lengths + 1, steps.offsets[:-1])):
        yield steps.part(begin, end).batch(pairs, starts, scripts, codes, tokens, summary)


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
