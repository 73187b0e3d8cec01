"""The reward on batches of id tensors: does DONE win in a state?

Axes: b batch, m state, k integers. What winning is comes from the shards (:class:`trainer.core.description.Goal`). All
states are judged at once, exactly: in integers with a common denominator, and with fractions where these would not fit
64 bits. Reward is looked at in training only; an agent that plays never sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.core.description import Goal
from trainer.core.format import MAX_DIGITS
from trainer.data.contract import Contract
from trainer.game.accuracy import Tokens, is_integer, value

SYMBOLS = ("+", "-", "*", "/", "=")
ADD, SUBTRACT, MULTIPLY, DIVIDE, EQUALS, INTEGER, OTHER = range(7)
EXACT = float(1 << 62)  # larger numbers are left to fractions
DIGITS = 18  # of an integer that fits 64 bits


def kept_integers(goal: Goal, source: Tokens) -> tuple[str, ...] | None:
    """The integers that a win has, as they follow from the source; None if nothing can win.

    >>> kept_integers(Goal("equation", "values"), "65 + ( 25 - 20 ) = ( 7 * 10 )".split())
    ('65', '5', '70')
    """
    if goal.keeps == "integers":
        return tuple(filter(is_integer, source))
    kept: list[str] = []
    inside: list[str] = []  # of the outermost parenthesis, with its beginning
    depth = 0
    for token in source:
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return None
        if depth or token == ")":
            inside.append(token)
            if not depth:
                found = value(inside)
                if found is None or found.denominator != 1 or not 0 <= found < 10**MAX_DIGITS:
                    return None
                kept.append(str(found))
                inside = []
        elif is_integer(token):
            kept.append(token)
    return tuple(kept) if not depth else None


@dataclass(frozen=True)
class Wanted:
    """What each of some games must keep, as ids."""

    texts: Tensor  # (b, m) the target; the source, where a win is within some edits of it
    lengths: Tensor  # (b)
    integers: Tensor  # (b, k) to keep in order, 0 behind the last
    counts: Tensor  # (b) of integers; -1: nothing can win
    edits: Tensor  # (b) whether a win is within some edits of the source instead

    def pick(self, games: Tensor) -> Wanted:
        """Those of some games."""
        return Wanted(*(tensor[games] for tensor in vars(self).values()))


class Reward:
    """The goal of one contract, as look-up tables by state id."""

    def __init__(self, goal: Goal, contract: Contract, device: torch.device | str = "cpu") -> None:
        self.goal, self.ids = goal, contract.state_ids
        self.names = ("", *contract.state_tokens)
        kinds = [
            INTEGER if is_integer(name) else SYMBOLS.index(name) if name in SYMBOLS else OTHER for name in self.names
        ]
        fits = [kind == INTEGER and len(name) <= DIGITS for kind, name in zip(kinds, self.names, strict=True)]
        values = [int(name) if fit else 0 for fit, name in zip(fits, self.names, strict=True)]
        self.kinds, self.values = torch.tensor(kinds, device=device), torch.tensor(values, device=device)
        self.large = torch.tensor(
            [kind == INTEGER and not fit for kind, fit in zip(kinds, fits, strict=True)], device=device
        )

    def encode(self, texts: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Texts of known tokens as ids (b, m) and lengths (b)."""
        ids = _padded([[self.ids[name] for name in text] for text in texts], self.kinds.device)
        return ids, torch.tensor([len(text) for text in texts], device=self.kinds.device)

    def wanted(self, sources: Sequence[Tokens], targets: Sequence[Tokens] | None = None) -> Wanted:
        """What wins from these sources; ``targets`` where they are known."""
        if targets is None and self.goal.wins == "target":
            raise ValueError("a target to reach, and none is known")
        texts = sources if targets is None else targets
        kept = []
        for source, text in zip(sources, texts, strict=True):
            by_target = targets is not None or self.goal.keeps == "edits"
            integers = tuple(filter(is_integer, text)) if by_target else kept_integers(self.goal, source)
            known = integers is not None and all(name in self.ids for name in integers)
            if self.goal.wins == "target":
                known = all(name in self.ids for name in text)
            kept.append([self.ids.get(name, 0) for name in integers or ()] if known else None)
        edits = targets is None and self.goal.keeps == "edits"
        ids = [[self.ids.get(name, 0) for name in text] for text in texts]
        device = self.kinds.device
        return Wanted(
            _padded(ids, device),
            torch.tensor([len(text) for text in ids], device=device),
            _padded([row or [] for row in kept], device),
            torch.tensor([-1 if row is None and not edits else len(row or ()) for row in kept], device=device),
            torch.full((len(ids),), edits, device=device),
        )

    def __call__(self, states: Tensor, lengths: Tensor, wanted: Wanted) -> Tensor:
        """Which states win (b)."""
        lengths = lengths.to(states.device)
        if self.goal.wins == "target":
            return (wanted.counts >= 0) & _same(states, lengths, wanted.texts, wanted.lengths)
        won = self.holds(states, lengths)
        if not won.any():
            return won
        rows = won.nonzero()[:, 0]
        states, lengths, wanted = states[rows], lengths[rows], wanted.pick(rows)
        integers = self.kinds[states] == INTEGER  # the padding is of another kind
        found, counts = _compacted(states, integers)
        keeps = (wanted.counts >= 0) & _same(found, counts, wanted.integers, wanted.counts.clamp(min=0))
        if wanted.edits.any():
            near = distances(states, lengths, wanted.texts, wanted.lengths) <= self.goal.edits
            near &= (counts == self.goal.integers) | (self.goal.integers == 0)
            keeps = torch.where(wanted.edits, near, keeps)
        return won.index_put((rows,), keeps)

    def share(self, states: Tensor, lengths: Tensor, wanted: Wanted) -> Tensor:
        """How much of its target each state has (b): 1 for the target itself, less by each edit between them."""
        lengths = lengths.to(states.device)
        longer = torch.maximum(lengths, wanted.lengths).clamp(min=1)
        return 1 - distances(states, lengths, wanted.texts, wanted.lengths).double() / longer

    def holds(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Which states are an expression without parentheses, ``=``, and the integer that it equals (b)."""
        if states.shape[1] < 3:
            return torch.zeros_like(lengths, dtype=torch.bool)
        kinds, values = self.kinds[states], self.values[states]  # (b, m)
        row, left = torch.arange(len(states), device=states.device), lengths - 2  # tokens before the =
        equals, last = left.clamp(min=0), (lengths - 1).clamp(min=0)
        good = (lengths >= 3) & (kinds[row, equals] == EQUALS) & (kinds[row, last] == INTEGER)
        right = values[row, last]
        # The value so far is (total + term) / bottom; beside it a bound of how large these numbers are.
        total, term, bottom = torch.zeros_like(right), torch.zeros_like(right), torch.ones_like(right)
        most, each, under = total.double(), term.double(), bottom.double()
        pending, operand_due = torch.full_like(right, ADD), torch.ones_like(good)
        large = good & self.large[states[row, last]]
        for place in range(int(left.clamp(min=0).max()) if len(states) else 0):
            inside = place < left
            kind, operand = kinds[:, place], values[:, place]
            size = operand.double()
            sign = inside & operand_due & (kind == SUBTRACT) & (place == 0)
            reads = inside & operand_due & (kind == INTEGER)
            operator = inside & ~operand_due & (kind <= DIVIDE)
            good &= ~inside | sign | reads | operator
            large |= reads & self.large[states[:, place]]
            begins = reads & (pending <= SUBTRACT)
            divides = reads & (pending == DIVIDE)
            good &= ~(divides & (operand == 0) & ~self.large[states[:, place]])
            divisor = torch.where(divides, operand, 1)
            signed = torch.where(pending == SUBTRACT, -operand, operand)
            total = (total + torch.where(begins, term, 0)) * divisor
            most = (most + torch.where(begins, each, 0)) * divisor
            term = torch.where(
                begins, signed * bottom, torch.where(reads & (pending == MULTIPLY), term * operand, term)
            )
            each = torch.where(begins, size * under, torch.where(reads & (pending == MULTIPLY), each * size, each))
            bottom, under = bottom * divisor, under * divisor
            large |= (most >= EXACT) | (each >= EXACT) | (under >= EXACT)
            pending = torch.where(sign | operator, kind, pending)
            operand_due = torch.where(reads, False, torch.where(operator, True, operand_due))
        good &= ~operand_due
        large |= most + each + under * right.double() >= EXACT
        result = good & (total + term == right * bottom)
        for one in (good & large).nonzero()[:, 0].tolist():
            names = [self.names[token] for token in states[one, : int(lengths[one])].tolist()]
            result[one] = value(names[:-2]) == int(names[-1])
        return result


def distances(left: Tensor, left_lengths: Tensor, right: Tensor, right_lengths: Tensor) -> Tensor:
    """The Levenshtein distance of each pair of rows (b).

    >>> distances(torch.tensor([[1, 2, 3]]), torch.tensor([3]), torch.tensor([[1, 3, 0]]), torch.tensor([2])).tolist()
    [1]
    """
    steps = torch.arange(right.shape[1] + 1, device=left.device)
    line = steps.expand(len(left), -1)  # from nothing to each beginning of the right
    result = line.gather(1, right_lengths[:, None])[:, 0]
    for place in range(left.shape[1]):
        kept = line[:, :-1] + (left[:, place : place + 1] != right).long()
        best = torch.cat((line[:, :1] + 1, torch.minimum(kept, line[:, 1:] + 1)), 1)
        line = (best - steps).cummin(1).values + steps  # and insertions behind each
        result = torch.where(left_lengths == place + 1, line.gather(1, right_lengths[:, None])[:, 0], result)
    return result


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    result = torch.zeros(len(rows), max(map(len, rows), default=0), dtype=torch.long)
    for number, row in enumerate(rows):
        result[number, : len(row)] = torch.tensor(row, dtype=torch.long)
    return result.to(device)


def _compacted(states: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """The kept tokens of each row, moved to the left, and how many they are."""
    order = (~kept).long().argsort(dim=1, stable=True)
    counts = kept.sum(1)
    place = torch.arange(states.shape[1], device=states.device)
    return states.gather(1, order).masked_fill(place >= counts[:, None], 0), counts


def _same(left: Tensor, left_lengths: Tensor, right: Tensor, right_lengths: Tensor) -> Tensor:
    """Which rows, padded with 0, are equal."""
    width = max(left.shape[1], right.shape[1])
    left, right = (torch.nn.functional.pad(rows, (0, width - rows.shape[1])) for rows in (left, right))
    return (left_lengths == right_lengths) & (left == right).all(1)
