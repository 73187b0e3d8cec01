"""What the cells of a sweep leave behind, as plain records: everything that tables and figures are made of.

A record holds numbers only; the games of the gallery are read from the run folders when a page is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from trainer.core.errors import BadData
from trainer.data.contract import MAX_JSON, parse_object
from trainer.sweeps.cell import CELL
from trainer.training.run import RunFolder

FORMAT = 1
RESULTS = "results.json"
DEFAULTS = {"aor": ("levenshtein", "insert"), "aes": ("span", "span"), "aec": ("levenshtein", "edit")}
MEASURES = ("token", "sequence", "equation")

Record = dict[str, Any]
Rows = list[dict[str, Any]]
Lookup = dict[tuple[str, str, str], tuple[int, bool]]


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
    return usual is None or (record["metric"] or None, record["design"] or None) in (usual, (None, None))


def split_of(record: Record) -> str:
    """What a cell was measured on."""
    return record.get("split") or "test"


def collect(runs: Path) -> list[Record]:
    """The records of all finished cells under a folder, or those of a ``results.json``."""
    if runs.is_file():
        values = read_object(runs)
        if values.get("format") != FORMAT or not isinstance(values.get("cells"), list) or not values["cells"]:
            raise BadData(f"{runs}: not the results of a report")
        return alike([checked(cell, f"{runs}: cell {number}") for number, cell in enumerate(values["cells"], start=1)])
    if not runs.is_dir():
        raise BadData(f"{runs}: no such folder")
    folders = sorted(path.parent for path in runs.rglob(CELL))
    if not folders:
        raise BadData(f"{runs}: no finished cell is there; `trainer sweep` makes them")
    lookup: Lookup = {}
    for folder in folders:
        with readable(folder):
            learn_lengths(folder, lookup)
    found = []
    for folder in folders:
        with readable(folder):
            found.append(checked(record(folder, folder.relative_to(runs).as_posix(), lookup), str(folder)))
    return alike(found)


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """What is not as a cell leaves it is named by its folder."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise BadData(f"{folder}: not the files of a finished cell ({type(error).__name__}: {error})") from error


NUMBERS = ("seed", "parameters", "updates", "epochs", "best_epoch", "seconds", "games", "threads")
OPTIONAL = ("train_seconds", "cpu_seconds", "max_steps")
REPLACES = ("with", "without")
SHAPES: dict[str, type | tuple[type, ...]] = {
    "name": str, "task": str, "model": str, "ta": bool, "scores": dict, "failures": dict, "by_length": dict,
    "by_replace": dict, "curve": list, "data": dict, "commands": list, "device": str,
    "metric": (str, type(None)), "design": (str, type(None)), "build": (str, type(None)),
    "size": (dict, type(None)), "label": (str, type(None)), "split": (str, type(None)), "preset": (str, type(None)),
}  # fmt: skip


def checked(values: object, where: str) -> Record:
    """A record whose fields are of the right kinds; an error names the place."""
    if not isinstance(values, dict):
        raise BadData(f"{where}: an object is needed, found {str(values)[:60]!r}")
    for key, kinds in SHAPES.items():
        if not isinstance(values.get(key), kinds):
            raise BadData(f"{where}: field {key!r} is missing or of a wrong kind")
    if values["split"] not in (None, "test", "validation"):
        raise BadData(f"{where}: split: test or validation is needed, found {str(values['split'])[:60]!r}")
    if not all(isinstance(text, str) for text in (*values["commands"], *values["data"].values())):
        raise BadData(f"{where}: commands and hashes of the data are texts")
    for key, number in numbers_of(values, where):
        if not isinstance(number, int | float) or isinstance(number, bool) or not isfinite(number):
            raise BadData(f"{where}: {key}: a number is needed, found {str(number)[:60]!r}")
    return values


