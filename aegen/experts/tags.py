"""Token-level tags, the sequence tagging that the paper compares with: every token of a state gets one tag a round.

``KEEP`` and ``DELETE`` say what becomes of the token, ``SUB_x`` writes x in its place, ``INSERT_x`` writes x behind it.
A tag before all others belongs to the beginning of the text, where something can only be inserted. What does not fit
into one round, two insertions in one place say, waits for the next; a round of ``KEEP`` alone ends the game.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from aegen.columns.schemas import STEPS
from aegen.core.actions import Design
from aegen.core.edits import Splice
from aegen.core.environment import Outcome
from aegen.core.errors import InvalidEdit
from aegen.core.format import DELETE, KEEP, MAX_STEPS, Refusal, split_state
from aegen.core.format import INSERT_AFTER as INSERT
from aegen.core.format import SUBSTITUTE as SUB
from aegen.core.types import Tokens
from aegen.experts.metrics import Metric
from aegen.experts.trajectory import Summary


@dataclass(frozen=True)
class Tagging(Design):
    """A design whose actions are as long as the state, and one more."""

    def decode(self, action: Tokens) -> Splice | Refusal:
        """A round of tags is many edits at once, never one."""
        return Refusal.WRONG_KIND


TAGS = Tagging("tags", ("tags",))
METRIC = "levenshtein"  # by default


def next_tags(state: Tokens, goal: Tokens, metric: Metric) -> Tokens:
    """The tags of one round: as many of the metric's edits as fit.

    >>> from aegen.experts.metrics import load_metric
    >>> next_tags(("1", "1", "2"), ("1", "+", "1", "=", "2"), load_metric("levenshtein"))
    ('KEEP', 'INSERT_+', 'INSERT_=', 'KEEP')
    """
    tags, grown = [KEEP] * (len(state) + 1), 0
    for splice in metric.splices(state, goal):
        start, stop = splice.start - grown, splice.stop - grown  # where the edit lies in the state of this round
        grown += splice.growth
        if start == stop:
            if tags[start] == KEEP:  # the tag of the token before the place
                tags[start] = INSERT + splice.new[0]
            continue
        tags[start + 1 : stop + 1] = [DELETE] * (stop - start)
        if splice.new:
            tags[start + 1] = SUB + splice.new[0]
    return tuple(tags)


def rounds(state: Tokens, goal: Tokens, metric: Metric) -> list[tuple[Tokens, Tokens]]:
    """The rounds (state, tags) from a state to its goal; the last one keeps everything.

    >>> from aegen.experts.metrics import load_metric
    >>> for step in rounds(("1", "2"), ("1", "+", "1", "=", "2"), load_metric("levenshtein")):
    ...     print(*step)
    ('1', '2') ('KEEP', 'INSERT_+', 'KEEP')
    ('1', '+', '2') ('KEEP', 'KEEP', 'INSERT_1', 'KEEP')
    ('1', '+', '1', '2') ('KEEP', 'KEEP', 'KEEP', 'INSERT_=', 'KEEP')
    ('1', '+', '1', '=', '2') ('KEEP', 'KEEP', 'KEEP', 'KEEP', 'KEEP', 'KEEP')
    """
    made: list[tuple[Tokens, Tokens]] = []
    for _ in range(len(state) + len(goal) + 1):  # every round brings a shortest script at least one edit further
        made.append((state, next_tags(state, goal, metric)))
        after = apply_tags(*made[-1])
        assert not isinstance(after, Refusal)
        if after == state:
            break
        state = after
    if state != goal:
        raise InvalidEdit(
            f"metric {metric.name}: its edits, as tags, end at {' '.join(state)!r}, for {' '.join(goal)!r}"
        )
    return made


def apply_tags(state: Tokens, tags: Tokens) -> Tokens | Refusal:
    """The state after a round, or why it cannot be executed.

    >>> apply_tags(("1", "9", "2"), ("INSERT_-", "KEEP", "DELETE", "SUB_3"))
    ('-', '1', '3')
    """
    if len(tags) != len(state) + 1 or not (tags[0] == KEEP or tags[0].startswith(INSERT)):
        return Refusal.WRONG_KIND
    after: list[str] = []
    for place, tag in enumerate(tags):
        token = state[place - 1 : place] if place else ()
        if tag == KEEP:
            after += token
        elif tag.startswith(INSERT):
            after += (*token, tag.removeprefix(INSERT))
        elif tag.startswith(SUB):
            after.append(tag.removeprefix(SUB))
        elif tag != DELETE:
            return Refusal.WRONG_KIND
    return tuple(after)


def written(tags: Tokens) -> set[str]:
    """The tokens that tags write."""
    return {tag.partition("_")[2] for tag in tags if tag.startswith((SUB, INSERT))}


@dataclass(frozen=True)
class TaggingGame:
    """The rules for rounds of tags; refusals as in the game of single edits."""

    writable: frozenset[str]
    max_state: int

    def step(self, state: Tokens, action: Tokens) -> Outcome:
        """Execute a round, or refuse it."""
        after = apply_tags(state, action)
        if isinstance(after, Refusal):
            return Outcome(state, refusal=after)
        if set(action) == {KEEP}:
            return Outcome(state, done=True)
        if not self.writable.issuperset(written(action)):
            return Outcome(state, refusal=Refusal.NOT_WRITABLE)
        return Outcome(after) if len(after) <= self.max_state else Outcome(state, refusal=Refusal.TOO_LONG)


def tag_batch(batch: pa.RecordBatch, metric: Metric, summary: Summary) -> pa.RecordBatch:
    """The rounds of a batch of pairs, as rows of a shard."""
    return pa.RecordBatch.from_pylist(list(_rows(batch, metric, summary)), schema=STEPS)


def _rows(batch: pa.RecordBatch, metric: Metric, summary: Summary) -> Iterator[dict[str, Any]]:
    for pair, source, target in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        steps = rounds(split_state(source), split_state(target), metric)
        if len(steps) > MAX_STEPS:
            raise InvalidEdit(f"pair {pair}: {len(steps):,} rounds of tags; at most {MAX_STEPS:,} can be stored")
        summary.max_steps = max(summary.max_steps, len(steps))
        for number, (state, tags) in enumerate(steps):
            summary.state_tokens.update(state)
            summary.action_tokens.update(tags)
            summary.max_state = max(summary.max_state, len(state))
            yield {"pair": pair, "origin": 0, "step": number, "state": " ".join(state), "action": list(tags)}
