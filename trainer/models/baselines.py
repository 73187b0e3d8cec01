"""The paper's baselines that are not agents of its game: whole texts, tags, and the earlier work."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.core.config import Config
from trainer.core.format import DONE, KEEP
from trainer.data.contract import Contract
from trainer.models.layers import (
    Cell,
    Combine,
    certain,
)
from trainer.models.paper import Ar, Autoregressive


class End2end(Ar):
    """Source to target directly: AR's decoder writes the text, token by token, until it says DONE."""

    about = "source to target, autoregressive decoder, 1 encoder layer"
    game = "text"
    learns_from = "pairs"
    augmentable = False

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.done = contract.action_ids[DONE]

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        scores = super().forward(states, lengths, actions)  # (b, n, v)
        # What lies behind the end: of the gold text where it is known, else of its own.
        told = scores.argmax(-1) if actions is None else actions
        ended = (told == self.done).cumsum(1) - (told == self.done).long() > 0  # (b, n)
        return certain(scores, ended, self.done)


class Tagging(Autoregressive):
    """Rounds of tags: one for the beginning of the text, then one for each token, which the decoder looks at.

    One after the other, as in the earlier work: where a source has several right targets, tags that do not know of
    each other may be of different ones.
    """

    about = "token-level tags in rounds, autoregressive decoder, 1 encoder layer"
    depth = 1
    game = "tags"
    learns_from = "tags"
    augmentable = False

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.keep = contract.action_ids[KEEP]
        self.embed = self.embedding()
        self.combine = Combine(self.width)
        self.decoder = Cell(self.width, self.vocabulary, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        places = torch.cat((hidden[0][:, None], memory), dim=1).unbind(1)  # m + 1 of (b, d)
        scores = self.say(lambda slot, _: places[slot], hidden, states, actions, len(places))
        scores = nn.functional.pad(scores, (0, 0, 0, self.slots - len(places)))  # (b, n, v)
        behind = torch.arange(self.slots, device=states.device) > lengths.to(states.device)[:, None]
        return certain(scores, behind, self.keep)


class RecurrenceStar(Ar):
    """The earlier work's agent on the fixed training set: AR, trained as that work trained it.

    The paper re-ran that work's code and does not say what else differs from AR. Here the training does (``METHODS`` of
    the config), as in that code: a constant learning rate, and no adaptive loss. The network is AR's, and not the
    step that it draws at random from each trajectory, but all steps are learned from.
    """

    about = "AR as the earlier work trained it, on the expert's trajectories"
    learns_from = "expert"
    augmentable = False


class Recurrence(RecurrenceStar):
    """The same with domain knowledge: also from variants, more sources of the training targets (none in AOR)."""

    about = "the same, on variants too (domain knowledge)"
    learns_from = "variants"
