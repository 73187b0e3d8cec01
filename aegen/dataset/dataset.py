"""A finished dataset as an object: what programs read it through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aegen.core.errors import BadData, InvalidSpec
from aegen.core.format import DONE, KEEP, SPLITS, split_state
from aegen.core.types import Tokens
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches, read_pairs
from aegen.dataset.stats import stats
from aegen.dataset.verify import verify
from aegen.engines.start import start
from aegen.experts.tags import TAGS


@dataclass(frozen=True)
class Step:
    """What the expert saw, and what it did."""

    state: Tokens
    action: Tokens


@dataclass(frozen=True)
class Trajectory:
    """The steps from one start state to the goal of its pair; the last action is DONE, or a round of KEEP."""

    pair: int
    origin: int  # 0: the pair's own source; k: its k-th shifted state
    steps: tuple[Step, ...]

    @property
    def source(self) -> Tokens:
        """The state that it starts from."""
        return self.steps[0].state

    @property
    def goal(self) -> Tokens:
        """The state that it reaches."""
        return self.steps[-1].state


@dataclass(frozen=True)
class Dataset:
    """A finished dataset folder."""

    folder: Folder
    manifest: Manifest

    @classmethod
    def open(cls, folder: Folder) -> Dataset:
        """The dataset in a folder; an error if it is not finished."""
        return cls(folder, folder.manifest())

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.folder.path)

    @property
    def configs(self) -> list[str]:
        """Its configs, for example pairs, expert and augmented."""
        return self.manifest.configs

    def rows(self, config: str, split: str | None = None) -> int:
        """How many rows a config has."""
        return self.manifest.rows(config, split)

    def check_config(self, config: str) -> None:
        """Refuse a config that is not there; name those that are."""
        if config not in self.configs:
            raise InvalidSpec(f"{self.path}: no config {config}; existing: {', '.join(self.configs)}")

    def check_rows(self, config: str, split: str) -> None:
        """The same for a config without rows in this split."""
        self.check_config(config)
        if not self.rows(config, split):
            there = ", ".join(f"{config}/{name}" for name in SPLITS if self.rows(config, name))
            raise InvalidSpec(f"{self.path}: no rows of {config}/{split}; existing: {there}")

    def pair_rows(self, split: str) -> Iterator[tuple[int, str, str]]:
        """Id, source and target of each pair, as the shards hold them."""
        self.check_config("pairs")
        for name in self.manifest.shards("pairs", split):
            yield from read_pairs(self.folder / name)

    def pairs(self, split: str) -> Iterator[tuple[Tokens, Tokens]]:
        """Source and target of each pair, as tokens."""
        for _, source, target in self.pair_rows(split):
            yield split_state(source), split_state(target)

    def sources(self) -> Iterator[tuple[int, str]]:
        """Id and text of each source, in a dataset of sources without targets."""
        self.check_config("sources")
        for name in self.manifest.shards("sources"):
            for batch in read_batches(self.folder / name, "sources"):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def trajectories(self, split: str, config: str = "expert") -> Iterator[Trajectory]:
        """The demonstrations of a split: ``expert``, or ``augmented`` with those from shifted states."""
        self.check_config(config)
        steps: list[Step] = []
        for name in self.manifest.shards(config, split):
            for batch in read_batches(self.folder / name, config):
                for row in batch.to_pylist():
                    if not row["action"]:
                        raise BadData(f"{self.folder / name}: a step without an action")
                    steps.append(Step(split_state(row["state"]), tuple(row["action"])))
                    if row["action"][0] == DONE or (config == TAGS.name and set(row["action"]) == {KEEP}):
                        yield Trajectory(row["pair"], row["origin"], tuple(steps))
                        steps = []

    def stats(self) -> dict[str, Any]:
        """Counts: sizes, overlap between the splits, the paper's data table."""
        return stats(self.folder)

    def verify(self) -> dict[str, int]:
        """Check hashes, schemas and the meaning of every row; an error names the first fault."""
        with start(rows=self.manifest.total_rows) as engine:
            return verify(self.folder, engine)
