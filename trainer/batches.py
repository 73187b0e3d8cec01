"""Which steps make which update: a pure function of (seed, epoch, position), so any position can be resumed.

An epoch is a sequence of windows, a window a sequence of batches. Data in memory is one window; a stream
reads windows of shuffled row groups, the next one while the present one is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import torch
from torch import Tensor

from trainer.config import Config
from trainer.contract import Contract
from trainer.data import MAX_TABLE, Dataset, Footer
from trainer.device import Runtime
from trainer.errors import BadData, InvalidConfig
from trainer.seeding import generator
from trainer.steps import Steps, encode_steps

LOOK = 0.1  # seconds: an interrupt that comes to another thread does not wake the one that waits


class Misplaced(ValueError):
    """A position that an epoch does not have."""

    def __init__(self, epoch: int, window: int, index: int) -> None:
        super().__init__(f"epoch {epoch} has no update {index} in window {window}")


@dataclass(frozen=True)
class Turn:
    """One update: its batch, its place in the epoch, and this rank's share of the common mean.

    With it the mean over the ranks of share * (mean over the rank's rows) is the mean over all rows.
    """

    batch: Learnable
    window: int
    index: int
    progress: float
    share: float = 1.0
    rate: float | None = None  # a learning rate of its own


class Learnable(Protocol):
    """What a model is called with, and what it should say (b, answers)."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...

    @property
    def actions(self) -> Tensor: ...

    @property
    def smoothing(self) -> float: ...

    def to(self, device: torch.device) -> Learnable: ...


class Source(Protocol):
    """Where the updates of an epoch come from."""

    def turns(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Turn]:
        """The updates of an epoch from a position on; :class:`Misplaced` where it has no such position."""

    def playable(self, updates: int) -> bool:
        """Whether games mean something after so many updates."""

    @property
    def about(self) -> str:
        """In a few words."""


class Plan:
    """The batches of one window in their random order."""

    def __init__(self, steps: Steps, config: Config, size: int, *purpose: object) -> None:
        self.steps, self.kind, self.size = steps, config.epoch, size
        self.seed, self.purpose = config.seed, purpose
        total = len(steps) if self.kind == "steps" else steps.trajectories
        self.order = torch.randperm(total, generator=generator(self.seed, "order", *purpose))

    def __len__(self) -> int:
        return math.ceil(len(self.order) / self.size)

    def __getitem__(self, index: int) -> Tensor:
        """The steps of one batch.

        ``pairs`` is the released code's epoch: the steps of a batch of trajectories are pooled, made unique,
        shuffled, and cut to the size of a batch.
        """
        chosen = self.order[index * self.size : (index + 1) * self.size]
        if self.kind == "steps":
            return chosen
        pool = self.steps.pooled(chosen)
        shuffled = torch.randperm(len(pool), generator=generator(self.seed, "cut", *self.purpose, index))
        return pool[shuffled[: self.size]]


class Memory:
    """All steps in memory; every rank draws the same batches and takes its rows of each."""

    def __init__(self, steps: Steps, config: Config, runtime: Runtime) -> None:
        self.steps, self.config, self.runtime = steps, config, runtime

    @property
    def about(self) -> str:
        """In a few words."""
        return f"{len(self.steps):,} unique steps of {self.steps.trajectories:,} trajectories"

    def playable(self, updates: int) -> bool:
        """Always: every update trains all parts of the agent."""
        return True

    def turns(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Turn]:
        """The updates of an epoch from a position on."""
        plan = Plan(self.steps, self.config, self.config.batch, epoch)
        if window or index > len(plan):
            raise Misplaced(epoch, window, index)
        rank, world = self.runtime.rank, self.runtime.world
        for at in range(index, len(plan)):
            rows = plan[at]
            mine = rows[rank::world]
            share = len(mine) * world / len(rows)
            # A rank without a row of a small last batch still takes part, with no weight.
            batch = self.steps.batch(mine if len(mine) else rows[:1])
            yield Turn(batch, 0, at, at / len(plan), share)


class Stream:
    """Row groups in a seeded order, some at a time; every rank reads its own."""

    def __init__(
        self, dataset: Dataset, footers: list[Footer], contract: Contract, config: Config, runtime: Runtime
    ) -> None:
        self.dataset, self.contract = dataset, contract
        self.config, self.runtime = config, runtime
        self.shards = [(footer.shard, footer.groups) for footer in footers]
        self.where = f"{dataset.where}/{footers[0].shard.name.partition('/')[0]}"
        self.checked: set[int] = set()
        self.groups = [
            (file, group) for file, (_, sizes) in enumerate(self.shards) for group, rows in enumerate(sizes) if rows
        ]
        if len(self.groups) < runtime.world:
            found = f"{dataset.where} has {len(self.groups)}"
            raise InvalidConfig(f"streaming to {runtime.world} ranks needs as many row groups, {found}")
        if config.batch < runtime.world:
            raise InvalidConfig(f"a batch of {config.batch} cannot be cut into {runtime.world} ranks")

    @property
    def about(self) -> str:
        """In a few words."""
        return f"{len(self.groups):,} row groups, streamed"

    def playable(self, updates: int) -> bool:
        """Always: every update trains all parts of the agent."""
        return True

    def windows(self, epoch: int) -> list[list[tuple[int, int]]]:
        """The row groups of an epoch, in windows of about ``stream_rows`` for each rank."""
        order = torch.randperm(len(self.groups), generator=generator(self.config.seed, "groups", epoch)).tolist()
        windows: list[list[tuple[int, int]]] = [[]]
        rows, limit = 0, self.config.stream_rows * self.runtime.world
        for number in order:
            file, group = self.groups[number]
            if rows >= limit and len(windows[-1]) >= self.runtime.world:
                windows.append([])
                rows = 0
            windows[-1].append((file, group))
            rows += self.shards[file][1][group]
        if len(windows) > 1 and len(windows[-1]) < self.runtime.world:
            windows[-2] += windows.pop()
        return windows

    def _load(self, window: list[tuple[int, int]]) -> Steps:
        """This rank's row groups of a window as id tensors."""
        tables: list[pa.Table] = []
        mine = sorted(window[self.runtime.rank :: self.runtime.world])
        for file in sorted({file for file, _ in mine}):
            groups = [group for other, group in mine if other == file]
            if file not in self.checked:  # once a run: hashing is quicker than decoding, but not free
                self.dataset.check(self.shards[file][0])
                self.checked.add(file)
            most = MAX_TABLE - sum(table.nbytes for table in tables)
            tables.append(self.dataset.read_groups(self.shards[file][0], groups, most))
        table = pa.concat_tables(tables)
        if not len(table):
            raise BadData(f"{self.where}: a row group without the rows that its footer counts")
        return encode_steps(table, self.contract, self.where)

    def turns(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Turn]:
        """The updates of an epoch from a position on."""
        windows = self.windows(epoch)
        if window >= len(windows):
            raise Misplaced(epoch, window, index)
        size = self.config.batch // self.runtime.world
        reader = ThreadPoolExecutor(max_workers=1)
        try:
            ahead = reader.submit(self._load, windows[window])
            for number in range(window, len(windows)):
                while not wait([ahead], LOOK).done:
                    pass
                steps = ahead.result()
                if number + 1 < len(windows):
                    ahead = reader.submit(self._load, windows[number + 1])
                plan = Plan(steps, self.config, size, epoch, number, self.runtime.rank)
                count = self.runtime.largest(len(plan))
                if number == window and index > count:
                    raise Misplaced(epoch, window, index)
                for at in range(index if number == window else 0, count):
                    batch = steps.batch(plan[at % len(plan)])  # a rank with fewer batches begins again
                    yield Turn(batch, number, at, (number + at / count) / len(windows))
        finally:
            reader.shutdown(wait=False, cancel_futures=True)  # a read under way would hold up whoever interrupts
