"""A finished dataset as an object: what programs read it through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aegen.core.errors import InvalidSpec
from aegen.core.format import SplitName, split_state
from aegen.core.types import Tokens
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches
from aegen.dataset.show import trajectories
from aegen.dataset.stats import stats
from aegen.dataset.verify import verify
from aegen.engines.start import local


@dataclass(frozen=True)
class Step:
    """What the expert saw, and what it did."""

    state: Tokens
    action: Tokens


@dataclass(frozen=True)
class Trajectory:
    """The steps from one start state to the goal of its pair; the last action is DONE."""

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

    def rows(self, config: str, split: SplitName | None = None) -> int:
        """How many rows a config has."""
        return self.manifest.rows(config, split)

    def pairs(self, split: SplitName) -> Iterator[tuple[Tokens, Tokens]]:
        """Source and target of each pair, as tokens."""
        for name in self.manifest.shards("pairs", split):
            for batch in read_batches(self.folder / name, "pairs", ["source", "target"]):
                for source, target in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield split_state(source), split_state(target)

    def trajectories(self, split: SplitName, config: str = "expert") -> Iterator[Trajectory]:
        """The demonstrations of a split: ``expert``, or ``augmented`` with those from shifted states."""
        if config not in self.configs:
            raise InvalidSpec(f"{self.path}: no config {config}; existing: {', '.join(self.configs)}")
        for pair, steps in trajectories(self.folder, config, split, self.manifest):
            made = tuple(Step(split_state(state), tuple(action)) for _, state, action in steps)
            yield Trajectory(pair, steps[0][0], made)

    def stats(self) -> dict[str, Any]:
        """Counts: sizes, overlap between the splits, the paper's data table."""
        return stats(self.folder)

    def verify(self) -> dict[str, int]:
        """Check hashes, schemas and the meaning of every row; an error names the first fault."""
        return verify(self.folder, local(None, self.manifest.total_rows))
