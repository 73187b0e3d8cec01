"""Trajectory augmentation (TA, the paper's Algorithm 2): states off the expert's path, to start from as well.

Skipping some of a pair's edits and executing the others, left to right, leads to a shifted state; TG from there to
the same goal is a trajectory that shows the way back. :func:`shifted_states` is the algorithm as printed;
:func:`augmented_starts` does the same for whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegen.columns.ragged import ABSENT, Ragged
from aegen.core.edits import Splice
from aegen.core.errors import InvalidSpec
from aegen.core.randomness import derive_key, keyed_hash
from aegen.core.types import Integers, Tokens
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import Pairs, Starts, Summary

BUDGET = 1 << 18  # pieces of states that are put together at once
ALGORITHMS = ("paper", "released")


@dataclass(frozen=True)
class Augmentation:
    """Which shifted states to take.

    ``paper`` is Algorithm 2: each state off the expert's path once. ``released`` is what the authors' code counts:
    every choice of some but not all edits. A pair with more than ``max_edits`` edits gets at most ``max_states``
    random choices.
    """

    algorithm: str = "paper"
    max_edits: int = 10
    max_states: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidSpec(f"algorithm={self.algorithm}: expected one of {', '.join(ALGORITHMS)}")
        if not 0 <= self.max_edits <= 20:
            raise InvalidSpec(f"max_edits={self.max_edits}: expected 0 to 20 (each one doubles the states)")
        if not 0 <= self.max_states <= 1 << 20:
            raise InvalidSpec(f"max_states={self.max_states}: expected 0 to {1 << 20:,}")


def shifted_states(state: Tokens, edits: list[Splice]) -> list[Tokens]:
    """Algorithm 2 of the paper, as printed: execute the first edit or skip it, then go on with the others.

    >>> edits = [Splice(1, 1, ("+",)), Splice(3, 3, ("=",))]
    >>> shifted_states(("1", "1", "2"), edits)
    [('1', '1', '=', '2')]
    """
    path = [state]
    for edit in edits:
        path.append(edit.apply(path[-1]))
    found: list[Tokens] = []

    def branch(current: Tokens, rest: list[Splice]) -> None:
        if rest:
            edit, *later = rest
            branch(edit.apply(current), later)
            branch(current, [Splice(e.start - edit.growth, e.stop - edit.growth, e.new) for e in later])
        elif current not in path and current not in found:
            found.append(current)

    branch(state, edits)
    return found


def augmented_starts(pairs: Pairs, scripts: Scripts, options: Augmentation, summary: Summary) -> Starts:
    """Each pair's own source and, behind it, its shifted states in the order in which Algorithm 2 finds them.

    ``scripts`` are the pairs' own.
    """
    own = np.arange(len(pairs.ids))
    parts = [(own, np.full(len(own), -1), pairs.sources)]  # (pair, number of the choice, state)
    for edits in np.unique(scripts.counts).tolist():
        (group,) = np.nonzero(scripts.counts == edits)
        capped = edits > options.max_edits
        if capped:
            summary.capped_pairs += len(group)
        choices = options.max_states if capped else 2**edits
        step = max(1, BUDGET // ((choices + edits + 1) * (2 * edits + 1)))
        for at in range(0, len(group), step):
            part = group[at : at + step]
            chosen = _sampled(pairs.ids[part], edits, options) if capped else all_choices(edits)
            passed = np.broadcast_to(path(edits), (len(chosen), edits + 1, edits))
            states = execute(pairs, scripts, part, np.concatenate([chosen, passed], axis=1))
            row, choice = np.nonzero(_kept(states, len(part), edits, options.algorithm, capped))
            parts.append((part[row], choice, states.rows(row * (len(states) // len(part)) + choice)))
    return _starts(parts)


def _kept(states: Ragged, pairs: int, edits: int, algorithm: str, capped: bool) -> npt.NDArray[np.bool_]:
    """Which choices count, (pairs, choices). Behind a pair's choices lies its path, from the source to the goal.

    States with equal 64-bit hashes count as equal.
    """
    hashes = states.hashes(derive_key("states")).reshape(pairs, -1)
    mine, path = hashes[:, : -edits - 1], hashes[:, -edits - 1 :]
    if algorithm == "released" and not capped:
        kept = np.ones(mine.shape, dtype=bool)
        kept[:, [0, -1]] = False  # "execute everything" comes first, "skip everything" last
        return kept
    if algorithm == "released":
        path = path[:, [0, -1]]
    order = np.argsort(mine, axis=1, kind="stable")
    ordered = np.take_along_axis(mine, order, axis=1)
    seen_before = np.zeros(mine.shape, dtype=bool)
    np.put_along_axis(seen_before, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    on_path: npt.NDArray[np.bool_] = (mine[:, :, None] == path[:, None, :]).any(axis=2)
    return ~(seen_before | on_path)


def path(edits: int) -> npt.NDArray[np.bool_]:
    """(1, edits + 1, edits): no edit, the first one, the first two, …"""
    return np.tri(edits + 1, edits, -1, dtype=bool)[None]


def all_choices(edits: int) -> npt.NDArray[np.bool_]:
    """(1, 2^edits, edits): executing comes before skipping, the first edit decides first."""
    numbers = np.arange(2**edits)[::-1, None]
    return ((numbers >> np.arange(edits)[::-1]) & 1).astype(bool)[None]


def _sampled(ids: npt.NDArray[np.int64], edits: int, options: Augmentation) -> npt.NDArray[np.bool_]:
    """(pairs, max_states, edits): random choices that depend on the seed and the pair's id alone."""
    key = derive_key(options.seed, "choices")
    places = np.arange(options.max_states * edits).reshape(1, options.max_states, edits)
    words = keyed_hash(key, keyed_hash(key, ids)[:, None, None].astype(np.int64) + places)
    return words >= np.uint64(2**63)


