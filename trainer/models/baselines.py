"""The paper's non-agent baselines (whole texts, tags), and the earlier work's agent."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainer.core.config import Config
from trainer.core.format import DONE, KEEP
from trainer.data.contract import Contract
from trainer.data.demonstrations import Shards
from trainer.models.layers import Combine, Decoder, certain
from trainer.models.paper import Ar, Autoregressive

# The baselines were trained without the adaptive loss, which the paper's own framework adds.
PLAIN_LOSS: dict[str, Any] = {"adaptive": "off"}


class End2end(Ar):
    """Source to target directly: AR's decoder writes the text, token by token, until it says DONE."""

    about = "source to target, autoregressive decoder, 1 encoder layer"
    game = "text"
    learns_from = "pairs"
    augmentable = False
    streamable = False
    settings = PLAIN_LOSS

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.done = contract.action_ids[DONE]

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        scores = super().forward(states, lengths, actions)  # (b, n, v)
        # What comes after the end: of the gold text where it is known, else of the model's own.
        told = scores.argmax(-1) if actions is None else actions
        ended = (told == self.done).cumsum(1) - (told == self.done).long() > 0  # (b, n)
        return certain(scores, ended, self.done)


class Tagging(Autoregressive):
    """Rounds of tags: one for the beginning of the text, then one for each token, which the decoder looks at.

    The tags are decided one after the other, as in the earlier work: where a source has several right targets, tags
    decided independently may belong to different ones.
    """

    about = "token-level tags in rounds, autoregressive decoder, 1 encoder layer"
    depth = 1
    game = "tags"
    learns_from = "tags"
    augmentable = False
    settings = PLAIN_LOSS

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.keep = contract.action_ids[KEEP]
        self.embed = self.embedding()
        self.combine = Combine(self.width)
        self.decoder = Decoder(self.width, self.vocabulary, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        places = torch.cat((hidden[0][:, None], memory), dim=1)  # (b, m + 1, d)
        scores = self.say(lambda slot, _: places[:, slot : slot + 1], hidden, states, actions, places.shape[1])
        scores = nn.functional.pad(scores, (0, 0, 0, self.slots - places.shape[1]))  # (b, n, v)
        behind = torch.arange(self.slots, device=states.device) > lengths.to(states.device)[:, None]
        return certain(scores, behind, self.keep)


class RecurrenceStar(Ar):
    """The earlier work's agent on the fixed training set: AR, trained as that work trained it.

    The paper re-ran that work's code and does not say what else differs from AR. Here the training does (``settings``),
    as in that code: a constant learning rate (but in preset core-hours), and no adaptive loss. The network is AR's.
    Unlike that code, which draws one step of each trajectory at random, it learns from all steps.
    """

    about = "AR as the earlier work trained it, on the expert's trajectories"
    learns_from: ClassVar[Shards | None] = "expert"
    augmentable = False
    settings = PLAIN_LOSS | {"schedule": "constant"}


class Recurrence(RecurrenceStar):
    """The same with domain knowledge: also from variants, more sources of the training targets (none in AOR)."""

    about = "the same, on variants too (domain knowledge)"
    learns_from = "variants"
