"""The planner's two kinds of network. Axes: b batch, r reach, p places (m + 1), d width.

Both read a state from its two ends: once aligned left and once aligned right, each cut or padded to the reach,
embedded and flattened. A small multilayer perceptron over such a view learns arithmetic from thousands of
pairs within minutes, where attention over the same tokens is still learning positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.planner.spelling import Spelled, SpelledScores, Spelling

Vocabulary = int | Spelling  # tokens as wholes, or through their characters

PAD = 0
GAP_FEATURES, TOKEN_FEATURES = 2, 3  # what the token network tells of a gap, and of a token


@dataclass(frozen=True)
class Shape:
    """The form of a reading network."""

    kind: Literal["plain", "residual", "normed"]
    layers: int
    hidden: int = 512
    embedding: int = 32
    width: int = 128  # of the residual stream, where it is normed
    dropout: float = 0.0


def both_ends(states: Tensor, lengths: Tensor, reach: int) -> Tensor:
    """The first and the last tokens of each state (b, 2 r).

    >>> both_ends(torch.tensor([[5, 6, 7, 0]]), torch.tensor([3]), 2).tolist()
    [[5, 6, 6, 7]]
    """
    left = functional.pad(states[:, :reach], (0, max(reach - states.shape[1], 0)))
    place = torch.arange(reach, device=states.device) + (lengths[:, None] - reach)  # (b, r)
    right = states.gather(1, place.clamp(0, states.shape[1] - 1)).masked_fill(place < 0, PAD)
    return torch.cat((left, right), 1)


def around(states: Tensor, token: int, window: int) -> Tensor:
    """The tokens beside the first occurrence of one, left and right of it (b, 2 w).

    >>> around(torch.tensor([[5, 9, 7, 8]]), 9, 2).tolist()
    [[0, 5, 7, 8]]
    """
    centre = (states == token).long().argmax(1, keepdim=True)
    beside = [offset for offset in range(-window, window + 1) if offset]
    place = centre + torch.tensor(beside, device=states.device, dtype=torch.long)
    inside = (place >= 0) & (place < states.shape[1])
    return states.gather(1, place.clamp(0, states.shape[1] - 1)).masked_fill(~inside, PAD)


def embedding(tokens: Vocabulary, width: int) -> nn.Embedding | Spelled:
    """What a network reads tokens by: a row each, or a sum over their parts."""
    return nn.Embedding(tokens, width) if isinstance(tokens, int) else Spelled(tokens, width)


def scores(width: int, outputs: Vocabulary) -> nn.Module:
    """The last layer of a network: a score for each class, or for tokens through their parts."""
    return nn.Linear(width, outputs) if isinstance(outputs, int) else SpelledScores(width, outputs)


class Reader(nn.Module):
    """A view of a state (b, places) → scores (b, outputs)."""

    def __init__(self, tokens: Vocabulary, places: int, outputs: Vocabulary, shape: Shape, features: int = 0) -> None:
        super().__init__()
        self.kind = shape.kind
        self.embed = embedding(tokens, shape.embedding)
        stream = shape.width if shape.kind == "normed" else shape.hidden
        self.first = nn.Linear(places * shape.embedding, stream)
        self.features = nn.Linear(features, stream) if features else None
        self.dropout = nn.Dropout(shape.dropout)
        if shape.kind == "normed":
            self.blocks = nn.ModuleList(
                nn.Sequential(
                    nn.LayerNorm(stream), nn.Linear(stream, shape.hidden), nn.GELU(), nn.Linear(shape.hidden, stream)
                )
                for _ in range(shape.layers)
            )
            self.last: nn.Module = nn.Sequential(nn.LayerNorm(stream), scores(stream, outputs))
        else:
            self.blocks = nn.ModuleList(nn.Linear(stream, stream) for _ in range(shape.layers - 1))
            self.last = scores(stream, outputs)

    def forward(self, view: Tensor, features: Tensor | None = None) -> Tensor:
        hidden = self.read(view)
        if self.features is not None and features is not None:
            hidden = hidden + self.features(features)
        if self.kind != "normed":
            hidden = self.dropout(functional.gelu(hidden))
        for block in self.blocks:
            if self.kind == "normed":
                hidden = hidden + block(hidden)
            else:
                new = self.dropout(functional.gelu(block(hidden)))
                hidden = hidden + new if self.kind == "residual" else new
        result: Tensor = self.last(hidden)
        return result

    def read(self, view: Tensor) -> Tensor:
        """The first layer of the flattened embeddings (b, stream)."""
        tokens = self.embed.num_embeddings
        if len(view) <= tokens:
            plain: Tensor = self.first(self.embed(view).flatten(1))
            return plain
        return summed_table(self.embed, self.first.weight, view) + self.first.bias


def summed_table(embed: nn.Embedding | Spelled, weight: Tensor, tokens: Tensor) -> Tensor:
    """A linear layer over the flattened embeddings of tokens (b, k), without its bias.

    It is linear in one-hot tokens, so it is a sum of rows of a table of (place, token): where there are more
    rows than tokens in the vocabulary, that is several times cheaper than the product.
    """
    places = tokens.shape[1]
    table = torch.einsum("td,lpd->ptl", embed.weight, weight.view(len(weight), places, embed.embedding_dim))
    index = tokens + torch.arange(places, device=tokens.device) * embed.num_embeddings
    return functional.embedding_bag(index, table.flatten(0, 1), mode="sum")


class Places(nn.Module):
    """Where to edit: scores of END and of every place, (b, 1 + p k) for k kinds of edit at a place.

    A reader sums the state up; one scorer, shared by all places, then sees the tokens around a place, what the
    token network says there, and the sum. So a place is judged by what is there and not by its number alone.
    """

    window = 3  # tokens to the left of a gap and, with the one after it, to the right
    local = 128
    summary = 64

    def __init__(self, tokens: Vocabulary, reach: int, kinds: int, shape: Shape, features: int = 0) -> None:
        super().__init__()
        self.reach, self.features = reach, features
        self.reader = Reader(tokens, 2 * reach, 1 + self.summary, shape, 2 * (reach + 1) * features)
        self.around = nn.Linear((2 * self.window + 1) * shape.embedding, self.local)
        self.summed = nn.Linear(self.summary, self.local, bias=False)
        self.told = nn.Linear(features, self.local, bias=False) if features else None
        self.second = nn.Linear(self.local, self.local)
        self.last = nn.Linear(self.local, kinds)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, states: Tensor, lengths: Tensor, features: Tensor | None = None) -> Tensor:
        view = both_ends(states, lengths, self.reach)
        ends = None if features is None else self.feature_ends(features, lengths)
        whole = self.reader(view, ends)  # (b, 1 + summary)
        hidden = self.neighbourhood(states) + self.around.bias
        hidden = hidden + self.summed(functional.gelu(whole[:, 1:]))[:, None]
        if self.told is not None and features is not None:
            hidden = hidden + self.told(features)
        # One dropout mask for all places of a state: the places are compared with each other.
        mask = torch.ones(2, len(states), 1, self.local, device=states.device)
        first, second = self.dropout(mask)
        hidden = functional.gelu(hidden) * first
        hidden = hidden + functional.gelu(self.second(hidden)) * second
        return torch.cat((whole[:, :1], self.last(hidden).flatten(1)), 1)

    def neighbourhood(self, states: Tensor) -> Tensor:
        """The tokens around each place through one linear layer (b, p, local)."""
        padded = functional.pad(states, (self.window, self.window + 1))
        tokens = padded.unfold(1, 2 * self.window + 1, 1)  # (b, p, offset)
        summed = summed_table(self.reader.embed, self.around.weight, tokens.flatten(0, 1))
        return summed.view(len(states), -1, self.local)

    def feature_ends(self, features: Tensor, lengths: Tensor) -> Tensor:
        """The features (b, p, f) of the first and of the last places, flattened (b, 2 (r + 1) f)."""
        reach = self.reach + 1
        left = functional.pad(features[:, :reach], (0, 0, 0, max(reach - features.shape[1], 0)))
        place = torch.arange(reach, device=features.device) + (lengths[:, None] + 1 - reach)  # (b, r + 1)
        index = place.clamp(0, features.shape[1] - 1)[..., None].expand(-1, -1, features.shape[2])
        right = features.gather(1, index).masked_fill((place < 0)[..., None], 0)
        return torch.cat((left, right), 1).flatten(1)
