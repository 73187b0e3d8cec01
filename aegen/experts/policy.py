"""One action for each state of a pair, whichever trajectory passes through it.

Often several scripts are equally short, and a metric breaks such a tie differently from another state: then two
trajectories of a pair would teach two actions for one state. So a pair has a policy. Each start has a script: the edits
of the pair's own that are left, or the metric's if those are fewer, as can be with a user's metric. The first script
that reaches a state decides its action, the source's before those of the shifted states, and all trajectories of the
pair do what has been decided.

With a metric that finds the fewest edits, all trajectories are shortest ones: the edits that are left are the fewest
from there (else there would be fewer from the source), so each action, whichever script it comes from, is the first of
the fewest edits from its state.

:func:`policy` is the definition, one pair at a time; :func:`one_action` does the same for whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from aegen.columns.ragged import slice_hashes
from aegen.core.edits import Splice
from aegen.core.types import Integers, Tokens
from aegen.experts.augment import HASH, Augmented, shifted_states
from aegen.experts.metrics import Metric
from aegen.experts.scripts import Scripts
from aegen.experts.trajectory import DONE, Pairs, Starts, Steps, pool


def policy(source: Tokens, goal: Tokens, metric: Metric) -> dict[Tokens, Splice | None]:
    """What to do in each state on the way from the source and its shifted states to the goal; None at the goal.

    >>> from aegen.experts.metrics import load_metric
    >>> decided = policy((), tuple("abb"), load_metric("levenshtein"))
    >>> for state, edit in decided.items():
    ...     print("".join(state) or "-", edit and (edit.start, *edit.new))
    - (0, 'a')
    a (1, 'b')
    ab (2, 'b')
    abb None
    bb (0, 'a')
    b (0, 'a')

    From ``b`` the metric would come to ``ab`` too and write ``b`` at 1 there, which is as short.
    """
    own = metric.splices(source, goal)
    shifted = shifted_states(source, own).items()
    return decide(
        [(source, own), *((state, min(left, metric.splices(state, goal), key=len)) for state, left in shifted)]
    )


def decide(scripts: Iterable[tuple[Tokens, list[Splice]]]) -> dict[Tokens, Splice | None]:
    """What the first script that reaches a state does there.

    A user's script may come back to a state: the last time counts, so what has been decided never leads in a circle.
    """
    decided: dict[Tokens, Splice | None] = {}
    for start, script in scripts:
        mine, state = dict[Tokens, Splice | None](), start
        for splice in script:
            mine[state] = splice
            state = splice.apply(state)
        mine[state] = None
        decided |= mine | decided
    return decided


def start_scripts(pairs: Pairs, found: Augmented, metric: Metric) -> tuple[Scripts, npt.NDArray[np.bool_]]:
    """The script of each start: the edits of the pair's own that are left, or the metric's if those are fewer.

    Also, in which pairs two scripts may do different things in one state. In all others every script is a part of the
    pair's own, and a state is reached by one choice of edits alone: the first of the others is its action.
    """
    starts, left, doubtful = found.starts, found.left, found.doubtful
    if metric.shortest:
        return left, doubtful
    (asked,) = np.nonzero(found.new & (starts.origin > 0))
    answers = metric.scripts(starts.states.rows(asked), pairs.goals.rows(starts.pair[asked]), pairs.alphabet)
    (shorter,) = np.nonzero(answers.counts < left.counts[asked])
    if not len(shorter):
        return left, doubtful
    where = asked[shorter]
    others = np.delete(np.arange(len(starts.pair)), where)
    doubtful = doubtful.copy()
    doubtful[starts.pair[where]] = True
    return Scripts.merged(len(starts.pair), [(others, left.rows(others)), (where, answers.rows(shorter))]), doubtful


def one_action(
    pairs: Pairs, starts: Starts, steps: Steps, new: npt.NDArray[np.bool_], doubtful: npt.NDArray[np.bool_]
) -> Steps:
    """The steps of all trajectories after each state of a pair got one action; ``steps`` are those of the scripts.

    Starts that are not ``new`` decide nothing, so it makes no difference whether they are there. Only ``doubtful``
    pairs are looked at. States with equal 64-bit hashes count as equal.
    """
    (played,) = np.nonzero(doubtful[starts.pair])
    if not len(played):
        return steps
    first = _deciding(pairs, starts, steps, new, doubtful)
    counts, rounds = np.diff(steps.offsets), []
    trajectory, row = played, first.take(steps.offsets[played])
    counts[played] = 0
    while len(trajectory):
        rounds.append((trajectory, row))
        counts[trajectory] += 1
        going = steps.edit.take(row) != DONE
        trajectory, row = trajectory[going], first.take(row[going] + 1)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    which = number + np.repeat(steps.offsets[:-1], counts)
    for index, (trajectory, row) in enumerate(rounds):
        which[offsets[trajectory] + index] = row
    columns = {field.name: getattr(steps, field.name).take(which) for field in fields(Steps)[3:]}
    return Steps(offsets, np.repeat(starts.origin, counts), number, **columns)


def _deciding(
    pairs: Pairs, starts: Starts, steps: Steps, new: npt.NDArray[np.bool_], doubtful: npt.NDArray[np.bool_]
) -> Integers:
    """For each step the one that decides what is done in its state; of pairs without doubt the step itself."""
    # As they decide: those of new starts before others, and of each trajectory the last one first.
    counts = np.diff(steps.offsets)
    order = np.repeat(steps.offsets[:-1] + steps.offsets[1:] - 1, counts) - np.arange(len(steps.row))
    looked_at, fresh = doubtful.take(steps.pair), np.repeat(new, counts)
    order = np.concatenate([order[looked_at & fresh], order[looked_at & ~fresh]])
    hashes = slice_hashes(HASH, pool(pairs, starts), steps.pieces(pairs, starts, order))
    pair = steps.pair.take(order)
    by_state = np.lexsort((hashes, pair))
    hashes, pair, order = hashes.take(by_state), pair.take(by_state), order.take(by_state)
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (hashes[1:] != hashes[:-1]) | (pair[1:] != pair[:-1])
    first = np.arange(len(steps.row))
    first[order] = order[begins].take(np.cumsum(begins) - 1)
    return first
