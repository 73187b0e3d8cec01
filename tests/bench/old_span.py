"""TG and TA of AES as they were before `span` worked on whole columns: what the benchmark compares with.

A Python loop for each state, which checks every splice, and which is called twice for the sources of pairs. Augmenting
and making rows are today's functions, so what is measured is the difference in finding scripts and states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from aegen.columns.ragged import Ragged
from aegen.core.actions import DESIGNS
from aegen.core.edits import Splice
from aegen.core.errors import InvalidEdit
from aegen.core.types import Tokens
from aegen.dataset.shards import Description, read_batches, write_shard
from aegen.experts.augment import Augmentation, augmented_starts
from aegen.experts.demonstrations import BATCH
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import Pairs, Summary, step_batch


def write_augmented(pairs: Path, path: Path, about: Description) -> None:
    """The rows of ``augmented`` for a shard of AES pairs."""
    write_shard(path, "augmented", _batches(pairs), lambda: about)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    for group in read_batches(path, "pairs"):
        for start in range(0, len(group), BATCH):
            pairs, summary = Pairs.of(group.slice(start, BATCH)), Summary()
            own = _scripts(pairs.sources, pairs.goals, pairs.alphabet)
            starts = augmented_starts(pairs, own, Augmentation(), summary).starts
            again = _scripts(starts.states, pairs.goals.rows(starts.pair), pairs.alphabet)
            yield step_batch(pairs, starts, again, DESIGNS["span"], summary)


def _scripts(states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
    edits: list[tuple[int, int, int, int]] = []
    offsets = [0]
    for state, goal in zip(states.tuples(alphabet), goals.tuples(alphabet), strict=True):
        grown = 0
        for splice in _checked(state, goal):
            start = splice.start - grown
            edits.append((start, start + splice.stop - splice.start, splice.start, splice.start + len(splice.new)))
            grown += splice.growth
        offsets.append(len(edits))
    columns = np.array(edits, dtype=np.int64).reshape(-1, 4).T
    return Scripts(np.array(offsets, dtype=np.int64), *columns)


def _checked(state: Tokens, goal: Tokens) -> list[Splice]:
    found, behind, reached = [], 0, state
    pair = f"for {' '.join(state)!r} -> {' '.join(goal)!r}"
    for splice in _span(state, goal):
        if not isinstance(splice, Splice) or not isinstance(splice.new, tuple) or splice.start < behind:
            raise InvalidEdit(pair)
        reached = splice.apply(reached)
        behind = splice.start + len(splice.new)
        found.append(splice)
    if reached != goal:
        raise InvalidEdit(pair)
    return found


def _span(state: Tokens, goal: Tokens) -> list[Splice]:
    found = []
    while "(" in state:
        start = state.index("(")
        if ")" not in state[start:] or start >= len(goal):
            raise InvalidEdit("a parenthesis that is not closed or has no token in the goal")
        splice = Splice(start, state.index(")", start) + 1, (goal[start],))
        found.append(splice)
        state = splice.apply(state)
    return found
