"""The kit that all agents of the paper are built from.

Axes: b batch, m state, n action, d width, v action vocabulary. A hidden state is the pair (h, c) of an LSTM,
each (b, d). States may be padded to any length up to the longest of the contract: nothing depends on it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from trainer.core.device import recurrent_precision

Hidden = tuple[Tensor, Tensor]
IMPOSSIBLE = -20.0  # as a log-probability: finite, so that a mean over wrong answers stays a number


def padding_mask(lengths: Tensor, memory: Tensor) -> Tensor:
    """Which places of the memory hold a token (b, m)."""
    place = torch.arange(memory.shape[1], device=memory.device)
    return place < lengths.clamp(min=1).to(memory.device)[:, None]


class Encoder(nn.Module):
    """A bidirectional LSTM; its final states, of all layers and directions, become a decoder's first one."""

    def __init__(self, vocabulary: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width // 2, layers, batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(layers * width, width)
        self.cell = nn.Linear(layers * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        embedded = self.dropout(self.embed(states))  # (b, m, d)
        with recurrent_precision(states.device):
            # An empty state is read as one padding token.
            memory, (h, c) = self._run(embedded, lengths.clamp(min=1))
        rows = states.shape[0]
        h, c = (part.transpose(0, 1).reshape(rows, -1) for part in (h, c))  # (b, layers * d)
        return self.dropout(memory), (self.hidden(h), self.cell(c))

    def _run(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Hidden]:
        if int(lengths.min()) == embedded.shape[1]:  # nothing is padded: no need to pack
            memory, hidden = self.lstm(embedded)
            return memory, hidden
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.lstm(packed)
        return pad_packed_sequence(output, batch_first=True, total_length=embedded.shape[1])[0], hidden


class AdditiveAttention(nn.Module):
    """score_i = v . tanh(W [h; c; memory_i]), softmax over the tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(3 * width, width)
        self.v = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))

    def keys(self, memory: Tensor) -> Tensor:
        """The part of W that sees the memory, computed once for all steps of a decoder."""
        return linear(memory, self.project.weight[:, 2 * memory.shape[-1] :])  # (b, m, d)

    def forward(self, hidden: Hidden, keys: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        query = torch.cat(hidden, dim=-1)  # (b, 2d)
        query = linear(query, self.project.weight[:, : query.shape[-1]], self.project.bias)
        scores = torch.tanh(query[:, None] + keys) @ self.v  # (b, m)
        return attend(scores[:, None], memory, mask[:, None])  # (b, 1, d)


class PlaceAttention(nn.Module):
    """scores = W [x; h; c] for every slot, one score for each place of the longest state, softmax over the tokens.

    The (h, c) is the one that a decoder begins with, so no slot waits for another.
    """

    def __init__(self, width: int, places: int) -> None:
        super().__init__()
        self.project = nn.Linear(3 * width, places)

    def forward(self, inputs: Tensor, hidden: Hidden, memory: Tensor, mask: Tensor) -> Tensor:
        places, width = memory.shape[1:]
        weight, bias = self.project.weight[:places], self.project.bias[:places]
        common = linear(torch.cat(hidden, dim=-1), weight[:, width:], bias)  # (b, m)
        scores = linear(inputs, weight[:, :width]) + common[:, None]  # (b, n, m)
        return attend(scores, memory, mask[:, None])


def attend(scores: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """The means of the memory (b, n, d) under the softmax of the scores (b, n, m)."""
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return weights.to(memory.dtype) @ memory


class Align(nn.Module):
    """The paper's FFN over the length dimension, m -> n; shorter states use the first columns of W."""

    def __init__(self, places: int, slots: int) -> None:
        super().__init__()
        self.project = nn.Linear(places, slots)

    def forward(self, memory: Tensor) -> Tensor:
        weight = self.project.weight[:, : memory.shape[1]]
        return linear(memory.transpose(1, 2), weight, self.project.bias).transpose(1, 2)  # (b, n, d)


class Flatten(nn.Module):
    """The whole memory, flattened, to n * v scores; shorter states use the first columns of W."""

    def __init__(self, places: int, width: int, slots: int, vocabulary: int) -> None:
        super().__init__()
        self.slots = slots
        self.project = nn.Linear(places * width, slots * vocabulary)

    def forward(self, memory: Tensor) -> Tensor:
        flat = memory.flatten(1)  # (b, m * d)
        scores = linear(flat, self.project.weight[:, : flat.shape[1]], self.project.bias)
        return scores.view(len(memory), self.slots, -1)  # (b, n, v)


class Decoder(nn.Module):
    """An LSTM over some slots of the action, and its output layer."""

    def __init__(self, width: int, vocabulary: int, dropout: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """Log-probabilities (b, n, v) for inputs (b, n, d), and the hidden state behind the last."""
        with recurrent_precision(inputs.device):
            inputs, h, c = (part.float() for part in (inputs, *hidden))
            said, (h, c) = self.lstm(inputs, (h[None], c[None]))
        return self.output(self.dropout(said)).float().log_softmax(-1), (h[0], c[0])


class Combine(nn.Module):
    """A decoder's input and its context become the input of its LSTM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(2 * width, width)

    def forward(self, inputs: Tensor, context: Tensor) -> Tensor:
        combined: Tensor = self.project(torch.cat((inputs, context), dim=-1))
        return combined.relu()  # (b, n, d)


def certain(scores: Tensor, where: Tensor, token: int) -> Tensor:
    """Scores (b, n, v) that are certain of one token wherever the mask (b, n) says so.

    For labels that are padded to one length: after their end a model says the one thing that is right, so that padding
    has no loss and no gradient.
    """
    sure = torch.full_like(scores[0, 0], IMPOSSIBLE)
    sure[token] = 0.0
    return torch.where(where[..., None], sure, scores)
