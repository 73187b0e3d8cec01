"""The one kind of edit: ``state[start:stop] = new``. Everything a metric finds is a sequence of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aegen.core.errors import InvalidEdit
from aegen.core.types import Tokens


@dataclass(frozen=True)
class Splice:
    """``state[start:stop] = new``.

    >>> Splice(1, 1, ("+",)).apply(("1", "1", "2"))
    ('1', '+', '1', '2')
    """

    start: int
    stop: int
    new: Tokens

    def apply(self, state: Tokens) -> Tokens:
        """The state after the edit."""
        if not 0 <= self.start <= self.stop <= len(state):
            raise InvalidEdit(f"{self} does not fit a state of {len(state)} tokens")
        return state[: self.start] + self.new + state[self.stop :]

    @property
    def growth(self) -> int:
        """By how many tokens the state becomes longer."""
        return len(self.new) - (self.stop - self.start)


def replay(state: Tokens, splices: Iterable[Splice]) -> Tokens:
    """Apply splices one after the other, each to what the one before left."""
    for splice in splices:
        state = splice.apply(state)
    return state
