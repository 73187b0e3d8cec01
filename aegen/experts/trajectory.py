"""Trajectory generation (TG, the paper's Algorithm 1): from states and goals to the expert's steps.

:func:`trajectory` is the algorithm as printed, one pair at a time. :func:`step_batch` gives the same rows for whole
columns: the state before an edit is a prefix of the goal followed by a suffix of the start, so all states of all
trajectories are slices of existing arrays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.columns.arrow import of_numbers, of_texts, to_numbers
from aegen.columns.ragged import Ragged, intern
from aegen.columns.schemas import STEPS
from aegen.core.actions import SPECIAL, Design, position
from aegen.core.errors import InvalidEdit
from aegen.core.types import Integers, Tokens
from aegen.experts.metrics import Metric
from aegen.experts.scripts import KINDS, Scripts, edit_kinds

DONE = -1  # in the place of an edit
CHUNK = 1 << 14  # states that are written at a time: what they are made of stays in the processor's cache


def trajectory(state: Tokens, goal: Tokens, metric: Metric, design: Design) -> list[tuple[Tokens, Tokens]]:
    """The steps (state, action) from a state to its goal; the last action is DONE.

    >>> from aegen.core.actions import DESIGNS
    >>> from aegen.experts.metrics import load_metric
    >>> for step in trajectory(tuple("112"), tuple("1+1=2"), load_metric("levenshtein"), DESIGNS["insert"]):
    ...     print(*step)
    ('1', '1', '2') ('POS_1', '+')
    ('1', '+', '1', '2') ('POS_3', '=')
    ('1', '+', '1', '=', '2') ('DONE', 'DONE')
    """
    steps = []
    for splice in metric.splices(state, goal):
        steps.append((state, design.encode(splice)))
        state = splice.apply(state)
    return [*steps, (state, design.done)]


@dataclass(frozen=True)
class Pairs:
    """A batch of pairs as columns; ids stand for the tokens of ``alphabet``."""

    ids: npt.NDArray[np.int64]
    sources: Ragged
    goals: Ragged
    alphabet: list[str]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Pairs:
        """The pairs of a batch with the columns id, source, target."""
        both, alphabet = intern(pa.concat_arrays([batch.column("source"), batch.column("target")]))
        cut, middle = len(batch), both.offsets[len(batch)]
        return cls(
            to_numbers(batch.column("id")),
            Ragged(both.values[:middle], both.offsets[: cut + 1]),
            Ragged(both.values[middle:], both.offsets[cut:] - middle),
            alphabet,
        )

    def part(self, begin: int, end: int) -> Pairs:
        """The pairs begin … end-1."""
        if (begin, end) == (0, len(self.ids)):
            return self
        index = np.arange(begin, end)
        return Pairs(self.ids[begin:end], self.sources.rows(index), self.goals.rows(index), self.alphabet)


@dataclass(frozen=True)
class Starts:
    """States to play from, as columns: the pair (row of ``Pairs``), the origin, the tokens as ids."""

    pair: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int32]
    states: Ragged

    def part(self, begin: int, end: int) -> Starts:
        """The starts begin … end-1."""
        if (begin, end) == (0, len(self.pair)):
            return self
        return Starts(self.pair[begin:end], self.origin[begin:end], self.states.rows(np.arange(begin, end)))


@dataclass
class Summary:
    """What the description of a shard says, gathered from its batches."""

    state_tokens: set[str] = field(default_factory=set)
    action_tokens: set[str] = field(default_factory=set)
    max_state: int = 0
    max_steps: int = 0
    capped_pairs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # edits by what they do

    def add(self, pairs: Pairs, lengths: Integers, number: Integers, scripts: Scripts, times: Integers) -> None:
        """Add the tokens and lengths of states, the numbers of steps, and how many ``times`` each edit is executed."""
        self.state_tokens.update(pairs.alphabet)
        self.max_state = max(self.max_state, int(lengths.max(initial=0)))
        self.max_steps = max(self.max_steps, int(number.max(initial=0)) + 1)
        kinds = edit_kinds(scripts.stop - scripts.start, scripts.new_stop - scripts.new_start)
        counts = np.bincount(kinds, times, minlength=len(KINDS)).astype(np.int64).tolist()
        self.kinds.update({kind: count for kind, count in zip(KINDS, counts, strict=True) if count})


def expert_starts(pairs: Pairs) -> Starts:
    """Each pair's own source."""
    count = len(pairs.ids)
    return Starts(np.arange(count), np.zeros(count, dtype=np.int32), pairs.sources)


