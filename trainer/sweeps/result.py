"""The record of one cell: what was asked for, what it cost and what it scored. ``cell.py`` writes it as ``cell.json``
into the run folder; the runner and the report read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct

from trainer.core.errors import BadData
from trainer.core.files import read, write_json
from trainer.core.records import decode, plain
from trainer.training.measures import Measure, Percent

CELL = "cell.json"  # written last: a folder without it holds an unfinished cell
CELL_FORMAT = 2

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Setting = str | int | float | bool
Kind = TypeVar("Kind")


class CellResult(Struct, frozen=True, kw_only=True):
    """A finished cell of a sweep."""

    task: str
    metric: str = ""  # empty: the dataset has no demonstrations and names none
    design: str = ""
    usual: bool = True  # whether metric and design are the task's own default
    size: dict[str, int] = {}  # n, l and d of a generated dataset
    model: str
    ta: bool
    seed: Count
    preset: str
    label: str = ""
    split: Literal["validation", "test"] = "test"
    settings: dict[str, Setting] = {}  # the whole config but for the seed
    practice: dict[str, Setting] = {}  # how it practised, after the imitation of the cell without a label
    commands: list[str]
    build: str = ""

    parameters: Count
    updates: Count
    epochs: Count
    best_epoch: Annotated[int, Meta(ge=-1)]
    finished: str
    # Including processes that were killed before. CPU seconds are of all threads, on a machine that others may use too.
    train_seconds: Seconds
    seconds: Seconds
    cpu_seconds: Seconds
    device: str
    threads: Count
    versions: dict[str, str] = {}

    data: dict[str, str]  # shard -> SHA-256
    sources: dict[str, str] = {}  # the same of the sources without targets; empty in results of before it was recorded
    max_steps: Count
    scores: dict[Measure, Percent]
    games: Count

    @property
    def kept(self) -> str:
        """The epoch that is kept, and which there are: practice may have made nothing better."""
        return f"{'before practice' if self.best_epoch < 0 else self.best_epoch} (0 to {self.epochs - 1})"


class _Versioned(Struct):
    format: int


def read_record(path: Path, kind: type[Kind], version: int) -> Kind:
    """A record with a format number from a JSON file."""
    raw = read(path)
    found = decode(raw, _Versioned, path).format
    if found != version:
        raise BadData(f"{path}: format {found}, this version reads format {version}: run the sweep again")
    return decode(raw, kind, path)


def read_cell(folder: Path) -> CellResult | None:
    """The result of a cell; None if it is not finished."""
    path = folder / CELL
    return read_record(path, CellResult, CELL_FORMAT) if path.is_file() else None


def write_cell(folder: Path, result: CellResult) -> None:
    """Mark a cell as finished."""
    write_json(folder / CELL, {"format": CELL_FORMAT, **plain(result)})
