"""The steps of a game in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainer.data.contract import Contract
from trainer.game.environment import Verdict
from trainer.game.marks import Marks, marks
from trainer.game.play import GameStep
from trainer.game.rules import without_padding


@dataclass(frozen=True)
class Move:
    """One step of a game: what the agent saw, what it did, how sure it was, and the environment's verdict.

    ``removed`` are places in this state, ``written`` places in the next one.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    probabilities: tuple[float, ...]
    verdict: str
    removed: tuple[int, ...] = ()
    written: tuple[int, ...] = ()


def read_moves(step: GameStep, contract: Contract, most: int | None = None) -> Iterator[tuple[int, Move]]:
    """The number of each game and its move; with ``most`` only of the first games."""
    words = contract.names
    for row, game in enumerate(step.games.tolist()):
        if most is not None and game >= most:
            continue
        length = int(step.lengths[row])
        state = tuple(words[token] for token in step.states[row, :length].tolist())
        action = without_padding(contract, contract.action_names(step.actions[row].tolist()), length)
        chances = tuple(step.probabilities[row].tolist())[: len(action)]
        verdict = Verdict(int(step.verdicts[row]))
        changes = verdict == Verdict.APPLIED or (verdict == Verdict.DONE and contract.game == "text")
        changed = marks(contract, state, action) if changes else Marks()
        yield game, Move(state, action, chances, verdict.reason, changed.removed, changed.written)
