"""Steps read from shards while they are used, in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pyarrow as pa
import torch

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.seeding import generator
from trainer.data.batches import EpochOrder, InvalidPosition, Update
from trainer.data.contract import Contract
from trainer.data.dataset import MAX_TABLE, Dataset, Footer
from trainer.data.encode import Steps, encode_steps

POLL = 0.1  # seconds: a signal handled by another thread does not wake a waiting one


class StreamSampler:
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
            raise InvalidConfig(f"streaming to {runtime.world} ranks requires at least as many row groups; {found}")
        if config.batch < runtime.world:
            raise InvalidConfig(f"field batch: {config.batch} rows cannot be divided among {runtime.world} ranks")

    @property
    def about(self) -> str:
        return f"{len(self.groups):,} row groups, streamed"

    def ready(self, updates: int) -> bool:
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
            if file not in self.checked:  # once per run: hashing is faster than decoding, but not free
                self.dataset.check(self.shards[file][0])
                self.checked.add(file)
            most = MAX_TABLE - sum(table.nbytes for table in tables)
            tables.append(self.dataset.read_groups(self.shards[file][0], groups, most))
        table = pa.concat_tables(tables)
        if not len(table):
            raise BadData(f"{self.where}: a row group has fewer rows than its footer says")
        return encode_steps(table, self.contract, self.where)

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on."""
        windows = self.windows(epoch)
        if window >= len(windows):
            raise InvalidPosition(epoch, window, index)
        size = self.config.batch // self.runtime.world
        reader = ThreadPoolExecutor(max_workers=1)
        try:
            ahead = reader.submit(self._load, windows[window])
            for number in range(window, len(windows)):
                while not wait([ahead], POLL).done:
                    pass
                steps = ahead.result()
                if number + 1 < len(windows):
                    ahead = reader.submit(self._load, windows[number + 1])
                order = EpochOrder(steps, self.config, size, epoch, number, self.runtime.rank)
                batches = self.runtime.largest(len(order))
                if number == window and index > batches:
                    raise InvalidPosition(epoch, window, index)
                for at in range(index if number == window else 0, batches):
                    batch = steps.batch(order[at % len(order)])  # a rank with fewer batches starts over
                    yield Update(batch, number, at, (number + at / batches) / len(windows))
        finally:
            reader.shutdown(wait=False, cancel_futures=True)  # do not wait for a running read on interrupt
