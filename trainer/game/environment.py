"""The game's rules on batches of id tensors: decode, verify, splice, or refuse and keep the state.

Axes: b batch, m state, n action. Every action is one splice, ``state[start:stop] = new``; what the slots of
an action mean comes from the contract alone. All rows are judged at once, on their own device.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from trainer.core.format import DELETE, DONE, INSERT, POSITION, REPLACE, Refusal
from trainer.data.contract import POSITIONS, SPECIAL, Contract

REASONS = ("applied", "done", *Refusal)  # as the data side and people write them


class Verdict(IntEnum):
    """The result of an action as a number; of several refusals the first in the format's order is given."""

    APPLIED = REASONS.index("applied")
    DONE = REASONS.index("done")
    PARTLY_DONE = REASONS.index(Refusal.PARTLY_DONE)
    WRONG_KIND = REASONS.index(Refusal.WRONG_KIND)
    DELETE_TWO_POSITIONS = REASONS.index(Refusal.DELETE_TWO_POSITIONS)
    OUT_OF_RANGE = REASONS.index(Refusal.OUT_OF_RANGE)
    NOT_WRITABLE = REASONS.index(Refusal.NOT_WRITABLE)
    TOO_LONG = REASONS.index(Refusal.TOO_LONG)

    @property
    def reason(self) -> str:
        """In words.

        >>> Verdict.PARTLY_DONE.reason
        'partly-done'
        """
        return str(REASONS[self])


class Kind(IntEnum):
    """What an action token can be."""

    DONE = 0
    POSITION = 1
    INSERT = 2
    DELETE = 3
    REPLACE = 4
    TOKEN = 5
    NOTHING = 6


WORDS = {DONE: Kind.DONE, INSERT: Kind.INSERT, DELETE: Kind.DELETE, REPLACE: Kind.REPLACE}


@dataclass(frozen=True)
class Splices:
    """One edit per row: ``state[start:stop] = new``, where a row without ``writes`` only removes."""

    start: Tensor
    stop: Tensor
    new: Tensor
    writes: Tensor


