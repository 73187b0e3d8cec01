"""Runs of ``trainer fit`` that ``trainer evaluate`` has measured, as cells beside those of a sweep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import structs

from trainer.core.files import digest
from trainer.core.format import SplitName
from trainer.core.records import convert
from trainer.models.zoo import find_model
from trainer.sweeps.cell import SIZE
from trainer.sweeps.grid import Practising, as_option
from trainer.sweeps.result import CellResult, Count, Seconds, Setting
from trainer.training.checkpoint import load_checkpoint
from trainer.training.loop import Position
from trainer.training.measures import Evaluation
from trainer.training.presets import PRESETS, default_preset, preset
from trainer.training.run import CONFIG, Description, RunFolder, read_json

Measured = Literal["test", "validation"]  # the splits that a cell can be measured on, the preferred one first
NAMED = 5  # runs in a line
PRACTISED = "practised"  # the label of a run that has: the table of the paper is of agents that imitate


class Evaluated(Evaluation, kw_only=True):
    """What ``evaluation-SPLIT.json`` says, as far as a report shows it."""

    pairs: Count
    weights: str
    files: dict[str, str]
    seconds: Seconds = 0.0


def read_runs(place: Path, without: Mapping[Path, CellResult]) -> tuple[dict[Path, CellResult], list[Path]]:
    """The evaluated runs below a folder, but for those that a sweep describes itself; and those not evaluated."""
    found, left = {}, []
    for path in sorted(place.rglob(CONFIG)):
        run = RunFolder(path.parent)
        if run.path in without or not run.best.is_file():
            continue
        if evaluated := read_evaluation(run):
            found[run.path] = as_cell(run, *evaluated)
        else:
            left.append(run.path)
    return found, left


def not_evaluated(left: Sequence[Path]) -> list[str]:
    """A line that names the runs that a report leaves out, or none.

    >>> not_evaluated([Path("runs/aes")])
    ['not evaluated: runs/aes; run `trainer evaluate runs/aes`']
    """
    if not left:
        return []
    more = f" and {len(left) - NAMED:,} more" if len(left) > NAMED else ""
    what = shlex.quote(str(left[0])) if len(left) == 1 else "RUN"
    return [f"not evaluated: {', '.join(map(str, left[:NAMED]))}{more}; run `trainer evaluate {what}`"]


def read_evaluation(run: RunFolder) -> tuple[Measured, Evaluated] | None:
    """The evaluation of the run's best weights, and its split; one of earlier weights does not count."""
    for split in get_args(Measured):
        path = run.evaluation(split)
        if path.is_file():
            found = convert(read_json(path), Evaluated, path)
            if found.weights == digest(run.best):
                return split, found
    return None


def as_cell(run: RunFolder, split: Measured, evaluation: Evaluated) -> CellResult:
    """A run as a cell; what it does not record, such as the device, stays empty."""
    about = Description.read(run.config)
    contract, config = about.contract, about.config
    at = convert(load_checkpoint(run.last)[1], Position, run.last)
    name, options = nearest_preset(about)
    pairs: Mapping[str, Any] = contract.spec.get("pairs", {})
    files = about.data.get("files")
    return CellResult(
        task=contract.task,
        metric=contract.metric,
        design=contract.design,
        usual=contract.usual,
        size={key: pairs[key] for key in SIZE if type(pairs.get(key)) is int},
        model=config.model,
        ta=find_model(config.model).shards(config) == "augmented",
        seed=config.seed,
        preset=name,
        label=PRACTISED if about.practice else "",
        split=split,
        settings={key: value for key, value in about.settings.items() if key != "seed"},
        practice=practice(about, run.config),
        commands=commands(about, name, options, run.path, split),
        parameters=about.parameters,
        updates=at.updates,
        epochs=at.epoch,
        best_epoch=at.best_epoch,
        finished=at.finished,
        train_seconds=round(at.seconds, 1),
        seconds=round(at.seconds + evaluation.seconds, 1),
        cpu_seconds=round(at.cpu_seconds, 1),
        device="",
        threads=0,
        versions={package: version for package, version in about.versions.items() if isinstance(version, str)},
        data=(files if isinstance(files, dict) else {}) | evaluation.files,
        sources=about.sources,
        max_steps=contract.max_steps,
        scores=evaluation.scores,
        games=evaluation.pairs,
    )


def nearest_preset(about: Description) -> tuple[str, dict[str, Any]]:
    """The preset with the fewest settings that the run has otherwise, the model's default if it is one; and these."""
    usual_name = default_preset({"model": about.config.model}, "cpu")
    others: dict[str, dict[str, Any]] = {}
    for name in PRESETS:
        usual = preset(name, model=about.config.model)
        others[name] = {key: value for key, value in about.settings.items() if value != getattr(usual, key)}
    name = min(others, key=lambda name: (len(others[name]), name != usual_name))
    return name, {"model": about.config.model} | others[name]


def commands(about: Description, name: str, options: dict[str, Any], run: Path, split: SplitName) -> list[str]:
    """The commands that make the run again and measure it."""
    words = [word for key, value in options.items() for word in as_option(key, value)]
    measured = [] if split == "test" else ["--split", split]
    made = ["fit", str(about.data.get("where")), "--preset", name, *words]
    if about.practice is not None:
        asked = convert(practice(about, run), Practising, run)
        made = ["practise", str(about.data.get("begun")), *asked.options(), "--data", str(about.data.get("where"))]
        made += ["--seed", str(about.config.seed)]
    return [
        shlex.join(["trainer", *made, "--out", str(run)]),
        shlex.join(["trainer", "evaluate", str(run), *measured]),
    ]


def practice(about: Description, where: Path) -> dict[str, Setting]:
    """How a run practised, as a sweep would ask for it; nothing, if it has only imitated."""
    if about.practice is None:
        return {}
    said = {name: about.practice.get(name) for name in ("rounds", "samples", "updates", "corrections")}
    asked = convert(said | {"sources": about.data.get("sources", "")}, Practising, f"{where}: practice")
    return asked.settings


def told_apart(
    runs: Mapping[Path, CellResult], cells: Mapping[Path, CellResult], names: Mapping[Path, str]
) -> dict[Path, CellResult]:
    """The runs, labelled with their names where they cannot be averaged with a like one: it has other settings, other
    data, another practice, or the same seed."""

    def key(one: CellResult) -> tuple[object, ...]:
        return one.task, one.metric, one.design, one.model, one.ta, one.label, one.split

    def same(one: CellResult) -> tuple[object, ...]:
        return one.preset, one.settings, one.data, one.practice, one.sources

    def clash(one: CellResult, two: CellResult) -> bool:
        return one.seed == two.seed or same(one) != same(two)

    everything = {**cells, **runs}
    return {
        folder: structs.replace(cell, label=names[folder])
        if any(place != folder and key(o) == key(cell) and clash(o, cell) for place, o in everything.items())
        else cell
        for folder, cell in runs.items()
    }
