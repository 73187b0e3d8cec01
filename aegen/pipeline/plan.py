"""What a dataset will cost, before any of it is made: a small piece is built here and the rest is arithmetic."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from aegen.columns.schemas import SCHEMAS
from aegen.core.description import FileInfo
from aegen.core.errors import InvalidSpec
from aegen.core.format import SPLITS, ConfigName
from aegen.dataset.folder import Folder
from aegen.dataset.footers import shard_counts
from aegen.dataset.names import shard_of
from aegen.dataset.recipe import ExpertUsed, Recipe
from aegen.engines.engine import BUNDLE
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.expert import Expert
from aegen.pairs.generate import LONGEST_RUN, count, order_of, part_of, plan, scan, stripes
from aegen.pairs.spec import Spec
from aegen.pipeline.demonstrations import write_expert_shard
from aegen.pipeline.generated import shard_names, write_stripe

SAMPLE = 10_000  # pairs that are built to measure
BLOCKS = 4  # blocks that are counted to measure
# Seconds that one call costs scheduler and client, however many workers there are: the best of 3,000 calls that did
# nothing, with scheduler, client and two workers on two busy cores.
CALL = 7e-3
FILE = 700  # bytes that the client keeps of each file, about


@dataclass(frozen=True)
class Stage:
    """One pass over the dataset: ``calls`` pieces that can run anywhere, at any time within the stage."""

    name: str
    calls: int
    core_seconds: float

    def wall(self, cores: int) -> float:
        """Seconds on some cores: whole pieces only, and all of them through one scheduler.

        >>> Stage("pairs", 10, 100.0).wall(4)  # three rounds of pieces that take ten seconds
        30.0
        """
        rounds = -(-self.calls // cores) * self.core_seconds / max(self.calls, 1)
        return max(rounds, self.calls * CALL)


@dataclass(frozen=True)
class Config:
    """What there will be of one config."""

    rows: int
    shards: int
    bytes: int


@dataclass(frozen=True)
class Estimate:
    """What a spec will cost."""

    equations: int  # that there are, about
    configs: dict[str, Config]
    stages: list[Stage]
    worker_bytes: int
    client_bytes: int

    @property
    def bytes(self) -> int:
        return sum(config.bytes for config in self.configs.values())

    @property
    def core_hours(self) -> float:
        return sum(stage.core_seconds for stage in self.stages) / 3600

    def wall(self, cores: int) -> float:
        """Seconds on some cores: the stages follow one another."""
        return sum(stage.wall(cores) for stage in self.stages)

    def limit(self, cores: int) -> str:
        """What keeps so many cores from being so many times as fast."""
        ideal = self.core_hours * 3600 / cores
        worst = max(self.stages, key=lambda stage: stage.wall(cores) - stage.core_seconds / cores)
        if self.wall(cores) < 1.1 * ideal:
            return "nothing"
        return f"{worst.name}: " + ("the scheduler" if worst.wall(cores) == worst.calls * CALL else "too few pieces")

    def lines(self, cores: list[int]) -> Iterator[str]:
        """For a person."""
        wide = max(12, *(len(name) + 1 for name in self.configs))  # of the first column
        yield f"{'':<{wide}}{'rows':>20}{'shards':>12}{'GB':>12}"
        for name, config in self.configs.items():
            yield f"{name:<{wide}}{config.rows:>20,}{config.shards:>12,}{config.bytes / 1e9:>12,.2f}"
        yield ""
        yield f"{'':<{wide}}{'calls':>20}{'core-hours':>12}"
        for stage in self.stages:
            yield f"{stage.name:<{wide}}{stage.calls:>20,}{stage.core_seconds / 3600:>12,.2f}"
        yield ""
        yield f"{'cores':<{wide}}{'hours':>20}{'GB/s out':>12}  held back by"
        for number in cores:
            seconds = self.wall(number)
            rate = self.bytes / 1e9 / max(seconds, 1e-9)
            yield f"{number:<{wide},}{seconds / 3600:>20,.2f}{rate:>12,.3f}  {self.limit(number)}"
        yield ""
        yield f"{self.core_hours:,.1f} core-hours, {self.bytes / 1e9:,.1f} GB, about {self.equations:,} equations exist"
        held = self.worker_bytes / 1e6, self.client_bytes / 1e6
        yield f"memory: {held[0]:,.0f} MB a worker, {held[1]:,.0f} MB more at the client"

    def to_json(self, cores: list[int]) -> dict[str, Any]:
        """As a plain object."""
        return asdict(self) | {
            "bytes": self.bytes,
            "core_hours": self.core_hours,
            "cores": {str(n): {"seconds": self.wall(n), "limit": self.limit(n)} for n in cores},
        }


def estimate(spec: Spec, expert: Expert, augmentation: Augmentation) -> Estimate:
    """Build a small piece of the dataset, and scale what it took."""
    small = replace(spec, d=min(spec.d, SAMPLE), rows_per_shard=SAMPLE)
    equations = _equations(spec)
    if spec.d > equations:
        raise InvalidSpec(f"d={spec.d:,}: there are about {equations:,} valid equations for n={spec.n}, l={spec.l}")
    with tempfile.TemporaryDirectory() as place:
        _measure(Folder(Path(place) / "warm"), replace(small, d=min(spec.d, 500)), expert, augmentation)
        piece = _measure(Folder(Path(place) / "piece"), small, expert, augmentation)
    pieces = max(1, -(-spec.quotas["train"] // spec.rows_per_shard))
    scale = spec.d / small.d
    configs = {
        config: Config(
            round(sum(info.rows for info in made) * scale),
            len(made) * pieces,
            round(sum(info.bytes for info in made) * scale),
        )
        for config, made in piece.files.items()
    }
    configs["pairs"] = replace(configs["pairs"], rows=spec.d)
    blocks = -(-spec.d // piece.rows_per_block)
    files = sum(config.shards for config in configs.values())
    seconds = {name: took * scale for name, took in piece.seconds.items()}
    experts = sum(configs[name].shards for name in ("expert", "variants_expert") if name in configs)
    stages = [
        Stage("counting", -(-blocks // LONGEST_RUN), blocks * piece.seconds_per_block),
        Stage("pairs", pieces, seconds["pairs"]),
        Stage("expert", experts, seconds["expert"] + seconds["variants_expert"]),
        Stage("augmented", pieces, seconds["augmented"]),
        Stage("card", -(-files // BUNDLE), seconds["card"]),
    ]
    return Estimate(equations, configs, stages, _peak(), files * FILE + blocks * 8 * len(SPLITS))


@dataclass(frozen=True)
class _Piece:
    files: dict[str, list[FileInfo]]
    seconds: dict[str, float]
    rows_per_block: int
    seconds_per_block: float


def _measure(folder: Folder, spec: Spec, expert: Expert, augmentation: Augmentation) -> _Piece:
    """One stripe of everything, and the core seconds that each part took."""
    order = order_of(spec)
    blocks = range(min(BLOCKS, -(-order.size // order.block)))
    layout = plan(spec, Local())
    scan.cache_clear()  # a large dataset meets every block anew
    per_block, counted = _timed(lambda: [sum(count(spec, block)) for block in blocks])
    total = stripes(spec, layout)
    names = shard_names(spec, 0, total)
    scan.cache_clear()
    seconds, files = {}, {}
    seconds["pairs"], pairs = _timed(lambda: write_stripe(folder, names, spec, part_of(layout, spec, 0), 0))
    files["pairs"], files["variants"] = pairs[: len(SPLITS)], pairs[len(SPLITS) :]
    recipe = Recipe(spec, ExpertUsed.of(expert), augmentation)
    which: dict[ConfigName, tuple[str, ...]] = {
        "expert": names[: len(SPLITS)],
        "variants_expert": names[len(SPLITS) :],
        "augmented": names[:1],
    }
    for config, shards in which.items():
        calls = [(folder / name, folder / shard_of(name, config), config, recipe.part(config)) for name in shards]
        seconds[config], files[config] = _timed(partial(_write, calls))
    seconds["card"], _ = _timed(lambda: _read_footers(folder))
    return _Piece(
        {config: made for config, made in files.items() if made},
        seconds,
        max(1, sum(counted) // len(counted)),
        per_block / len(counted),
    )


def _write(calls: list[tuple[Any, ...]]) -> list[FileInfo]:
    return [made for call in calls for made in write_expert_shard(*call)]


def _read_footers(folder: Folder) -> None:
    for config in SCHEMAS:
        for path in folder.there(config):
            shard_counts(path, config)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Core seconds of some work, threads included, and what it gave."""
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def _equations(spec: Spec) -> int:
    """How many valid equations there are: exact where they are listed, else from some blocks."""
    order = order_of(spec)
    if order.listed is not None:
        return len(order.listed[0])
    tried = range(min(BLOCKS, -(-order.size // order.block)))
    found = sum(len(scan(spec, block).positions) for block in tried)
    return round(found / min(len(tried) * order.block, order.size) * order.size)


def _peak() -> int:
    """The most memory that this process has held, in bytes."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024