class Environment:
    """The rules for one contract, as look-up tables by action id.

    The id after the vocabulary (a model's BOS) is of no kind, so that playing it is refused.
    """

    def __init__(self, contract: Contract, device: torch.device | str = "cpu") -> None:
        self.slots, self.max_state = contract.slots, contract.max_state
        kinds, values, writable = [], [], []
        allowed = set(contract.writable)
        for token in contract.actions:
            position = POSITION.fullmatch(token)
            kinds.append(Kind.POSITION if position else WORDS.get(token, Kind.TOKEN))
            values.append(int(position[1]) if position else contract.state_ids.get(token, 0))
            writable.append(token in allowed and token in contract.state_ids)
        self.kinds = torch.tensor([*kinds, Kind.NOTHING], device=device)
        self.values = torch.tensor([*values, 0], device=device)
        self.writable = torch.tensor([*writable, False], device=device)

    @property
    def device(self) -> torch.device:
        """Where the games are played."""
        return self.kinds.device

    def slot(self, name: str) -> int:
        """Where in an action a slot is."""
        return self.slots.index(name)

    def read(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What action tokens are, their positions or state tokens, and whether these may be written."""
        return self.kinds[actions], self.values[actions], self.writable[actions]

    def step(self, states: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Play one action per row: new states (b, up to m + 1), new lengths (b), verdicts (b).

        The padding of ``states`` is 0, and stays so.
        """
        kinds, values, writable = self.read(actions)  # (b, n)
        done = kinds == Kind.DONE
        edits, wrong_kind, two_positions, out_of_range = self.decode(kinds, values, lengths)
        removed = edits.stop - edits.start
        result = lengths - removed + edits.writes
        checks = (
            (Verdict.DONE, done.all(1)),
            (Verdict.PARTLY_DONE, done.any(1)),
            (Verdict.WRONG_KIND, wrong_kind),
            (Verdict.DELETE_TWO_POSITIONS, two_positions),
            (Verdict.OUT_OF_RANGE, out_of_range),
            (Verdict.NOT_WRITABLE, edits.writes & ~writable[:, self.slot("token")]),
            (Verdict.TOO_LONG, result > self.max_state),
        )
        verdicts = torch.full_like(lengths, int(Verdict.APPLIED))
        for verdict, applies in reversed(checks):
            verdicts = torch.where(applies, int(verdict), verdicts)
        applied = verdicts == int(Verdict.APPLIED)
        edits = Splices(
            torch.where(applied, edits.start, lengths),
            torch.where(applied, edits.stop, lengths),
            edits.new,
            edits.writes & applied,
        )
        return *splice(states, lengths, edits, self.max_state), verdicts

    def decode(self, kinds: Tensor, values: Tensor, lengths: Tensor) -> tuple[Splices, Tensor, Tensor, Tensor]:
        """The splices that actions mean; which are of a wrong kind, delete two positions, or lie outside."""
        at = self.slot("token")
        is_token, new = kinds[:, at] == Kind.TOKEN, values[:, at]
        never = torch.zeros_like(is_token)
        if "left" in self.slots:
            left, right = self.slot("left"), self.slot("right")
            start, last = values[:, left], values[:, right]
            wrong = (kinds[:, left] != Kind.POSITION) | (kinds[:, right] != Kind.POSITION) | ~is_token
            return Splices(start, last + 1, new, ~never), wrong, never, (start > last) | (last >= lengths)
        position = self.slot("position")
        start, wrong = values[:, position], kinds[:, position] != Kind.POSITION
        if "operation" not in self.slots:
            return Splices(start, start, new, ~never), wrong | ~is_token, never, start > lengths
        operation = kinds[:, self.slot("operation")]
        inserts, deletes = operation == Kind.INSERT, operation == Kind.DELETE
        replaces = operation == Kind.REPLACE
        repeats = kinds[:, at] == Kind.POSITION
        wrong = wrong | ~(inserts | deletes | replaces) | torch.where(deletes, ~repeats, ~is_token)
        outside = torch.where(inserts, start > lengths, start >= lengths)
        return Splices(start, start + ~inserts, new, ~deletes), wrong, deletes & (new != start), outside


class OpenEnvironment(Environment):
    """The same rules for states of any words and any length: every word may be written, and no state is too long."""

    def __init__(self, contract: Contract, device: torch.device | str = "cpu") -> None:
        self.slots, self.max_state = contract.slots, contract.longest
        self.kinds = torch.tensor([WORDS[token] for token in SPECIAL], device=device)

    def read(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        position, special = actions >= POSITIONS, actions < len(SPECIAL)
        word = torch.where(position, int(Kind.POSITION), int(Kind.TOKEN))
        kinds = torch.where(special, self.kinds[actions.clamp(max=len(SPECIAL) - 1)], word)
        values = torch.where(position, actions - POSITIONS, (actions - len(SPECIAL) + 1).clamp(min=0))
        return kinds, values, kinds == int(Kind.TOKEN)


def splice(states: Tensor, lengths: Tensor, edits: Splices, max_state: int) -> tuple[Tensor, Tensor]:
    """Every row with its own edit: each output position looks up where its token comes from."""
    width = min(states.shape[1] + 1, max_state)
    place = torch.arange(width, device=states.device)  # (m)
    start, writes = edits.start[:, None], edits.writes[:, None]
    shift = (edits.stop - edits.start)[:, None] - writes.long()
    source = torch.where(place < start, place, place + shift).clamp(0, states.shape[1] - 1)
    result = torch.where((place == start) & writes, edits.new[:, None], states.gather(1, source))
    after = lengths - (edits.stop - edits.start) + edits.writes
    return torch.where(place < after[:, None], result, 0), after
