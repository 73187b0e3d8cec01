"""The rules of all games: which a contract asks for, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from trainer.core.format import DONE
from trainer.data.contract import Contract
from trainer.game.environment import Environment, OpenEnvironment
from trainer.game.texts_and_tags import TagRules, TextRules


class Rules(Protocol):
    """What a game needs: where it is played, and the result of an action."""

    @property
    def device(self) -> torch.device: ...

    def step(self, states: Tensor, lengths: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """New states, new lengths, verdicts."""
        ...


def rules_of(contract: Contract, device: torch.device | str = "cpu") -> Rules:
    """The rules that a contract asks for."""
    kinds: dict[str, type[TextRules] | type[TagRules]] = {"text": TextRules, "tags": TagRules}
    if contract.game in kinds:
        return kinds[contract.game](contract, device)
    return OpenEnvironment(contract, device) if contract.open else Environment(contract, device)


def without_padding(contract: Contract, action: Sequence[str], length: int) -> tuple[str, ...]:
    """An action without its padding, for a state of some length."""
    if contract.game == "tags":
        return tuple(action[: length + 1])
    if contract.game == "text" and DONE in action:
        return tuple(action[: action.index(DONE) + 1])
    return tuple(action)
