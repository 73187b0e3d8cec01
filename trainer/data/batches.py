"""Which steps make which update: a pure function of (seed, epoch, position), so a run can resume at any position.

An epoch is a sequence of windows, a window a sequence of batches. Data in memory is one window; a stream
reads windows of shuffled row groups, the next one while the current one is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.seeding import generator
from trainer.data.encode import Steps


class InvalidPosition(ValueError):
    """A position that an epoch does not have."""

    def __init__(self, epoch: int, window: int, index: int) -> None:
        super().__init__(f"epoch {epoch} has no update {index} in window {window}")


class TrainingBatch(Protocol):
    """What a model is called with, and the labels (b, targets) of its scores."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...

    @property
    def actions(self) -> Tensor: ...

    @property
    def smoothing(self) -> float:
        """Share of the labels that is spread over all classes."""

    def to(self, device: torch.device) -> TrainingBatch: ...


@dataclass(frozen=True)
class Update:
    """One update: its batch, its place in the epoch, and this rank's share of the common mean.

    With it the mean over the ranks of share * (mean over the rank's rows) is the mean over all rows.
    """

    batch: TrainingBatch
    window: int
    index: int
    progress: float
    share: float = 1.0
    rate: float | None = None  # a learning rate that replaces the config's schedule


class Sampler(Protocol):
    """Yields the updates of an epoch."""

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on; :class:`InvalidPosition` if the epoch has no such position."""

    def ready(self, updates: int) -> bool:
        """Whether all parts of the model have been trained after so many updates, so that playing makes sense."""

    @property
    def about(self) -> str:
        """A few words for the log."""


@runtime_checkable
class SeekableSampler(Sampler, Protocol):
    """Yields updates by their number too: rounds of practice count updates, not epochs."""

    def from_update(self, number: int) -> Iterator[Update]:
        """All updates from one on, whatever their epochs."""


class EpochOrder:
    """The batches of one window in random order."""

    def __init__(self, steps: Steps, config: Config, size: int, *purpose: object) -> None:
        self.steps, self.kind, self.size = steps, config.epoch, size
        self.seed, self.purpose = config.seed, purpose
        total = len(steps) if self.kind == "steps" else steps.trajectories
        self.order = self._shuffled(total, "order")
        count = math.ceil(total / size) if config.last_batch == "keep" else max(total // size, 1)
        self.batches = torch.arange(count)
        if config.lengths == "equal":
            self.order = by_length(self.order, steps.lengths[steps.state_of[self.order]], size)
            self.batches = self._shuffled(count, "batches")

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Tensor:
        """The steps of one batch.

        ``pairs`` is the released code's epoch: the steps of a batch of trajectories are pooled, made unique,
        shuffled, and cut to the size of a batch.
        """
        first = int(self.batches[index]) * self.size
        chosen = self.order[first : first + self.size]
        if self.kind == "steps":
            return chosen
        pool = self.steps.pooled(chosen)
        return pool[self._shuffled(len(pool), "cut", index)[: self.size]]

    def _shuffled(self, count: int, name: str, *index: int) -> Tensor:
        return torch.randperm(count, generator=generator(self.seed, name, *self.purpose, *index))


def by_length(order: Tensor, lengths: Tensor, size: int) -> Tensor:
    """Shuffled steps, regrouped so that as many slices of ``size`` as possible hold steps of one length each.

    What is left of every length, less than a slice, comes last, the short ones first.

    >>> by_length(torch.tensor([3, 0, 2, 1, 4]), torch.tensor([9, 7, 9, 7, 7]), 2).tolist()
    [0, 1, 3, 2, 4]
    """
    lengths, ascending = lengths.sort(stable=True)
    counts = lengths.bincount()  # of length 0, 1, …
    place = torch.arange(len(order)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    full = place < torch.repeat_interleave(counts // size * size, counts)
    return torch.cat((order[ascending[full]], order[ascending[~full]]))


class MemorySampler:
    """All steps in memory; every rank draws the same batches and takes its rows of each."""

    def __init__(self, steps: Steps, config: Config, runtime: Runtime) -> None:
        self.steps, self.config, self.runtime = steps, config, runtime

    @property
    def about(self) -> str:
        return f"{len(self.steps):,} unique steps of {self.steps.trajectories:,} trajectories"

    def ready(self, updates: int) -> bool:
        return True

    def from_update(self, number: int) -> Iterator[Update]:
        """All updates from one on; all epochs have equally many."""
        epoch, index = divmod(number, len(EpochOrder(self.steps, self.config, self.config.batch, 0)))
        while True:
            yield from self.updates(epoch, 0, index)
            epoch, index = epoch + 1, 0

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on."""
        order = EpochOrder(self.steps, self.config, self.config.batch, epoch)
        if window or index > len(order):
            raise InvalidPosition(epoch, window, index)
        rank, world = self.runtime.rank, self.runtime.world
        for at in range(index, len(order)):
            rows = order[at]
            mine = rows[rank::world]
            share = len(mine) * world / len(rows)
            # A rank without a row of a small last batch still takes part, with no weight.
            batch = self.steps.batch(mine if len(mine) else rows[:1])
            yield Update(batch, 0, at, at / len(order), share)