def step_batch(pairs: Pairs, starts: Starts, scripts: Scripts, design: Design, summary: Summary) -> pa.RecordBatch:
    """All steps of the trajectories from ``starts`` to the goals of their pairs, in order; one script per start."""
    codes, tokens = edit_codes(pairs, np.repeat(starts.pair, scripts.counts), scripts, design)
    return Steps.of(pairs, starts, scripts).batch(pairs, starts, scripts, codes, tokens, summary)


def as_batch(
    ids: Integers,
    origin: Integers,
    number: Integers,
    states: pa.StringArray,
    codes: Integers,
    tokens: pa.StringArray,
    summary: Summary,
) -> pa.RecordBatch:
    """The columns of a shard; actions come as codes, and which of them occur is noted."""
    used = np.flatnonzero(np.bincount(codes.ravel()))
    summary.action_tokens.update(tokens.take(of_numbers(used)).to_pylist())
    ends = np.arange(0, codes.size + 1, codes.shape[1], dtype=np.int32)
    actions = pa.ListArray.from_arrays(of_numbers(ends), tokens.take(of_numbers(codes.ravel())))
    columns = [of_numbers(ids), of_numbers(origin), of_numbers(number.astype(np.int16)), states, actions]
    return pa.record_batch(columns, schema=STEPS)


@dataclass(frozen=True)
class Steps:
    """Steps of trajectories as columns, one trajectory behind the other.

    A state is what is done of the goal (``done`` tokens), followed by the start ``row`` from its token ``rest`` on.
    """

    offsets: Integers  # of the trajectories
    origin: Integers
    number: Integers  # of the step in its trajectory
    pair: Integers  # row of ``Pairs``
    row: Integers  # of ``Starts``
    done: Integers
    rest: Integers
    lengths: Integers  # tokens of the state
    edit: Integers  # index of the edit that is executed, or DONE

    @classmethod
    def of(cls, pairs: Pairs, starts: Starts, scripts: Scripts) -> Steps:
        """The trajectories from all starts, each by its own script."""
        counts = scripts.counts + 1
        ends = np.cumsum(counts)
        if counts.max(initial=0) > np.iinfo(np.int16).max:
            raise InvalidEdit(
                f"a trajectory of {counts.max():,} steps; at most {np.iinfo(np.int16).max:,} can be stored"
            )
        row = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(row)) - np.repeat(ends - counts, counts)
        last = ends - 1
        edits = np.delete(np.arange(len(row)), last)
        done, rest, edit = (np.empty(len(row), dtype=np.int64) for _ in range(3))
        done[edits], rest[edits], edit[edits] = scripts.new_start, scripts.start, np.arange(len(edits))
        done[last], rest[last], edit[last] = pairs.goals.lengths[starts.pair], starts.states.lengths, DONE
        lengths = done + starts.states.lengths.take(row) - rest
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        return cls(offsets, starts.origin.take(row), number, starts.pair.take(row), row, done, rest, lengths, edit)

    def part(self, begin: int, end: int) -> Steps:
        """The trajectories begin … end-1."""
        if (begin, end) == (0, len(self.offsets) - 1):
            return self
        first, last = self.offsets[begin], self.offsets[end]
        columns = (getattr(self, each.name)[first:last] for each in fields(self)[1:])
        return Steps(self.offsets[begin : end + 1] - first, *columns)

    def pieces(self, pairs: Pairs, starts: Starts, some: slice | Integers) -> list[tuple[Integers, Integers]]:
        """Where the two pieces of some states begin in :func:`pool`, and their lengths."""
        done, row = self.done[some], self.row[some]
        suffix = starts.states.offsets.take(row) + (len(pairs.goals.values) + self.rest[some])
        return [(pairs.goals.offsets.take(self.pair[some]), done), (suffix, self.lengths[some] - done)]

    def states(self, pairs: Pairs, starts: Starts) -> pa.StringArray:
        """The states as texts."""
        tokens, both = of_texts(pairs.alphabet), pool(pairs, starts)
        texts = []
        for at in range(0, max(len(self.row), 1), CHUNK):
            begin, length = (
                np.stack(each, axis=1) for each in zip(*self.pieces(pairs, starts, slice(at, at + CHUNK)), strict=True)
            )
            states = Ragged.of_slices(both, begin.ravel(), length.ravel(), np.arange(0, begin.size + 1, 2))
            texts.append(states.texts(tokens))
        return texts[0] if len(texts) == 1 else pa.concat_arrays(texts)

    def batch(
        self, pairs: Pairs, starts: Starts, scripts: Scripts, codes: Integers, tokens: pa.StringArray, summary: Summary
    ) -> pa.RecordBatch:
        """The steps as rows of a shard; codes and tokens are those of :func:`edit_codes`."""
        times = np.bincount(self.edit - DONE, minlength=len(codes))[1:]  # without DONE
        summary.add(pairs, self.lengths, self.number, scripts, times)
        states, codes = self.states(pairs, starts), codes.take(self.edit, axis=0)
        return as_batch(pairs.ids.take(self.pair), self.origin, self.number, states, codes, tokens, summary)


