"""Relatives: the words that may be written and look like the one that is replaced, as "because" looks like "becouse".

Misspelt words and other forms of a word are mostly corrected to one of them.

Axes: e edits, c classes of what may be written, k relatives, d width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from trainer.data.contract import OpenContract

MOST = 32  # relatives of one word
LEVELS = 8  # of likeness
LEAST = 0.35  # likeness of a relative
LONGEST = 64  # characters that are compared
PRIOR = 5.0  # what is added before training for the words that are most alike
REMEMBERED = 1 << 16  # words whose relatives are remembered
NONE = np.full(MOST, -1)


def parts(word: str) -> set[str]:
    """The pairs and triples of characters of a word and its two ends.

    >>> sorted(parts("The"))
    ['<t', '<th', 'e>', 'he', 'he>', 'th', 'the']
    """
    whole = f"<{word[:LONGEST].lower()}>"
    return {whole[at : at + size] for size in (2, 3) for at in range(len(whole) - size + 1)}


class Lookalikes:
    """Finds those of some words that look most like another one.

    >>> words = Lookalikes(["because", "house", "become"])
    >>> [(words.words[at], round(float(share), 2)) for at, share in zip(*words.nearest("becouse"), strict=True)]
    [('because', 0.67), ('become', 0.57), ('house', 0.54)]
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        having: dict[str, list[int]] = {}
        all_parts = [parts(word) for word in words]
        for at, some in enumerate(all_parts):
            for part in some:
                having.setdefault(part, []).append(at)
        self.having = {part: np.array(found) for part, found in having.items()}  # the words that have it
        self.sizes = np.array([len(some) for some in all_parts])

    def nearest(self, word: str) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the words most like it, itself left out, and the share of parts that both have (Dice)."""
        mine = parts(word)
        shared = [self.having[part] for part in mine if part in self.having]
        both = np.bincount(np.concatenate(shared or [np.zeros(0, dtype=int)]), minlength=len(self.words))
        alike = 2 * both / (len(mine) + self.sizes)
        near = np.flatnonzero(alike >= LEAST)
        near = near[np.argsort(-alike[near], kind="stable")]
        near = near[[self.words[at] != word for at in near.tolist()]][:MOST]
        return near, alike[near]


class Relatives(nn.Module):
    """What is added to the scores of the words that look like the replaced one, by how much they do."""

    def __init__(self, contract: OpenContract, words: Sequence[str], offset: int, width: int) -> None:
        """``offset`` is the class of the first of the ``words`` that may be written."""
        super().__init__()
        self.contract, self.lookalikes, self.offset = contract, Lookalikes(words), offset
        self.known: dict[str, np.ndarray] = {}
        self.level = nn.Linear(width, LEVELS)
        with torch.no_grad():
            self.level.weight.zero_()
            self.level.bias.copy_(torch.arange(1, LEVELS + 1) * (PRIOR / LEVELS))

    def of(self, word: str) -> np.ndarray:
        """Its relatives, each as a class times LEVELS and a level of likeness, then -1."""
        if (known := self.known.get(word)) is not None:
            return known
        if len(self.known) >= REMEMBERED:
            self.known.clear()
        near, alike = self.lookalikes.nearest(word)
        levels = np.minimum((alike - LEAST) / (1 - LEAST) * LEVELS, LEVELS - 1).astype(int)
        found = NONE.copy()
        found[: len(near)] = (near + self.offset) * LEVELS + levels
        self.known[word] = found
        return found

    def forward(self, scores: Tensor, asked: Tensor, replaced: Tensor) -> Tensor:
        """Scores (e, c), those of relatives changed; what is asked (e, d), and the words replaced (e), 0 for none."""
        words, inverse = torch.unique(replaced, return_inverse=True)
        rows = [self.of(self.contract.names[word]) if word else NONE for word in words.tolist()]
        table = torch.from_numpy(np.stack(rows or [NONE])).to(scores.device)
        packed = table[inverse]  # (e, k)
        there = packed >= 0
        packed = packed.clamp(min=0)
        added = self.level(asked).gather(1, packed % LEVELS).masked_fill(~there, 0.0)
        return scores.scatter_add(1, packed // LEVELS, added.to(scores.dtype))
