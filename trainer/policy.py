"""What the loop and the game ask of an agent, whatever it is made of.

Axes: b batch, m state, n action, d width, v action vocabulary.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainer.config import Config
from trainer.contract import Contract
from trainer.layers import Encoder
from trainer.steps import Steps


class Policy(nn.Module):
    """A module that learns from batches and decides in games."""

    about: ClassVar[str]
    game: ClassVar[str] = "edits"  # what an action is: one edit, a round of tags, or the whole text
    group: ClassVar[int] = 256  # games of similar length that are asked about at once
    learns_from: ClassVar[str] = ""  # the config of a dataset; empty: what the settings say
    # Whether its updates are batches of steps. If not, :mod:`trainer.training` makes its lessons.
    learns_from_steps: ClassVar[bool] = True

    def decide(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Scores (b, n, v) of the action tokens for states (b, m): the choice is the best of each slot."""
        scores: Tensor = self(states, lengths)
        return scores

    @property
    def targets(self) -> int:
        """Answers for each row of a batch."""
        raise NotImplementedError

    @property
    def has_unused(self) -> bool:
        """Whether an update may leave some parameters out."""
        return False

    def groups(self, config: Config) -> list[dict[str, Any]]:
        """The optimizer's groups of parameters."""
        return [{"params": [*self.parameters()], "weight_decay": config.weight_decay}]

    @classmethod
    def survey(cls, steps: Steps, contract: Contract, config: Config) -> Any:
        """What it must know of the data besides the contract, to be built; None for nothing."""
        return None

    @classmethod
    def parse_knowledge(cls, values: object, contract: Contract, where: str) -> Any:
        """The knowledge that was kept with the weights."""
        return None

    @classmethod
    def complete(cls, config: Config, knowledge: Any) -> dict[str, Any]:
        """Settings that follow from the data where the config leaves them open."""
        return {}


class Encoded(Policy):
    """What the paper's agents share: the encoder, and how gold tokens are mixed into what a decoder sees."""

    depth: ClassVar[int] = 4  # encoder layers in the paper
    has_input: ClassVar[bool] = True  # whether a decoder reads action tokens, and so needs BOS
    uses_final_state: ClassVar[bool] = True  # whether the encoder's final state has a reader

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__()
        self.width, self.slots = config.width, contract.action_length
        self.bos = len(contract.actions)
        self.vocabulary = len(contract.actions) + self.has_input
        self.places = contract.max_state
        self.forcing, self.draw = config.teacher_forcing, config.teacher_draw
        self.encoder = Encoder(
            len(contract.state_tokens) + 1, config.width, config.layers or self.depth, config.dropout
        )

    @property
    def targets(self) -> int:
        return self.slots

    @property
    def has_unused(self) -> bool:
        return not self.uses_final_state

    def embedding(self) -> nn.Embedding:
        """Action tokens for a decoder's input."""
        return nn.Embedding(self.vocabulary, self.width)

    def first(self, states: Tensor) -> Tensor:
        """BOS for every row (b)."""
        return torch.full((len(states),), self.bos, device=states.device)

    def teach(self, said: Tensor, gold: Tensor | None, whole_batch: bool = False) -> Tensor:
        """What a decoder reads: its own choice, or in training sometimes the gold token."""
        if gold is None or not self.training:
            return said
        shape = (1,) if whole_batch else gold.shape
        return torch.where(torch.rand(shape, device=gold.device) < self.forcing, gold, said)
