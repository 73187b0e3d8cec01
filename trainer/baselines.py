"""The paper's baselines that are no agents: the whole text at once, and token-level tags in rounds.

Axes: b batch, m state, n action, d width, v action vocabulary. Actions are padded to one length: behind the end of a
text, and behind the last token of a state, a model says the one thing that is right there with certainty, so that
padding neither costs nor teaches anything.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.config import Config
from trainer.contract import Contract
from trainer.layers import AdditiveAttention, Cell, Combine, padding_mask
from trainer.policy import Encoded
from trainer.text import DONE, KEEP

IMPOSSIBLE = -20.0  # as a log-probability: finite, so that a mean over wrong answers stays a number


def certain(scores: Tensor, where: Tensor, token: int) -> Tensor:
    """Scores (b, n, v) that are certain of one token where it is asked (b, n)."""
    sure = torch.full_like(scores[0, 0], IMPOSSIBLE)
    sure[token] = 0.0
    return torch.where(where[..., None], sure, scores)


class End2end(Encoded):
    """Source to target directly: AR's decoder writes the text, token by token, until it says DONE."""

    about = "source to target, autoregressive decoder, 1 encoder layer"
    depth = 1
    game = "text"
    learns_from = "pairs"

    def __init__(self, config: Config, contract: Contract) -> None:
        super().__init__(config, contract)
        self.done = contract.action_ids[DONE]
        self.embed = self.embedding()
        self.attention = AdditiveAttention(self.width)
        self.combine = Combine(self.width)
        self.decoder = Cell(self.width, self.vocabulary, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, lengths: Tensor, actions: Tensor | None = None) -> Tensor:
        memory, hidden = self.encoder(states, lengths)  # (b, m, d)
        mask, keys = padding_mask(lengths, memory), self.attention.keys(memory)
        seen, scores = self.first(states), []
        said = torch.empty(len(states), 0, dtype=torch.long, device=states.device)
        for slot in range(self.slots):
            context = self.attention(hidden, keys, memory, mask)  # (b, d)
            x = self.combine(context, self.dropout(self.embed(seen)))
            score, hidden = self.decoder(x, hidden)  # (b, v)
            scores.append(score)
            chosen = score.argmax(-1)
            said = torch.cat((said, chosen[:, None]), dim=1)
            seen = self.teach(chosen, None if actions is None else actions[:, slot], self.draw == "batch")
        # What lies behind the end: of the gold text where it is known, else of its own.
        told = said if actions is None else actions
        ended = (told == self.done).cumsum(1) - (told == self.done).long() > 0  # (b, n)
        return certain(torch.stack(scores, dim=1), ended, self.done)  # (b, n, v)


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
