"""Phrases: pairs and triples of neighbouring words, hashed. A word behind its left neighbour decides many corrections.

Axes: b batch, m state, e width of a phrase, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.data.contract import OpenContract
from trainer.models.editor.reading.pieces import WordTable

BUCKETS = 1 << 17
WIDTH = 48  # of a phrase
BEGIN, END = 1, 2  # what stands before the first word and behind the last
FACTORS = (0x9E3779B97F4A7C15 - (1 << 64), 0xC2B2AE3D27D4EB4F - (1 << 64), 0x165667B19E3779F9)  # odd, of 64 bits


class Phrases(WordTable):
    """What is known of a gap from the phrases across it, and of a token from those around it.

    In training whole phrases are dropped, so that the encoder learns the rare ones' places too.
    """

    def __init__(self, contract: OpenContract, width: int, dropout: float) -> None:
        super().__init__(contract, torch.tensor(0))
        self.dropout = min(dropout, 0.9)
        self.weight = nn.Parameter(torch.zeros(BUCKETS, WIDTH))  # what training never showed says nothing
        self.gap, self.token = nn.Linear(3 * WIDTH, width, bias=False), nn.Linear(3 * WIDTH, width, bias=False)

    def rows(self, words: Sequence[str]) -> Tensor:
        return torch.tensor([crc32(word.encode()) + END + 1 for word in words])

    def forward(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What is added to the gaps (b, m + 1, d) and to the tokens (b, m, d) of states (b, m)."""
        self.meet()
        words = functional.pad(self.table[states], (2, 2), value=BEGIN)  # (b, m + 4)
        place = torch.arange(words.shape[1], device=states.device)
        words = torch.where(place >= lengths[:, None] + 2, END, words)
        one, two, three = (words * factor for factor in FACTORS)
        # (b, m + 1, e): words j - 1 and j; (b, m + 2, e): words j - 2 … j. Looked up at once: one gradient, not two.
        phrases = torch.cat((one[:, 1:-2] + two[:, 2:-1], one[:, :-2] + two[:, 1:-1] + three[:, 2:]), 1)
        found, seams = self.embed(phrases), states.shape[1] + 1
        pairs, triples = found[:, :seams], found[:, seams:]
        gaps: Tensor = self.gap(torch.cat((pairs, triples[:, :-1], triples[:, 1:]), -1))
        tokens: Tensor = self.token(torch.cat((pairs[:, :-1], pairs[:, 1:], triples[:, 1:-1]), -1))
        return gaps, tokens

    def embed(self, phrases: Tensor) -> Tensor:
        """The vectors (b, p, e) of hashed phrases (b, p)."""
        found = functional.embedding((phrases >> 20) % BUCKETS, self.weight)
        if not self.training or not self.dropout:
            return found
        kept = torch.rand(phrases.shape, device=phrases.device) >= self.dropout
        return found * kept[..., None] / (1 - self.dropout)
