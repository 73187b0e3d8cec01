"""TG and TA of pairs where every edit inserts a token and there is no doubt where: as in AOR.

Then a shifted state is named by the edits that have been executed, each subset gives another state, and the way from
it to the goal is to execute the others, left to right. So the states of a pair are its subsets of edits, and all
trajectories of all pairs with equally many edits follow one pattern, which is found once. The rows are the same
that :mod:`aegen.experts.augment` and :mod:`aegen.experts.trajectory` find by looking at every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.columns.arrow import of_numbers, of_texts
from aegen.core.actions import Design
from aegen.core.types import Integers
from aegen.experts.augment import Augmentation, all_choices, execute, path
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import Pairs, Summary, as_batch, edit_codes

DONE = -1


def certain(pairs: Pairs, scripts: Scripts) -> bool:
    """Whether all edits of all pairs insert one token, and no state on any way to a goal has two ways there.

    Two ways mean that a token can be found in the goal in two places with nothing else that is there between them:
    so tokens that are inserted side by side, and the two of the source around them, must all be different.

    >>> from aegen.columns.arrow import of_texts
    >>> from aegen.experts.metrics import load_metric
    >>> for goal in ("1 + 2", "1 1 2", "1 + - 2", "1 + + 2"):
    ...     batch = pa.record_batch([pa.array([0]), of_texts(["1 2"]), of_texts([goal])], ["id", "source", "target"])
    ...     pairs = Pairs.of(batch)
    ...     print(certain(pairs, load_metric("levenshtein").scripts(pairs.sources, pairs.goals, pairs.alphabet)))
    True
    False
    True
    False
    """
    if (scripts.stop > scripts.start).any() or (scripts.new_stop - scripts.new_start != 1).any():
        return False
    tokens = pairs.goals.padded()
    row = np.repeat(np.arange(len(tokens)), scripts.counts)
    inserted = np.zeros(tokens.shape, dtype=bool)
    inserted[row, scripts.new_start] = True
    for apart in range(1, tokens.shape[1]):
        # Pairs of places with nothing but insertions between them, one of the two an insertion.
        near = inserted[:, :-apart] | inserted[:, apart:]
        for between in range(1, apart):
            near &= inserted[:, between : between - apart]
        if not near.any():
            break
        if (near & (tokens[:, :-apart] == tokens[:, apart:])).any():
            return False
    return True


@dataclass(frozen=True)
class Pattern:
    """The steps of all trajectories of a pair with so many edits."""

    origin: npt.NDArray[np.int32]
    number: npt.NDArray[np.int16]  # of the step in its trajectory
    state: npt.NDArray[np.int64]  # number of the choice that leads to it
    edit: npt.NDArray[np.int64]  # which one is executed, or DONE


@lru_cache(maxsize=64)
def pattern(edits: int, algorithm: str) -> Pattern:
    """The source's trajectory, then those of the shifted states in the order in which Algorithm 2 finds them.

    >>> pattern(2, "paper").state.tolist(), pattern(2, "paper").edit.tolist()
    ([3, 1, 0, 2, 0], [0, 1, -1, 0, -1])
    """
    choices = [tuple(choice) for choice in all_choices(edits)[0].tolist()]
    places = {choice: place for place, choice in enumerate(choices)}
    passed = {tuple(choice) for choice in path(edits)[0].tolist()}
    shifted = choices[1:-1] if algorithm == "released" else [choice for choice in choices if choice not in passed]
    rows = []
    for origin, start in enumerate([choices[-1], *shifted]):
        state = list(start)
        for number, edit in enumerate([*(edit for edit in range(edits) if not start[edit]), DONE]):
            rows.append((origin, number, places[tuple(state)], edit))
            if edit != DONE:
                state[edit] = True
    origins, numbers, states, executed = np.array(rows, dtype=np.int64).T
    return Pattern(origins.astype(np.int32), numbers.astype(np.int16), states, executed)


def steps_of_all(edits: Integers) -> Integers:
    """How many steps all trajectories of pairs with so many edits have together, at most."""
    subsets: Integers = np.left_shift(1, edits)
    return np.asarray(subsets + edits * subsets // 2)


def lattice_batch(
    pairs: Pairs, scripts: Scripts, design: Design, options: Augmentation, summary: Summary
) -> pa.RecordBatch:
    """All steps of the pairs' trajectories and of those from their shifted states, for pairs that are ``certain``."""
    counts = scripts.counts
    kinds, kind = np.unique(counts, return_inverse=True)
    patterns = [pattern(edits, options.algorithm) for edits in kinds.tolist()]
    texts, first_state, held = [], np.empty(len(counts), dtype=np.int64), 0
    for edits in kinds.tolist():
        (group,) = np.nonzero(counts == edits)
        texts.append(execute(pairs, scripts, group, all_choices(edits)).texts(of_texts(pairs.alphabet)))
        first_state[group] = held + np.arange(len(group)) * 2**edits
        held += len(texts[-1])
    # One row a step: of which pair it is, and where in the patterns, which lie one behind the other.
    sizes = np.array([len(each.state) for each in patterns])
    begins = np.cumsum(sizes) - sizes
    pair = np.repeat(np.arange(len(counts)), sizes[kind])
    ends = np.cumsum(sizes[kind])
    row = np.arange(len(pair)) + np.repeat(begins[kind] - (ends - sizes[kind]), sizes[kind])
    origin, number, state, edit = (
        np.concatenate([getattr(each, column) for each in patterns]) for column in ("origin", "number", "state", "edit")
    )
    codes, tokens = edit_codes(pairs, np.repeat(np.arange(len(counts)), counts), scripts, design)
    codes = np.concatenate([codes, np.zeros((1, codes.shape[1]), dtype=codes.dtype)])  # DONE is the last one
    executed = edit.take(row)
    which = np.where(executed == DONE, -1, scripts.offsets.take(pair) + executed)
    summary.add(pairs, pairs.goals.lengths, counts)
    states = pa.concat_arrays(texts).take(of_numbers(first_state.take(pair) + state.take(row)))
    return as_batch(
        pairs.ids.take(pair), origin.take(row), number.take(row), states, codes.take(which, axis=0), tokens, summary
    )
