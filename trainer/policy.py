"""What all models share. Axes: b batch, m state, n action, d width, v action vocabulary."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from trainer.config import Config
from trainer.contract import Contract
from trainer.layers import Encoder


class Policy(nn.Module):
    """What all agents share: the encoder, and how gold tokens are mixed into what a decoder sees."""

    about: ClassVar[str]
    depth: ClassVar[int] = 4  # encoder layers in the paper
    has_input: ClassVar[bool] = True  # whether a decoder reads action tokens, and so needs BOS
    uses_final_state: ClassVar[bool] = True  # whether the encoder's final state has a reader
    game: ClassVar[str] = "edits"  # what an action is: one edit, a round of tags, or the whole text
    learns_from: ClassVar[str] = ""  # the config of a dataset; empty: what the settings say

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
