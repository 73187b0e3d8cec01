"""What the cells of a sweep leave behind, as plain records: everything that tables and figures are made of.

A record holds numbers only; the games of the gallery are read from the run folders when a page is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.cell import CELL
from trainer.contract import MAX_JSON, parse_object
from trainer.errors import BadData
from trainer.run import Run

FORMAT = 1
RESULTS = "results.json"
DEFAULTS = {"aor": ("levenshtein", "insert"), "aes": ("span", "span"), "aec": ("levenshtein", "edit")}
MEASURES = ("token", "sequence", "equation")

Record = dict[str, Any]
Rows = list[dict[str, Any]]


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise BadData(f"{path}: more than {MAX_JSON:,} bytes")
        return parse_object(path.read_bytes(), str(path))
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from error


def plain(record: Record) -> bool:
    """Whether a cell plays its task's own metric and design; what does not say plays them."""
    usual = DEFAULTS.get(record["task"])
    return (record["metric"] or None, record["design"] or None) in (usual, (None, None))


def collect(runs: Path) -> list[Record]:
    """The records of all finished cells under a folder, or those of a ``results.json``."""
    if runs.is_file():
        values = read_object(runs)
        if values.get("format") != FORMAT or not isinstance(values.get("cells"), list):
            raise BadData(f"{runs}: not the results of a report")
        return list(values["cells"])
    if not runs.is_dir():
        raise BadData(f"{runs}: no such folder")
    folders = sorted(path.parent for path in runs.rglob(CELL))
    if not folders:
        raise BadData(f"{runs}: no finished cell is there; `trainer sweep` makes them")
    lookup = expert_facts(folders)
    return [record(folder, folder.relative_to(runs).as_posix(), lookup) for folder in folders]


def outcomes(folder: Path) -> dict[str, Any]:
    """The games of a cell's evaluation."""
    for split in ("test", "validation"):
        path = folder / f"outcomes-{split}.json"
        if path.is_file():
            return read_object(path)
    return {}


def expert_facts(folders: list[Path]) -> dict[tuple[str, str, str], tuple[int, bool]]:
    """By (task, source, target): how long the expert's trajectory is under the task's own metric, and whether it
    replaces. Other metrics, tags and whole texts have lengths of their own, which cannot be compared."""
    found: dict[tuple[str, str, str], tuple[int, bool]] = {}
    seen: set[str] = set()
    for folder in folders:
        cell = dict.fromkeys(("task", "metric", "design")) | read_object(folder / CELL)
        task = str(cell["task"])
        if task in seen or not plain(cell) or cell.get("model") in ("end2end", "tagging"):
            continue
        seen.add(task)
        for row in outcomes(folder).get("rows", []):
            if "expert_steps" in row:
                found[task, row["source"], row["target"]] = (row["expert_steps"], row["replaces"])
    return found


def record(folder: Path, name: str, lookup: dict[tuple[str, str, str], tuple[int, bool]]) -> Record:
    """One cell in numbers."""
    cell = read_object(folder / CELL)
    evaluation = cell.get("evaluation", {})
    scores = {m: evaluation[f"{m}_accuracy"] for m in MEASURES if f"{m}_accuracy" in evaluation}
    rows: Rows = outcomes(folder).get("rows", [])
    task = str(cell.get("task"))
    known = [(row, lookup.get((task, row["source"], row["target"]))) for row in rows]
    described = read_object(folder / "config.json")
    keys = (
        "task", "metric", "design", "model", "ta", "seed", "preset", "commands", "build", "parameters", "updates",
        "epochs", "best_epoch", "finished", "train_seconds", "seconds", "cpu_seconds", "device", "threads",
        "label", "split",
    )  # fmt: skip
    return {
        "name": name,
        **{key: cell.get(key) for key in keys},
        "max_steps": described.get("contract", {}).get("max_steps"),
        "scores": scores,
        "games": evaluation.get("pairs", 0),
        "data": described.get("data", {}).get("files", {}) | evaluation.get("files", {}),
        "versions": described.get("versions", {}),
        "failures": dict(sorted(Counter(row["failure"] for row in rows if row["failure"]).items())),
        "by_length": shares((facts[0], row["right"]) for row, facts in known if facts),
        "by_replace": shares(("with" if facts[1] else "without", row["right"]) for row, facts in known if facts),
        "curve": curve(folder),
    }


def shares(pairs: Iterator[tuple[Any, bool]]) -> dict[str, list[int]]:
    """For each group how many are right, and how many there are."""
    found: dict[str, list[int]] = {}
    for group, right in pairs:
        entry = found.setdefault(str(group), [0, 0])
        entry[0] += bool(right)
        entry[1] += 1
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def curve(folder: Path) -> list[list[float | None]]:
    """By epoch: accuracy of actions in training, of actions and of texts in validation, and the minutes so far."""
    found = []
    for line in Run(folder).read_metrics():
        valid = line.get("validation", {})
        result = valid.get("equation_accuracy", valid.get("sequence_accuracy"))
        accuracies = (line["action_accuracy"], valid.get("action_accuracy"), result)
        minutes = line["seconds"] / 60 if "seconds" in line else None
        found.append([None if value is None else round(value, 2) for value in (*accuracies, minutes)])
    return found


def results(records: list[Record], timing: dict[str, Any]) -> str:
    """``results.json``: all numbers of a report, one cell a line."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in records)
    return f'{{"format": {FORMAT},\n"timing": {json.dumps(timing)},\n"cells": [\n{lines}\n]}}\n'
