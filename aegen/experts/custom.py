"""Metrics of users: a plain function, checked on every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import numpy as np

from aegen.columns.ragged import Ragged
from aegen.core.edits import Splice
from aegen.core.errors import AegenError, InvalidEdit
from aegen.core.types import Tokens
from aegen.experts.scripts import Scripts


class Custom:
    """A metric made of a plain function (state, goal) -> splices, checked on every pair that it is given."""

    shortest: ClassVar[bool] = False  # for all we know

    def __init__(
        self, name: str, function: Callable[[Tokens, Tokens], Iterable[Splice]], backend: dict[str, str]
    ) -> None:
        self.name, self.function, self.backend = name, function, backend

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """What the function says; an error shows the pair."""
        found, behind, reached = [], 0, state
        pair = f"for {' '.join(state)!r} -> {' '.join(goal)!r}"
        try:
            for splice in self.function(state, goal):
                if not isinstance(splice, Splice) or not isinstance(splice.new, tuple):
                    raise InvalidEdit(f"{splice!r}: expected a Splice with a tuple of tokens")
                if splice.start == splice.stop and not splice.new:
                    raise InvalidEdit(f"{splice} changes nothing")
                if splice.start < behind:
                    raise InvalidEdit(f"{splice} is not to the right of the edit before it")
                reached = splice.apply(reached)
                behind = splice.start + len(splice.new)
                found.append(splice)
        except Exception as error:  # whatever a stranger's function does, the user wants to know for which pair
            what = str(error) if isinstance(error, AegenError) else f"{type(error).__name__}: {error}"
            raise InvalidEdit(f"metric {self.name}: {what}, {pair}") from None
        if reached != goal:
            raise InvalidEdit(f"metric {self.name}: its edits end at {' '.join(reached)!r}, {pair}")
        return found

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """Call the function for each pair."""
        edits: list[tuple[int, int, int, int]] = []
        offsets = [0]
        for state, goal in zip(states.tuples(alphabet), goals.tuples(alphabet), strict=True):
            grown = 0
            for splice in self.splices(state, goal):
                start = splice.start - grown
                edits.append((start, start + splice.stop - splice.start, splice.start, splice.start + len(splice.new)))
                grown += splice.growth
            offsets.append(len(edits))
        columns = np.array(edits, dtype=np.int64).reshape(-1, 4).T
        return Scripts(np.array(offsets, dtype=np.int64), *columns)

    def independent(self, goals: Ragged, scripts: Scripts) -> bool:
        """Nothing is known about a user's function."""
        return False
