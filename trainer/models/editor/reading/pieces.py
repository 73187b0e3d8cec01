"""Words as pieces: hashed n-grams of characters, so that a word that training never saw can be read too.

Axes: w words, p pieces of a word, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.data.contract import OpenContract

BUCKETS = 1 << 15  # 0 is the padding
PIECES = 24  # of one word at most: the word, its case, its ends, then what is inside


def pieces(word: str) -> list[int]:
    """The buckets of a word: its own, and those of parts that it shares with other words.

    >>> shared = set(pieces("running")) & set(pieces("jumping"))
    >>> len(shared) > 2, pieces("running") == pieces("running"), len(pieces("x" * 1000)) == PIECES
    (True, True, True)
    """
    low = word.lower()
    shape = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word[:4])
    parts = [f"w{word}", f"l{low}", f"s{shape}"]
    parts += [f"<{low[:size]}" for size in (1, 2, 3, 4) if size < len(low)]
    parts += [f">{low[-size:]}" for size in (1, 2, 3, 4) if size < len(low)]
    inside = (f"t{low[at : at + 3]}" for at in range(len(low) - 2))
    parts += islice(inside, PIECES - len(parts))
    return [1 + crc32(part.encode()) % (BUCKETS - 1) for part in parts]


class WordTable(nn.Module):
    """A row for each word of a contract: it grows as words are met, and shrinks when they are forgotten."""

    table: Tensor  # (w, ...)

    def __init__(self, contract: OpenContract, padding: Tensor) -> None:
        super().__init__()
        self.contract, self.read_from = contract, contract.names
        self.register_buffer("table", padding[None], persistent=False)

    def rows(self, words: Sequence[str]) -> Tensor:
        """The rows of some words."""
        raise NotImplementedError

    def meet(self) -> None:
        """Look up the words that have been met since."""
        names = self.contract.names
        if self.read_from is not names:
            self.table, self.read_from = self.table[: self.contract.own], names
        if len(names) > len(self.table):
            new = self.rows(names[len(self.table) :])
            self.table = torch.cat((self.table, new.to(self.table.device)))


class WordPieces(WordTable):
    """The mean of a word's piece embeddings."""

    def __init__(self, contract: OpenContract, width: int) -> None:
        super().__init__(contract, torch.zeros(PIECES, dtype=torch.int32))
        self.weight = nn.Parameter(torch.empty(BUCKETS, width))
        nn.init.normal_(self.weight)

    def rows(self, words: Sequence[str]) -> Tensor:
        table = np.zeros((len(words), PIECES), dtype=np.int32)
        for row, word in zip(table, words, strict=True):
            found = pieces(word)
            row[: len(found)] = found
        return torch.from_numpy(table)

    def forward(self, states: Tensor) -> Tensor:
        """Embeddings (b, m, d) of states (b, m); words that occur several times are looked up once."""
        self.meet()
        words, inverse = torch.unique(states, return_inverse=True)
        embedded = functional.embedding_bag(self.table[words], self.weight, mode="mean", padding_idx=0)
        return embedded[inverse]
