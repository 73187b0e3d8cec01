"""Which edits are made: the most certain ones that do not touch each other, and how certain they must be.

Axes: b batch, p places (gap 0, token 0, gap 1 …), e edits.
"""

from __future__ import annotations

import torch
from torch import Tensor


def pick(
    sure: Tensor, kinds: Tensor, first: Tensor, others: Tensor, edits: int, spans: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows, places, classes and certainties of the most certain edits of each row, none of which touch each other.

    Certainties and classes are (b, p). The first edit of a row must be more certain than ``first`` (b), the others
    than ``others`` (b).
    """
    place = torch.arange(sure.shape[1], device=sure.device)
    start = (place // 2).expand_as(kinds)
    stop = start + place % 2 * (kinds if spans else 1)
    row = torch.arange(len(sure), device=sure.device)
    left, found = sure, []
    for turn in range(edits):
        best, at = left.max(1)
        chosen = best > (others if turn else first)
        if not chosen.any():
            break
        found.append(torch.stack((row[chosen], at[chosen], kinds[row, at][chosen]), 1))
        begin, end = start[row, at][:, None], stop[row, at][:, None]
        touching = (start <= end) & (begin <= stop)
        left = left.masked_fill(touching | ~chosen[:, None], 0.0)
    table = torch.cat(found) if found else torch.zeros(0, 3, dtype=torch.long, device=sure.device)
    rows, places, classes = table.unbind(1)
    return rows, places, classes, sure[rows, places]


def best_bar(sure: Tensor, right: Tensor, gold: int) -> float:
    """The certainty that edits must exceed for the highest F0.5, of edits (e) that are right or not.

    >>> best_bar(torch.tensor([0.9, 0.2, 0.8, 0.1]), torch.tensor([True, False, True, False]), 4)
    0.5
    """
    if not len(sure):
        return 0.5
    order = sure.argsort(descending=True, stable=True)
    ranked = torch.cat((sure[order], sure.new_zeros(1)))
    correct = right[order].double().cumsum(0)
    f = 5 * correct / (gold + 4 * torch.arange(1, len(order) + 1))
    at = int(torch.where(ranked[:-1] > ranked[1:], f, -1.0).argmax())  # equals are made together
    return round(float(ranked[at] + ranked[at + 1]) / 2, 6)