def execute(pairs: Pairs, scripts: Scripts, part: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]) -> Ragged:
    """The states after the chosen edits, choice by choice.

    What can be in a state of a pair is laid out once, left to right: what stays, what each edit removes, what it adds.
    Every choice then says what of it is there.
    """
    edits, choices = chosen.shape[2], chosen.shape[1]
    tokens, owners = _laid_out(pairs, scripts, part, edits)
    there = np.ones((len(chosen), choices, 2 * edits + 2), dtype=bool)
    there[:, :, 1 : edits + 1] = ~chosen
    there[:, :, edits + 1 : -1] = chosen
    there[:, :, -1] = False  # behind the end
    if len(chosen) == 1:
        present = there[0].take(owners, axis=1).transpose(1, 0, 2)
    else:
        present = np.take_along_axis(there, owners[:, None], axis=2)
    return Ragged.of_cells(np.where(present, tokens[:, None], ABSENT).reshape(len(part) * choices, tokens.shape[1]))


def _laid_out(
    pairs: Pairs, scripts: Scripts, part: npt.NDArray[np.int64], edits: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Tokens of each pair as cells, and to what they belong.

    0 stays, 1 … edits is removed by that edit, edits + 1 … 2 * edits is added by it; -1 is behind the end.
    """
    at = scripts.offsets[part][:, None] + np.arange(edits)  # (pairs, edits)
    start, stop, new_start, new_stop = (column[at] for column in scripts.edits)
    source, goal = pairs.sources.offsets[part][:, None], len(pairs.sources.values) + pairs.goals.offsets[part][:, None]
    begin = np.empty((len(part), 3 * edits + 1), dtype=np.int64)
    end = np.empty_like(begin)
    begin[:, 0], begin[:, 3::3] = source[:, 0], source + stop
    end[:, 0:-1:3], end[:, -1] = source + start, source[:, 0] + pairs.sources.lengths[part]
    begin[:, 1::3], end[:, 1::3] = source + start, source + stop
    begin[:, 2::3], end[:, 2::3] = goal + new_start, goal + new_stop
    lengths = (end - begin).ravel()
    pool = np.concatenate([pairs.sources.values, pairs.goals.values])
    tokens = Ragged.of_slices(pool, begin.ravel(), lengths, np.arange(0, begin.size + 1, 3 * edits + 1))
    owner = np.zeros(3 * edits + 1, dtype=np.int32)
    owner[1::3], owner[2::3] = np.arange(edits) + 1, np.arange(edits) + edits + 1
    owners = Ragged(np.repeat(np.tile(owner, len(part)), lengths), tokens.offsets)
    return tokens.padded(), owners.padded()


def _starts(parts: list[tuple[Integers, Integers, Ragged]]) -> Starts:
    """All states in the order of their pairs and choices."""
    pair, choice = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    states = Ragged.joined([part[2] for part in parts])
    order = np.lexsort((choice, pair))
    counts = np.bincount(pair)
    origin = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Starts(pair[order], origin.astype(np.int32), states.rows(order))
