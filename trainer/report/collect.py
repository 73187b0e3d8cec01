"""The results of finished cells as typed records: everything that tables and figures are made from.

The games of the gallery are not part of a record; they are read from the run folders when a page is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, structs

from trainer.core.errors import BadData
from trainer.core.records import MAX_BYTES, convert, decode, plain
from trainer.models.zoo import MODELS
from trainer.report.paper import PAIR
from trainer.sweeps.result import CELL, CELL_FORMAT, CellResult, Count, Percent, Seconds, read_record
from trainer.training.run import RunFolder

RESULTS = "results.json"
RESULTS_FORMAT = 2

Share = tuple[Count, Annotated[int, Meta(ge=1)]]  # how many are right, of how many
Micros = Annotated[float, Meta(ge=0, le=1e12)]
Group = TypeVar("Group", int, str)


class Epoch(Struct, frozen=True, array_like=True):
    """One point of a learning curve: accuracies in percent, and the minutes so far."""

    trained: Percent | None  # actions, training
    actions: Percent | None = None  # actions, validation
    texts: Percent | None = None  # returned texts, validation
    minutes: Seconds | None = None


class Record(CellResult, frozen=True, kw_only=True):
    """A cell with the counts of its games: one line of ``results.json``."""

    name: str
    failures: dict[str, Count]
    by_length: dict[int, Share]  # by the number of the expert's steps
    by_replace: dict[Literal["with", "without"], Share]  # by whether the expert replaces
    curve: list[Epoch]


class Times(Struct, frozen=True):
    """Microseconds for an action and for a returned text, or a ratio of two such times."""

    action: Micros
    text: Micros


class TaskTiming(Struct, frozen=True):
    """Inference times of agents on one task."""

    agents: dict[str, Times]
    ratio: Times  # of the first agent to the second
    games: Count
    threads: Count

    def __post_init__(self) -> None:
        if missing := next((name for name in PAIR if name not in self.agents), None):
            raise ValueError(f"no times of {missing}")


Timing = dict[str, TaskTiming]  # by task


class Results(Struct, frozen=True):
    """The content of ``results.json``."""

    timing: Timing
    cells: Annotated[list[Record], Meta(min_length=1)]


class Outcome(Struct, frozen=True):
    """How one game of an evaluation ended."""

    source: str
    target: str
    right: bool
    failure: str
    expert_steps: Count | None = None
    replaces: bool = False


class MoveRecord(Struct, frozen=True):
    """One step of a game."""

    state: str
    action: list[str]
    chances: list[float]
    verdict: str

    def __post_init__(self) -> None:
        if len(self.action) != len(self.chances):
            raise ValueError(f"{len(self.chances)} chances for {len(self.action)} action tokens")


class GameRecord(Struct, frozen=True):
    """A game to step through."""

    source: str
    target: str
    predicted: str
    right: bool
    failure: str
    moves: list[MoveRecord]


class OutcomesRecord(Struct, frozen=True):
    """The content of ``outcomes-SPLIT.json``."""

    rows: list[Outcome] = []
    games: list[GameRecord] = []


class _Validation(Struct, frozen=True):
    action_accuracy: Percent | None = None
    sequence_accuracy: Percent | None = None
    equation_accuracy: Percent | None = None


class _Metrics(Struct, frozen=True):
    """A line of ``metrics.jsonl``."""

    action_accuracy: Percent
    seconds: Seconds | None = None
    validation: _Validation = _Validation()


Lengths = dict[tuple[str, str, str], tuple[int, bool]]  # (task, source, target) -> expert steps, whether they replace


def collect(runs: Path) -> list[Record]:
    """The records of all finished cells under a folder, or those of a ``results.json``."""
    if runs.is_file():
        return check_comparable(read_results(runs).cells)
    if not runs.is_dir():
        raise BadData(f"{runs}: no such folder")
    cells = {path.parent: read_record(path, CellResult, CELL_FORMAT) for path in sorted(runs.rglob(CELL))}
    if not cells:
        raise BadData(f"{runs}: no finished cells; run `trainer sweep` first")
    lengths: Lengths = {}
    for folder, cell in cells.items():
        lengths |= expert_lengths(cell, read_outcomes(folder, cell.split).rows)
    names = {folder: folder.relative_to(runs).as_posix() for folder in cells}
    return check_comparable([make_record(folder, names[folder], cell, lengths) for folder, cell in cells.items()])


def read_results(path: Path) -> Results:
    """The results of an earlier report."""
    return read_record(path, Results, RESULTS_FORMAT)


def write_results(records: list[Record], timing: Timing) -> str:
    """The content of ``results.json``, one cell a line."""
    lines = ",\n".join(json.dumps(plain(record), ensure_ascii=False) for record in records)
    return f'{{"format": {RESULTS_FORMAT},\n"timing": {json.dumps(plain(timing))},\n"cells": [\n{lines}\n]}}\n'


def check_comparable(records: list[Record]) -> list[Record]:
    """The records, if those that are averaged differ only in their seed."""
    seen: dict[tuple[Any, ...], Record] = {}
    for one in records:
        same = (one.task, one.metric, one.design, one.model, one.ta, one.label, one.split)
        first = seen.setdefault(same, one)
        for what in ("preset", "settings", "data"):
            if getattr(first, what) != getattr(one, what):
                raise BadData(f"{first.name} and {one.name} differ in their {what}: report them separately")
        if seen.setdefault((*same, one.seed), one) is not one:
            raise BadData(f"{one.name}: duplicate seed {one.seed}: report the folders separately")
    return records


def read_outcomes(folder: Path, split: str) -> OutcomesRecord:
    """How the games of a cell's evaluation went."""
    path = folder / f"outcomes-{split}.json"
    try:
        with path.open("rb") as file:
            return decode(file.read(MAX_BYTES + 1), OutcomesRecord, path)
    except FileNotFoundError:
        return OutcomesRecord()
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from error