def pool(pairs: Pairs, starts: Starts) -> Integers:
    """All tokens that states are made of: those of the goals, then those of the starts."""
    return np.concatenate([pairs.goals.values, starts.states.values])


def edit_codes(pairs: Pairs, pair: Integers, scripts: Scripts, design: Design) -> tuple[Integers, pa.StringArray]:
    """The actions of all edits as codes (edits + 1, slots), DONE behind them, and the token of each code.

    ``pair`` is the row of ``pairs`` that each edit belongs to.
    """
    removed, added = scripts.stop - scripts.start, scripts.new_stop - scripts.new_start
    fits = design.expresses(removed, added)
    if not fits.all():
        worst = int(np.flatnonzero(~fits)[0])
        source, goal = (
            " ".join(next(side.rows(pair[[worst]]).tuples(pairs.alphabet))) for side in (pairs.sources, pairs.goals)
        )
        edit = f"an edit that replaces {removed[worst]} tokens by {added[worst]}"
        raise InvalidEdit(
            f"design {design.name} cannot express {edit}: pair {pairs.ids[pair[worst]]}, {source!r} -> {goal!r}"
        )
    places = int(np.max([scripts.new_start + removed], initial=0)) + 1
    first_place, first_token = len(SPECIAL), len(SPECIAL) + places
    writes = added > 0
    place = pairs.goals.offsets[pair] + scripts.new_start
    new = pairs.goals.values.take(np.where(writes, place, 0)) if writes.any() else place
    written = {
        "operation": np.where(added == 0, 2, np.where(removed == 0, 1, 3)),
        "position": scripts.new_start + first_place,
        "left": scripts.new_start + first_place,
        "right": scripts.new_start + removed - 1 + first_place,
        "token": np.where(writes, new + first_token, scripts.new_start + first_place),
    }
    codes = np.zeros((len(place) + 1, len(design.slots)), dtype=np.int32)  # 0 is DONE
    codes[:-1] = np.stack([written[slot] for slot in design.slots], axis=1)
    return codes, of_texts([*SPECIAL, *map(position, range(places)), *pairs.alphabet])
