"""Beside the agents: token-level tags in rounds, and what all models share whose answers are padded.

Axes: b batch, m state, n action, d width, v action vocabulary. Actions are padded to one length: behind the end of a
text, and behind the last token of a state, a model says the one thing that is right there with certainty, so that
padding neither costs nor teaches anything.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.config import Config
from trainer.contract import Contract
from trainer.layers import Combine
from trainer.policy import Encoded
from trainer.text import KEEP

IMPOSSIBLE = -20.0  # as a log-probability: finite, so that a mean over wrong answers stays a number


def certain(scores: Tensor, where: Tensor, token: int) -> Tensor:
    """Scores (b, n, v) that are certain of one token where it is asked (b, n)."""
    sure = torch.full_like(scores[0, 0], IMPOSSIBLE)
    sure[token] = 0.0
    return torch.where(where[..., None], sure, scores)


class Tagging(Encoded):
    """One tag for the beginning of the text and one for each token, all at once."""

    about = "token-level tags in rounds, 1 encoder layer"
    depth = 1
    has_input = False
    game = "tags"
    learns_from = "tags"

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.keep = contract.action_ids[KEEP]
        self.beginning = Combine(self.width)
        self.output = nn.Linear(self.width, self.vocabulary)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        places = torch.cat((self.beginning(*hidden)[:, None], memory), dim=1)  # (b, m + 1, d)
        scores = self.output(places).float().log_softmax(-1)
        scores = nn.functional.pad(scores, (0, 0, 0, self.slots - scores.shape[1]))  # (b, n, v)
        behind = torch.arange(self.slots, device=states.device) > lengths.to(states.device)[:, None]
        return certain(scores, behind, self.keep)