def games_of(folder: Path, split: str) -> list[dict[str, Any]]:
    """The games of a cell to step through."""
    games: list[dict[str, Any]] = plain(read_outcomes(folder, split).games)
    return games


def expert_lengths(cell: CellResult, rows: Iterable[Outcome]) -> Lengths:
    """How long the expert's trajectories are with the task's own metric, and whether they replace.

    Lengths with other metrics, and of rounds of tags or whole texts, cannot be compared with them.
    """
    if not cell.usual or (cell.model in MODELS and MODELS[cell.model].game != "edits"):
        return {}
    return {
        (cell.task, row.source, row.target): (row.expert_steps, row.replaces)
        for row in rows
        if row.expert_steps is not None
    }


def make_record(folder: Path, name: str, cell: CellResult, lengths: Lengths) -> Record:
    """A cell with the counts of its games."""
    rows = read_outcomes(folder, cell.split).rows
    known = [(row.right, facts) for row in rows if (facts := lengths.get((cell.task, row.source, row.target)))]
    return Record(
        **structs.asdict(cell),
        name=name,
        failures=dict(sorted(Counter(row.failure for row in rows if row.failure).items())),
        by_length=shares((steps, right) for right, (steps, _) in known),
        by_replace=shares(("with" if replaces else "without", right) for right, (_, replaces) in known),  # type: ignore[arg-type]
        curve=curve(folder),
    )


def shares(pairs: Iterable[tuple[Group, bool]]) -> dict[Group, Share]:
    """For each group how many are right, and how many there are.

    >>> shares([(2, True), (1, False), (2, False)])
    {1: (0, 1), 2: (1, 2)}
    """
    total, right = Counter[Group](), Counter[Group]()
    for group, is_right in pairs:
        total[group] += 1
        right[group] += is_right
    return {group: (right[group], total[group]) for group in sorted(total)}


def curve(folder: Path) -> list[Epoch]:
    """The learning curve of a run."""
    lines = convert(RunFolder(folder).read_metrics(), list[_Metrics], folder / "metrics.jsonl")
    return [
        Epoch(
            round(line.action_accuracy, 2),
            rounded(line.validation.action_accuracy),
            rounded(line.validation.equation_accuracy, line.validation.sequence_accuracy),
            rounded(None if line.seconds is None else line.seconds / 60),
        )
        for line in lines
    ]


def rounded(*values: float | None) -> float | None:
    """The first value that is known, with two decimals."""
    return next((round(value, 2) for value in values if value is not None), None)
