"""A small Transformer encoder without a longest text: positions are rotary, and a long text is read in windows.

Axes: b batch, m text with its two ends, d width, h heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.data.contract import OpenContract
from trainer.models.editor.reading.pieces import WordPieces

HEAD = 32  # width of one head
WINDOW, MARGIN = 512, 64  # tokens read together, and those at each side that only give context
AT_ONCE = 32  # windows
SHORT = 128  # tokens of a text whose attention fits into a cache


class Layer(nn.Module):
    """Attention and a feed-forward network, each behind a norm and beside a shortcut."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.heads = max(width // HEAD, 1)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, seen: Tensor, turn: Callable[[Tensor], Tensor]) -> Tensor:
        b, m, d = x.shape
        parts = self.query_key_value(self.first(x)).view(b, m, 3, self.heads, d // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # (b, h, m, d / h)
        found = attended(turn(query), turn(key), value, seen[:, None, None])
        x = x + self.dropout(self.merge(found.transpose(1, 2).reshape(b, m, d)))
        after: Tensor = x + self.dropout(self.contract(functional.gelu(self.expand(self.second(x)))))
        return after


def attended(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """Attention (b, h, m, d) to what is seen (b, 1, 1, m).

    PyTorch's own goes through memory in blocks, which pays for long texts: the gradient of short ones takes it three
    times as long on a CPU.
    """
    if key.shape[2] > SHORT:
        return functional.scaled_dot_product_attention(query, key, value, seen)
    scores = (query * query.shape[-1] ** -0.5) @ key.mT
    weights: Tensor = scores.masked_fill(~seen, -torch.inf).float().softmax(-1)
    return weights.to(value.dtype) @ value


def rotation(length: int, width: int, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Turns pairs of features by an angle that grows with the place: products then depend on distances alone."""
    half = width // 2
    angle = torch.arange(length, device=device)[:, None] * 10_000 ** (-torch.arange(half, device=device) / half)
    cos, sin = angle.cos(), angle.sin()

    def turn(x: Tensor) -> Tensor:
        one, two, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        turned = (one * cos - two * sin, one * sin + two * cos, rest)
        return torch.cat(turned, -1).to(x.dtype)

    return turn


class SmallEncoder(nn.Module):
    """Trained from scratch: embedded pieces of words, then layers."""

    depth = 4

    def __init__(self, contract: OpenContract, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.embed = WordPieces(contract, width)
        self.ends = nn.Parameter(torch.randn(2, width))
        self.normed = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, dropout) for _ in range(layers or self.depth))
        self.last = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Hidden states (b, m + 2, d): the beginning, the tokens of states (b, m), and the end."""
        embedded = functional.pad(self.embed(states), (0, 0, 1, 1))
        place = torch.arange(embedded.shape[1], device=states.device)
        begin, end = place == 0, place == lengths[:, None] + 1  # (m + 2), (b, m + 2)
        x = torch.where(begin[:, None], self.ends[0], torch.where(end[..., None], self.ends[1], embedded))
        x = self.dropout(self.normed(x))
        return windowed(self.read, x, place <= lengths[:, None] + 1)

    def read(self, x: Tensor, seen: Tensor) -> Tensor:
        """The layers, on texts that are short enough."""
        turn = rotation(x.shape[1], x.shape[2] // max(x.shape[2] // HEAD, 1), x.device)
        for layer in self.layers:
            x = layer(x, seen, turn)
        found: Tensor = self.last(x)
        return found


def windowed(
    read: Callable[[Tensor, Tensor], Tensor], x: Tensor, seen: Tensor, window: int = WINDOW, margin: int = MARGIN
) -> Tensor:
    """What ``read`` says of every place (b, m, d), where long texts are read in windows that overlap by their margins.

    Windows behind the end of a text are not read.
    """
    b, m, _ = x.shape
    if m <= window:
        return read(x, seen)
    stride = window - 2 * margin
    count = -(-m // stride)
    behind = count * stride - m + margin
    parts = functional.pad(x, (0, 0, margin, behind)).unfold(1, window, stride).transpose(2, 3)  # (b, w, window, d)
    masks = functional.pad(seen, (margin, behind)).unfold(1, window, stride)  # (b, w, window)
    parts, masks = parts.flatten(0, 1), masks.flatten(0, 1)
    used = masks[:, margin : margin + stride].any(1).nonzero()[:, 0]
    found = [read(parts[rows], masks[rows])[:, margin : margin + stride] for rows in torch.split(used, AT_ONCE)]
    result = found[0].new_zeros(b * count, stride, found[0].shape[2]).index_copy(0, used, torch.cat(found))
    return result.view(b, count * stride, -1)[:, :m]
