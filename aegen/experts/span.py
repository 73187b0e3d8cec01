"""The paper's SELF, the metric of AES: each parenthesis becomes one token.

:func:`span` is the definition, one pair at a time; :class:`Span` finds the same scripts for whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from aegen.columns.ragged import Ragged
from aegen.core.edits import Splice
from aegen.core.errors import InvalidEdit
from aegen.core.types import Tokens
from aegen.experts.custom import Custom
from aegen.experts.scripts import Scripts

OPEN, CLOSE = "(", ")"


def span(state: Tokens, goal: Tokens) -> list[Splice]:
    """From left to right, each parenthesis becomes the goal's token at its place.

    >>> span(("(", "2", "+", "2", ")", "=", "4"), ("4", "=", "4"))
    [Splice(start=0, stop=5, new=('4',))]
    """
    found = []
    while OPEN in state:
        start = state.index(OPEN)
        if CLOSE not in state[start:] or start >= len(goal):
            raise InvalidEdit("a parenthesis that is not closed or has no token in the goal")
        splice = Splice(start, state.index(CLOSE, start) + 1, (goal[start],))
        found.append(splice)
        state = splice.apply(state)
    return found


class Span:
    """:func:`span` for whole columns."""

    name: ClassVar[str] = "span"
    backend: ClassVar[dict[str, str]] = {}
    shortest: ClassVar[bool] = True  # one edit for each parenthesis
    _definition = Custom("span", span, {})

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """The script of one pair, checked to reach the goal."""
        return self._definition.splices(state, goal)

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """The scripts of many pairs; pairs without one are left to the definition, which explains what is wrong."""
        return _scripts(states, goals, alphabet) or self._definition.scripts(states, goals, alphabet)

    def independent(self, goals: Ragged, scripts: Scripts) -> bool:
        """Always: a goal that can be reached has no ``(``.

        So in the state after any of the edits the next ``(`` begins the first edit that is left, and the next ``)``
        ends it, as before. Where two subsets first differ, one state has a ``(`` and the other a token of the goal.
        """
        return True


def _scripts(states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts | None:
    """The scripts, or None if a pair has none that ends at its goal."""
    opening, closing = (alphabet.index(token) if token in alphabet else -1 for token in (OPEN, CLOSE))
    opens = states.values == opening
    (parens,) = np.nonzero(opens | (states.values == closing))
    rows, opens = np.searchsorted(states.offsets, parens, side="right") - 1, opens.take(parens)
    # A "(" after another "(" lies within the edit that the first one began.
    nested = np.zeros(len(parens), dtype=bool)
    nested[1:] = opens[:-1] & (rows[1:] == rows[:-1])
    (begins,), (closes,) = np.nonzero(opens & ~nested), np.nonzero(~opens)
    row, nearest = rows.take(begins), np.searchsorted(closes, begins)
    if nearest.max(initial=-1) >= len(closes) or (rows.take(ends := closes.take(nearest)) != row).any():
        return None  # not closed
    first, last = parens.take(begins), parens.take(ends)
    offsets = np.zeros(len(states) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=len(states)), out=offsets[1:])
    shrunk = np.zeros(len(row) + 1, dtype=np.int64)
    np.cumsum(last - first, out=shrunk[1:])
    start = first - states.offsets.take(row)
    new_start = start - (shrunk[:-1] - shrunk.take(offsets.take(row)))
    if (states.lengths - np.diff(shrunk.take(offsets)) != goals.lengths).any():
        return None  # too many tokens, or too few
    # What no edit touches must be the goal's, and no edit may write another "(".
    inside = np.zeros(len(states.values) + 1, dtype=np.int8)
    inside[first + 1] += 1
    inside[last + 1] -= 1
    reached = states.values.take(np.flatnonzero(np.cumsum(inside[:-1], dtype=np.int8) == 0))
    written = goals.offsets.take(row) + new_start
    reached[written] = goals.values.take(written)
    if (reached != goals.values).any() or (goals.values == opening).any():
        return None
    return Scripts(offsets, start, start + (last - first + 1), new_start, new_start + 1)
