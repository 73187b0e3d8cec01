"""Tokens read and written through their characters: a number's digits, a word's letters.

A token is the sum of its parts: its characters at their places, counted from its right end, and for tokens that were
seen often one more part, the token itself. So ``205`` says something of ``215`` before that was ever seen. The same sum
scores a token that is to be written: a softmax over the vocabulary, and decoding, stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

PLACES = 16  # all characters further to the left share the last place
SHARED = 2  # tokens for each distinct part, at least: else characters have little to tell of each other
# Times that half of the tokens stand in the distinct goals, at least, to be learned whole. AES with N = 100 has 346:
# 99.87 in validation when whole, 99.53 spelled. With N = 200 it has 175: 23.33 when whole, 98.27 spelled.
KNOWN = 250
# Times that a token stands in the distinct training states to be a part of its own: letters say little of what a word
# means. 4,110 sentences of learners' English, log-loss of the words to fill in, validation, after 120 of 600 updates:
# 5.61 with such parts, 6.29 without, 5.65 with whole words.
FREQUENT = 100

Part = tuple[int, str]  # place and character; a token itself has the place -1


def parts_of(token: str) -> list[Part]:
    """The characters of a token with their places, from its right end.

    >>> parts_of("205")
    [(0, '5'), (1, '0'), (2, '2')]
    """
    return [(min(place, PLACES - 1), character) for place, character in enumerate(reversed(token))]


def share_characters(tokens: Collection[str]) -> bool:
    """Whether there are at least two tokens for each of their distinct parts.

    >>> share_characters([str(number) for number in range(100)]), share_characters(["+", "=", "1", "2", "10"])
    (True, False)
    """
    return len(tokens) >= SHARED * len({part for token in tokens for part in parts_of(token)})


class Spelling:
    """The parts of every id of a state vocabulary: 0 (the padding), the tokens, MASK and QUERY."""

    def __init__(self, tokens: Sequence[str], own: Collection[int] = ()) -> None:
        special = {0, len(tokens) + 1, len(tokens) + 2}
        alone = special | set(own)
        numbers: dict[Part, int] = {}
        rows = []
        for identity, token in enumerate(("", *tokens, "", "")):
            parts = parts_of(token) + ([(-1, str(identity))] if identity in alone else [])
            rows.append([numbers.setdefault(part, len(numbers)) for part in parts])
        longest = max(map(len, rows))
        self.parts = len(numbers)
        self.mean = sum(map(len, rows)) / len(rows)  # parts of a token
        self.table = torch.tensor([row + [self.parts] * (longest - len(row)) for row in rows])


class Spelled(nn.Module):
    """An embedding whose rows are sums over the parts of the tokens."""

    table: Tensor  # (tokens, parts of one), filled up with the number of all parts

    def __init__(self, spelling: Spelling, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = len(spelling.table), width
        self.parts = nn.Parameter(torch.randn(spelling.parts, width) * scale / math.sqrt(spelling.mean))
        self.register_buffer("table", spelling.table, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The rows of all tokens (tokens, width)."""
        nothing = functional.pad(self.parts, (0, 0, 0, 1))  # one row more, of zeros
        return functional.embedding_bag(self.table, nothing, mode="sum")

    def forward(self, tokens: Tensor) -> Tensor:
        return functional.embedding(tokens, self.weight)


class SpelledScores(nn.Module):
    """A last layer (b, width) → (b, tokens): the score of a token is the sum of its parts' scores, and a bias."""

    def __init__(self, width: int, spelling: Spelling) -> None:
        super().__init__()
        self.rows = Spelled(spelling, width, 1 / math.sqrt(3 * width))  # as large as a linear layer's at first
        self.bias = nn.Parameter(torch.zeros(len(spelling.table)))

    def forward(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.rows.weight, self.bias)
