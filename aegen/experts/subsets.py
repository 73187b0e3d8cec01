"""TG and TA of pairs whose edits are independent: those of AOR and AES. Three times as fast as looking at every state.

Edits are independent if each subset of them leads to another state, and if the metric's script from there is the other
edits. Then the states of a pair are the subsets of its edits, and the trajectories of all pairs with equally many edits
follow one pattern. The rows equal those of :mod:`aegen.experts.augment` and :mod:`aegen.experts.trajectory`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from aegen.columns.arrow import of_numbers, of_texts
from aegen.core.actions import Design
from aegen.core.types import Integers
from aegen.experts.augment import Augmentation, all_choices, execute, path
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import DONE, Pairs, Summary, as_batch, edit_codes


class Pattern(NamedTuple):
    """The steps of all trajectories of a pair with a given number of edits, as columns."""

    origin: Integers
    number: Integers  # of the step in its trajectory
    state: Integers  # index of the choice of edits that leads to it
    edit: Integers  # index of the edit that is executed, or DONE


@lru_cache(maxsize=64)
def pattern(edits: int, algorithm: str) -> Pattern:
    """The source's trajectory, then those of the shifted states in the order in which Algorithm 2 finds them.

    >>> pattern(2, "paper").state.tolist(), pattern(2, "paper").edit.tolist()
    ([3, 1, 0, 2, 0], [0, 1, -1, 0, -1])
    """
    choices = [tuple(choice) for choice in all_choices(edits)[0].tolist()]
    index = {choice: number for number, choice in enumerate(choices)}
    on_path = {tuple(choice) for choice in path(edits)[0].tolist()}
    shifted = choices[1:-1] if algorithm == "released" else [choice for choice in choices if choice not in on_path]
    rows = []
    for origin, start in enumerate([choices[-1], *shifted]):
        executed = list(start)
        for number, edit in enumerate([*(edit for edit in range(edits) if not start[edit]), DONE]):
            rows.append((origin, number, index[tuple(executed)], edit))
            if edit != DONE:
                executed[edit] = True
    origins, numbers, states, executing = np.array(rows, dtype=np.int64).T
    return Pattern(origins.astype(np.int32), numbers.astype(np.int16), states, executing)


def steps_of_all(edits: Integers) -> Integers:
    """An upper bound of the steps of all trajectories of pairs with so many edits."""
    subsets: Integers = np.left_shift(1, edits)
    return np.asarray(subsets + edits * subsets // 2)


def subset_batch(
    pairs: Pairs, scripts: Scripts, design: Design, options: Augmentation, summary: Summary
) -> pa.RecordBatch:
    """All steps from the pairs' sources and shifted states, for pairs whose edits are independent."""
    counts = scripts.counts
    sizes, size = np.unique(counts, return_inverse=True)
    texts, lengths, first_state, made = [], [], np.empty(len(counts), dtype=np.int64), 0
    for edits in sizes.tolist():
        (group,) = np.nonzero(counts == edits)
        states = execute(pairs, scripts, group, all_choices(edits))
        texts.append(states.texts(of_texts(pairs.alphabet)))
        lengths.append(states.lengths)
        first_state[group] = made + np.arange(len(group)) * 2**edits
        made += len(states)
    # One row per step: its pair, and its place in the patterns, which lie one behind the other.
    patterns = [pattern(edits, options.algorithm) for edits in sizes.tolist()]
    steps = np.array([len(each.state) for each in patterns])
    begins, per_pair = np.cumsum(steps) - steps, steps[size]
    pair = np.repeat(np.arange(len(counts)), per_pair)
    place = np.arange(len(pair)) + np.repeat(begins[size] - (np.cumsum(per_pair) - per_pair), per_pair)
    origin, number, state, edit = (np.concatenate(column).take(place) for column in zip(*patterns, strict=True))
    codes, tokens = edit_codes(pairs, np.repeat(np.arange(len(counts)), counts), scripts, design)
    which = np.where(edit == DONE, len(codes) - 1, scripts.offsets.take(pair) + edit)
    times = np.bincount(which, minlength=len(codes))[:-1]
    summary.add(pairs, np.concatenate(lengths), number, scripts, times)
    rows = pa.concat_arrays(texts).take(of_numbers(first_state.take(pair) + state))
    return as_batch(pairs.ids.take(pair), origin, number, rows, codes.take(which, axis=0), tokens, summary)
