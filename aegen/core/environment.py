"""The game: execute an action or refuse it and keep the state."""

from __future__ import annotations

from dataclasses import dataclass

from aegen.core.actions import Design
from aegen.core.edits import Splice
from aegen.core.format import Refusal
from aegen.core.types import Tokens


@dataclass(frozen=True)
class Outcome:
    """What came of an action: the next state, whether the game is over, and why it was refused, if it was."""

    state: Tokens
    done: bool = False
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Environment:
    """``E(state, action)``. It never raises on an action made of action tokens.

    >>> from aegen.core.actions import DESIGNS
    >>> game = Environment(DESIGNS["insert"], frozenset("+="), max_state=5)
    >>> game.step(("1", "1", "2"), ("POS_1", "+")).state
    ('1', '+', '1', '2')
    >>> game.step(("1", "1", "2"), ("POS_9", "+")).refusal
    <Refusal.OUT_OF_RANGE: 'out-of-range'>
    """

    design: Design
    writable: frozenset[str]
    max_state: int

    def step(self, state: Tokens, action: Tokens) -> Outcome:
        """Execute the action, or refuse it."""
        if action == self.design.done:
            return Outcome(state, done=True)
        edit = self.design.decode(action)
        refusal = self._verify(state, edit) if isinstance(edit, Splice) else edit
        if refusal is None and isinstance(edit, Splice):
            return Outcome(edit.apply(state))
        return Outcome(state, refusal=refusal)

    def _verify(self, state: Tokens, edit: Splice) -> Refusal | None:
        if edit.stop > len(state):  # an insertion may stand behind the last token
            return Refusal.OUT_OF_RANGE
        if not self.writable.issuperset(edit.new):
            return Refusal.NOT_WRITABLE
        if len(state) + edit.growth > self.max_state:
            return Refusal.TOO_LONG
        return None