def numbers_of(values: Record, where: str) -> Iterator[tuple[str, object]]:
    """All that must be a number."""
    yield from ((key, values.get(key)) for key in NUMBERS)
    for key in ("scores", "failures"):
        yield from ((key, number) for number in values[key].values())
    yield from (("size", number) for number in (values.get("size") or {}).values())
    yield from ((key, values[key]) for key in OPTIONAL if values.get(key) is not None)
    for line in values["curve"]:
        if not isinstance(line, list) or len(line) < 3:
            raise BadData(f"{where}: curve: lists of numbers are needed, found {str(line)[:60]!r}")
        yield from (("curve", number) for number in line if number is not None)
    for key in ("by_length", "by_replace"):
        for group, line in values[key].items():
            known = group.isdecimal() if key == "by_length" else group in REPLACES
            if not known or not isinstance(line, list) or len(line) != 2 or not line[1]:
                raise BadData(f"{where}: {key}: how many are right of how many, found {group[:60]!r}: {str(line)[:60]}")
            yield from ((key, number) for number in line)


def alike(records: list[Record]) -> list[Record]:
    """The records, if those that one figure would be the mean of differ in their seed alone."""
    seen: dict[tuple[Any, ...], Record] = {}
    for one in records:
        same = tuple(one.get(key) or "" for key in ("task", "metric", "design", "model", "ta", "label", "split"))
        first = seen.setdefault(same, one)
        for what in ("preset", "settings", "data"):
            if first.get(what) != one.get(what):
                raise BadData(f"{first['name']} and {one['name']} differ in their {what}: report them one by one")
        if seen.setdefault((*same, one["seed"]), one) is not one:
            raise BadData(f"{one['name']}: its seed {one['seed']} is there twice: report the folders one by one")
    return records


def outcomes(folder: Path, split: str) -> dict[str, Any]:
    """The games of a cell's evaluation."""
    path = folder / f"outcomes-{split}.json"
    return read_object(path) if path.is_file() else {}


def games_of(folder: Path, split: str) -> list[dict[str, Any]]:
    """The games of a cell that one can step through."""
    games = outcomes(folder, split).get("games", [])
    with readable(folder):
        for game in games:
            texts = [game[key] for key in ("source", "target", "predicted", "failure")]
            for move in game["moves"]:
                texts += [move["state"], move["verdict"], *move["action"]]
                _ = [float(chance) for _, chance in zip(move["action"], move["chances"], strict=True)]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("a game is not told in texts")
    return list(games)


def learn_lengths(folder: Path, found: Lookup) -> None:
    """Add to (task, source, target) how long the expert's trajectory is under the task's own metric, and whether it
    replaces. Other metrics, tags and whole texts have lengths of their own, which cannot be compared."""
    cell = dict.fromkeys(("task", "metric", "design")) | read_object(folder / CELL)
    if not plain(cell) or cell.get("model") in ("end2end", "tagging"):
        return
    for row in outcomes(folder, split_of(cell)).get("rows", []):
        if "expert_steps" in row:
            found[str(cell["task"]), row["source"], row["target"]] = (int(row["expert_steps"]), bool(row["replaces"]))


def record(folder: Path, name: str, lookup: Lookup) -> Record:
    """One cell in numbers."""
    cell = read_object(folder / CELL)
    evaluation = cell.get("evaluation", {})
    scores = {m: evaluation[f"{m}_accuracy"] for m in MEASURES if f"{m}_accuracy" in evaluation}
    rows: Rows = outcomes(folder, split_of(cell)).get("rows", [])
    task = str(cell.get("task"))
    known = [(row, lookup.get((task, row["source"], row["target"]))) for row in rows]
    described = read_object(folder / "config.json")
    keys = (
        "task", "metric", "design", "model", "ta", "seed", "preset", "commands", "build", "parameters", "updates",
        "epochs", "best_epoch", "finished", "train_seconds", "seconds", "cpu_seconds", "device", "threads",
        "label", "split", "size",
    )  # fmt: skip
    settings = {key: value for key, value in cell.get("config", {}).items() if key != "seed"}
    return {
        "name": name,
        **{key: cell.get(key) for key in keys},
        "settings": settings,
        "max_steps": described.get("contract", {}).get("max_steps"),
        "scores": scores,
        "games": evaluation.get("pairs", 0),
        "data": described.get("data", {}).get("files", {}) | evaluation.get("files", {}),
        "versions": described.get("versions", {}),
        "failures": dict(sorted(Counter(row["failure"] for row in rows if row["failure"]).items())),
        "by_length": shares((facts[0], row["right"]) for row, facts in known if facts),
        "by_replace": shares((REPLACES[not facts[1]], row["right"]) for row, facts in known if facts),
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
    for line in RunFolder(folder).read_metrics():
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
