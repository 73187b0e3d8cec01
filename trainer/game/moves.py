"""The steps of a game in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainer.data.contract import Contract
from trainer.game.environment import Verdict
from trainer.game.play import GameStep
from trainer.game.rules import without_padding


@dataclass(frozen=True)
class Move:
    """One step of a game: what the agent saw, what it did, how sure it was, and the environment's verdict."""

    state: tuple[str, ...]
    action: tuple[str, ...]
    probabilities: tuple[float, ...]
    verdict: str


def read_moves(step: GameStep, contract: Contract, most: int | None = None) -> Iterator[tuple[int, Move]]:
    """The number of each game and its move; with ``most`` only of the first games."""
    words, names = ("", *contract.state_tokens), (*contract.actions, "BOS")
    for row, game in enumerate(step.games.tolist()):
        if most is not None and game >= most:
            continue
        length = int(step.lengths[row])
        state = tuple(words[token] for token in step.states[row, :length].tolist())
        action = without_padding(contract, [names[token] for token in step.actions[row].tolist()], length)
        chances = tuple(step.probabilities[row].tolist())[: len(action)]
        yield game, Move(state, action, chances, Verdict(int(step.verdicts[row])).reason)
