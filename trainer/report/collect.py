"""The results of finished cells as typed records: everything that tables and figures are made from.

The games to step through are not part of a record: they are only in the run folders, and on the pages made from these.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, structs

from trainer.core.errors import BadData
from trainer.core.format import SplitName
from trainer.core.records import convert, plain
from trainer.game.outcomes import OUTCOMES_FORMAT, GameRecord, Outcome, OutcomesRecord
from trainer.models.zoo import MODELS
from trainer.report.paper import PAIR
from trainer.report.runs import not_evaluated, read_runs, told_apart
from trainer.sweeps.result import CELL, CELL_FORMAT, CellResult, Count, Seconds, read_record
from trainer.training.measures import Percent
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


class _Validation(Struct, frozen=True):
    action_accuracy: Percent | None = None
    sequence_accuracy: Percent | None = None
    equation_accuracy: Percent | None = None


class _Metrics(Struct, frozen=True):
    """A line of ``metrics.jsonl``."""

    action_accuracy: Percent
    seconds: Seconds | None = None
    validation: _Validation = _Validation()


Pair = tuple[str, str, str]  # task, source, target
Lengths = dict[Pair, tuple[int, bool]]  # expert steps, and whether they replace


@dataclass(frozen=True)
class Cells:
    """The finished cells of a place, and the games that their evaluations kept, by the name of the cell."""

    records: list[Record]
    games: dict[str, list[GameRecord]]
    left: Sequence[Path] = ()  # runs that were not evaluated


@dataclass(frozen=True)
class Played:
    """What a record counts of a cell's games."""

    failures: Counter[str]
    right: list[tuple[Pair, bool]]


def collect(runs: Path) -> Cells:
    """All finished cells and evaluated runs under a folder, or those of a ``results.json``, which has no games."""
    if runs.is_file():
        return Cells(check_comparable(read_results(runs).cells), {})
    if not runs.is_dir():
        raise BadData(f"{runs}: no such folder")
    cells = {path.parent: read_record(path, CellResult, CELL_FORMAT) for path in sorted(runs.rglob(CELL))}
    alone, left = read_runs(runs, cells)
    if not cells and not alone:
        remarks = [f"{runs}: no finished cell of a sweep, and no run that `trainer evaluate` has measured"]
        raise BadData("; ".join(remarks + not_evaluated(left)))
    names = {folder: folder.relative_to(runs).as_posix() for folder in (*cells, *alone)}
    names |= {runs: runs.absolute().name} if runs in names else {}
    cells |= told_apart(alone, cells, names)
    lengths: Lengths = {}
    known: dict[Pair, Pair] = {}  # many cells play the same pairs: each is kept once
    played: dict[Path, Played] = {}
    games: dict[str, list[GameRecord]] = {}
    for folder, cell in cells.items():
        outcomes = read_outcomes(folder, cell.split)
        pairs = [(cell.task, row.source, row.target) for row in outcomes.rows]
        lengths |= expert_lengths(cell, outcomes.rows)
        played[folder] = Played(
            Counter(row.failure for row in outcomes.rows if row.failure),
            [(known.setdefault(pair, pair), row.right) for pair, row in zip(pairs, outcomes.rows, strict=True)],
        )
        games |= {names[folder]: outcomes.games} if outcomes.games else {}
    records = [make_record(folder, names[folder], cell, played[folder], lengths) for folder, cell in cells.items()]
    return Cells(check_comparable(records), games, left)


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
    # Older results do not say on which sources they practised: the first that does.
    known = {_averaged(one): one for one in reversed(records) if one.sources}
    for one in records:
        same = _averaged(one)
        first, practised = seen.setdefault(same, one), known.get(same, one)
        for what in ("preset", "settings", "data", "practice"):
            values = [getattr(record, what) for record in (first, one)]
            if what == "practice" and practised.sources:  # where these are does not matter
                values = [value | {"sources": bool(value.get("sources"))} for value in values]
            if values[0] != values[1]:
                raise BadData(f"{first.name} and {one.name} differ in their {what}: report them separately")
        if one.sources and one.sources != practised.sources:
            raise BadData(f"{practised.name} and {one.name} differ in their sources: report them separately")
        if seen.setdefault((*same, one.seed), one) is not one:
            raise BadData(f"{one.name}: duplicate seed {one.seed}: report the folders separately")
    return records


def _averaged(record: Record) -> tuple[Any, ...]:
    """What the cells of one figure have in common."""
    return record.task, record.metric, record.design, record.model, record.ta, record.label, record.split


def read_outcomes(folder: Path, split: SplitName) -> OutcomesRecord:
    """How the games of a cell's evaluation went."""
    path = RunFolder(folder).outcomes(split)
    return read_record(path, OutcomesRecord, OUTCOMES_FORMAT) if path.exists() else OutcomesRecord()


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


def make_record(folder: Path, name: str, cell: CellResult, played: Played, lengths: Lengths) -> Record:
    """A cell with the counts of its games."""
    known = [(right, facts) for pair, right in played.right if (facts := lengths.get(pair))]
    return Record(
        **structs.asdict(cell),
        name=name,
        failures=dict(sorted(played.failures.items())),
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
    run = RunFolder(folder)
    lines = convert(run.read_metrics(), list[_Metrics], run.metrics)
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
