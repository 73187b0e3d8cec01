"""Trajectory augmentation (TA, the paper's Algorithm 2): states off the expert's path, to start from as well.

Skipping some of a pair's edits and executing the others, left to right, leads to a shifted state; TG from there to
the same goal is a trajectory that shows the way back. :func:`shifted_states` is the algorithm as printed;
:func:`augmented_starts` does the same for whole columns. The edits that were skipped lead on to the goal: each leaves
the goal's tokens behind it, so what has been executed to its right does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegen.columns.ragged import ABSENT, Ragged
from aegen.core.edits import Splice
from aegen.core.errors import InvalidSpec
from aegen.core.randomness import Words, derive_key, keyed_hash
from aegen.core.types import Integers, Tokens
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import Pairs, Starts, Summary

BUDGET = 1 << 18  # pieces of states that are put together at once
ALGORITHMS = ("paper", "released")
# Raised when the rows for the same options change. Before 2, shifted states had the metric's script, whatever other
# trajectories of the pair did in the states it passed through. Before 3, pairs with up to max_edits edits had no limit,
# and samples were smaller, for a state that was drawn twice was not replaced by another.
RULE = 3
# At most this many shifted states of a pair of text: each has fewer edits left than the source, so no pair has more
# than ten times the steps of its own trajectory.
TEXT_STATES = 9
HASH = derive_key("states")  # the key under which states are compared


@dataclass(frozen=True)
class Augmentation:
    """Which shifted states to take.

    ``paper`` is Algorithm 2: each state off the expert's path once. ``released`` is what the authors' code counts:
    every choice of some but not all edits. ``max_states`` is the budget of each pair: if there are more states, or more
    than ``max_edits`` edits, it gets a random sample, which depends on the seed and the pair's id alone. ``rule`` says
    how the trajectories were made; older datasets do not record it.
    """

    algorithm: str = "paper"
    max_edits: int = 10
    max_states: int = 1024
    seed: int = 0
    rule: int | None = RULE

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidSpec(f"algorithm={self.algorithm}: expected one of {', '.join(ALGORITHMS)}")
        if not 0 <= self.max_edits <= 20:
            raise InvalidSpec(f"max_edits={self.max_edits}: expected 0 to 20 (each one doubles the states)")
        if not 0 <= self.max_states <= 1 << 20:
            raise InvalidSpec(f"max_states={self.max_states}: expected 0 to {1 << 20:,}")

    @classmethod
    def of(
        cls,
        task: str,
        algorithm: str = algorithm,
        max_edits: int = max_edits,
        max_states: int | None = None,
        seed: int = seed,
    ) -> Augmentation:
        """The task's choice where nothing else is asked: of equations all states, of text a few for each pair.

        >>> Augmentation.of("aor").max_states, Augmentation.of("text").max_states
        (1024, 9)
        """
        if max_states is None:
            max_states = TEXT_STATES if task == "text" else cls.max_states
        return cls(algorithm, max_edits, max_states, seed)

    def capped(self, edits: Integers) -> npt.NDArray[np.bool_]:
        """Whether pairs with so many edits get a sample.

        >>> Augmentation(max_states=9).capped(np.array([2, 3, 4, 40])).tolist()  # there are 1, 4, 11 and many states
        [False, False, True, True]
        """
        subsets: Integers = np.left_shift(1, np.minimum(edits, 20))
        states = subsets - (edits + 1 if self.algorithm == "paper" else 2)
        return np.asarray((edits > self.max_edits) | (states > self.max_states))

    @property
    def drawn(self) -> int:
        """How many choices of edits are drawn for a sample: some lead to a state that is known already."""
        return 2 * self.max_states + 16

    def sampled(self, edits: int) -> int:
        """How many choices of so many edits are in a sample: as many as are drawn, or all if there are no more.

        >>> [Augmentation(max_states=9).sampled(edits) for edits in (5, 6)]
        [32, 34]
        """
        return self.drawn if edits > 20 else min(self.drawn, 1 << edits)  # of more, never all


def shifted_states(state: Tokens, edits: list[Splice]) -> dict[Tokens, list[Splice]]:
    """Algorithm 2 of the paper, as printed: execute the first edit or skip it, then go on with the others.

    Each state comes with the edits that were skipped on the way to it; executed there, they lead to the goal.

    >>> edits = [Splice(1, 1, ("+",)), Splice(3, 3, ("=",))]
    >>> shifted_states(("1", "1", "2"), edits)
    {('1', '1', '=', '2'): [Splice(start=1, stop=1, new=('+',))]}
    """
    path = [state]
    for edit in edits:
        path.append(edit.apply(path[-1]))
    found: dict[Tokens, list[Splice]] = {}

    def branch(current: Tokens, index: int, shift: int, skipped: list[Splice]) -> None:
        if index < len(edits):
            edit = edits[index]
            moved = Splice(edit.start - shift, edit.stop - shift, edit.new)
            branch(moved.apply(current), index + 1, shift, skipped)
            branch(current, index + 1, shift + edit.growth, [*skipped, edit])
        elif current not in path and current not in found:
            found[current] = skipped

    branch(state, 0, 0, [])
    return found


@dataclass(frozen=True)
class Augmented:
    """Where the trajectories of some pairs begin, and what is known of the states there."""

    starts: Starts
    left: Scripts  # of each start: the edits of its pair's own script that are not executed yet
    new: npt.NDArray[np.bool_]  # of each start: whether it is a source, or off the path and not found before
    doubtful: npt.NDArray[np.bool_]  # of each pair: whether two choices of its edits may lead to the same state


def augmented_starts(pairs: Pairs, scripts: Scripts, options: Augmentation, summary: Summary) -> Augmented:
    """Each pair's own source and, behind it, its shifted states in the order in which Algorithm 2 finds them.

    ``scripts`` are the pairs' own.
    """
    own = np.arange(len(pairs.ids))
    doubtful = np.zeros(len(own), dtype=bool)
    parts = [_Found(own, np.full(len(own), -1), pairs.sources, scripts, np.ones(len(own), dtype=bool))]
    for edits in np.unique(scripts.counts[scripts.counts > 0]).tolist():
        (group,) = np.nonzero(scripts.counts == edits)
        capped = bool(options.capped(np.array(edits)))
        if capped:
            summary.capped_pairs += len(group)
        choices = options.sampled(edits) if capped else 2**edits
        step = max(1, BUDGET // ((choices + edits + 1) * (2 * edits + 1)))
        for at in range(0, len(group), step):
            part = group[at : at + step]
            chosen = _sampled(pairs.ids[part], edits, options) if capped else all_choices(edits)
            passed = 2 ** np.arange(edits, -1, -1) - 1  # where the path lies among the choices: here, or behind them
            if capped:
                passed = choices + np.arange(edits + 1)
                chosen = np.concatenate([chosen, np.broadcast_to(path(edits), (len(part), edits + 1, edits))], axis=1)
            states = execute(pairs, scripts, part, chosen)
            hashes = states.hashes(HASH).reshape(len(part), -1)
            seen_before, passed_by = _known(hashes[:, :choices], hashes[:, passed])
            doubtful[part] = capped | seen_before.any(axis=1)
            new = ~(seen_before | passed_by.any(axis=2))
            taken = new if options.algorithm == "paper" else _released(seen_before, passed_by, capped)
            if capped:
                taken &= np.cumsum(taken, axis=1) <= options.max_states
            row, choice = np.nonzero(taken)
            left = _left(scripts, part[row], chosen[row if capped else 0, choice])
            states = states.rows(row * hashes.shape[1] + choice)
            parts.append(_Found(part[row], choice, states, left, new[row, choice]))
    return _joined(parts, doubtful)


def _known(mine: Words, path: Words) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether a state was found before, (pairs, choices), and is on the path, (pairs, choices, edits + 1).

    States with equal 64-bit hashes count as equal.
    """
    order = np.argsort(mine, axis=1, kind="stable")
    ordered = np.take_along_axis(mine, order, axis=1)
    seen_before = np.zeros(mine.shape, dtype=bool)
    np.put_along_axis(seen_before, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return seen_before, mine[:, :, None] == path[:, None, :]


def _released(
    seen_before: npt.NDArray[np.bool_], passed_by: npt.NDArray[np.bool_], capped: bool
) -> npt.NDArray[np.bool_]:
    """Which choices the authors' code counts, (pairs, choices): all but "nothing" and "everything"; no sample twice."""
    if capped:
        return ~(seen_before | passed_by[:, :, [0, -1]].any(axis=2))
    kept = np.ones(seen_before.shape, dtype=bool)
    kept[:, [0, -1]] = False  # "execute everything" comes first, "skip everything" last
    return kept


def _left(scripts: Scripts, pair: Integers, executed: npt.NDArray[np.bool_]) -> Scripts:
    """The edits that are left, from the states after others were executed, (states, edits)."""
    at = scripts.offsets[pair][:, None] + np.arange(executed.shape[1])
    start, stop, new_start, new_stop = (column[at] for column in scripts.edits)
    grown = np.where(executed, (new_stop - new_start) - (stop - start), 0)
    moved = np.cumsum(grown, axis=1) - grown  # by the edits before
    skipped = ~executed
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(skipped.sum(axis=1))])
    return Scripts(offsets, *(column[skipped] for column in (start + moved, stop + moved, new_start, new_stop)))


def path(edits: int) -> npt.NDArray[np.bool_]:
    """(1, edits + 1, edits): no edit, the first one, the first two, …"""
    return np.tri(edits + 1, edits, -1, dtype=bool)[None]


def all_choices(edits: int) -> npt.NDArray[np.bool_]:
    """(1, 2^edits, edits): executing comes before skipping, the first edit decides first."""
    numbers = np.arange(2**edits)[::-1, None]
    return ((numbers >> np.arange(edits)[::-1]) & 1).astype(bool)[None]


def _sampled(ids: npt.NDArray[np.int64], edits: int, options: Augmentation) -> npt.NDArray[np.bool_]:
    """(pairs, sampled, edits): random choices; if there are no more than are drawn, all of them in random order."""
    key = derive_key(options.seed, "choices")
    own = keyed_hash(key, ids)[:, None].astype(np.int64)
    count = options.sampled(edits)
    if count == 1 << edits:
        order = np.argsort(keyed_hash(key, own + np.arange(count)), axis=1, kind="stable")
        return np.asarray(all_choices(edits)[0][order])
    words = keyed_hash(key, own + np.arange(count * edits))
    return (words >= np.uint64(2**63)).reshape(len(ids), count, edits)


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


class _Found(NamedTuple):
    """Some of the starts, as columns."""

    pair: Integers
    choice: Integers  # its number among those of the pair
    states: Ragged
    left: Scripts
    new: npt.NDArray[np.bool_]


def _joined(parts: list[_Found], doubtful: npt.NDArray[np.bool_]) -> Augmented:
    """All starts in the order of their pairs and choices."""
    pair, choice, new = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pair", "choice", "new"))
    order = np.lexsort((choice, pair))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = np.cumsum([len(part.pair) for part in parts])
    places = np.split(place, ends[:-1])
    left = Scripts.merged(len(pair), [(where, part.left) for where, part in zip(places, parts, strict=True)])
    counts = np.bincount(pair)
    origin = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    states = Ragged.joined([part.states for part in parts]).rows(order)
    return Augmented(Starts(pair[order], origin.astype(np.int32), states), left, new[order], doubtful)
