"""A sweep as a small TOML or YAML file: which cells there are, what each trains on, and where it goes.

    out = "runs/main"
    preset = "cpu"
    seeds = [0, 1, 2]

    [[data]]
    task = "aor"
    path = "data/aor"
    build = "aegen build aor --n 10 --l 5 --d 10000 --out data/aor"

    [[grid]]
    tasks = ["aor"]
    models = ["ar-star", "nar-star"]
    ta = [false, true]

``metric`` and ``design`` of a dataset are named where there is a choice, and chosen by ``metrics`` and ``designs`` of a
grid; without these a grid uses the first dataset of each task. ``[settings]`` changes the preset for all cells, and
``settings`` of a grid for its own; a ``label`` keeps cells apart that differ in settings alone. ``split`` says what the
cells are measured on: ablations belong on ``validation``. In YAML the same keys hold the same lists.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from trainer.core.config import Config
from trainer.core.errors import BadData, InvalidConfig, MissingExtra
from trainer.core.format import SplitName
from trainer.data.hub import SCHEME
from trainer.data.places import check_url
from trainer.training.presets import preset

# Without demonstrations there is nothing to augment.
WITHOUT_TA = ("end2end", "tagging", "recurrence", "recurrence-star")
MAX_FILE = 1 << 20
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]*")  # of a folder's name


@dataclass(frozen=True)
class Source:
    """A dataset that cells train on, and the command that makes it."""

    task: str
    path: str
    build: str = ""
    metric: str = ""
    design: str = ""

    @property
    def name(self) -> str:
        """For folders and tables: ``aes``, ``aes-levenshtein-edit``."""
        return "-".join(part for part in (self.task, self.metric, self.design) if part)


@dataclass(frozen=True)
class Cell:
    """One model, one dataset, one seed."""

    source: Source
    model: str
    ta: bool
    seed: int
    preset: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    split: SplitName = "test"

    @property
    def name(self) -> str:
        """Where the cell lies under the folder of the sweep."""
        label = f",{self.label.replace(' ', '-')}" if self.label else ""
        return f"{self.source.name}/{self.model}{'+ta' if self.ta else ''}{label}/seed-{self.seed}"

    @property
    def config(self) -> Config:
        """Everything that decides what the cell computes."""
        train_on = "augmented" if self.ta else "expert"
        return preset(self.preset, **{**self.settings, "model": self.model, "train_on": train_on, "seed": self.seed})

    def commands(self, out: Path) -> list[str]:
        """The same by hand."""
        chosen = {
            "model": self.model,
            "train_on": "augmented" if self.ta else "expert",
            "seed": self.seed,
            **self.settings,
        }
        options = [word for key, value in chosen.items() for word in option(key, value)]
        run = str(out / self.name)
        split = [] if self.split == "test" else ["--split", self.split]
        fit = ["trainer", "fit", self.source.path, "--preset", self.preset, *options, "--out", run]
        path = self.source.path
        data = ["--data", path] if "://" in path and not path.startswith(SCHEME) else []  # as a run may not say it
        return [shlex.join(fit), shlex.join(["trainer", "evaluate", run, *data, *split])]


def option(key: str, value: Any) -> list[str]:
    """A setting as it is written on the command line.

    >>> option("train_on", "expert"), option("stream", True)
    (['--train-on', 'expert'], ['--stream'])
    """
    name = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [name] if value else [f"--no-{name[2:]}"] if key == "confidence" else []
    return [name, str(value)]


@dataclass(frozen=True)
class Sweep:
    """All cells of a file, in the order in which they run."""

    name: str
    title: str
    out: Path
    cells: tuple[Cell, ...]


def read_sweep(path: Path, out: Path | None = None, seeds: tuple[int, ...] = (), preset_name: str = "") -> Sweep:
    """The sweep of a file; what else is given stands in for the file's own, but a grid's own preset stays."""
    values = read_values(path)
    reader = _Reader(values | ({"preset": preset_name} if preset_name else {}), str(path))
    cells = list(reader.cells(seeds))
    names = [cell.name for cell in cells]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidConfig(f"{path}: the cell {repeated[0]} is asked for twice")
    folder = out or Path(reader.text(values, "out", "the file", f"runs/{path.stem}"))
    title = reader.text(values, "title", "the file", path.stem)
    return Sweep(path.stem, title, folder, tuple(cells))


def read_values(path: Path) -> dict[str, Any]:
    """What a TOML file says, or a YAML file (``.yaml``, ``.yml``), which is read without its power to make objects."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise InvalidConfig(f"{path}: more than {MAX_FILE:,} bytes")
        text = content.decode()
        return _yaml(text, path) if path.suffix in (".yaml", ".yml") else tomllib.loads(text)
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path}: not a text in UTF-8: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfig(f"{path}: not readable as TOML: {error}") from error


def _yaml(text: str, path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("PyYAML", "train") from error
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path}: not readable as YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidConfig(f"{path}: keys with values are needed, found {str(values)[:60]!r}")
    return values


class _Reader:
    """Typed access to a sweep file; what is wrong names the file and the place."""

    KNOWN = ("title", "out", "preset", "seeds", "settings", "split", "data", "grid")
    DATA = ("task", "path", "build", "metric", "design")
    GRID = ("tasks", "models", "ta", "designs", "metrics", "seeds", "settings", "preset", "label")

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self._only(values, self.KNOWN, "the file")

    def _only(self, table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
        if unknown := sorted(set(table) - set(known), key=str):
            raise InvalidConfig(f"{self.where}: {place}: unknown key {unknown[0]!r}, there are {', '.join(known)}")

    def _list(self, table: Mapping[str, Any], key: str, kind: type, place: str, default: list[Any]) -> list[Any]:
        found = table.get(key, default)
        if not isinstance(found, list) or not found or not all(type(entry) is kind for entry in found):
            raise InvalidConfig(f"{self.where}: {place}: {key}: a list of {kind.__name__} is needed")
        return found

    def text(self, table: Mapping[str, Any], key: str, place: str, default: str | None = None) -> str:
        found = table.get(key, default)
        if not isinstance(found, str) or not found:
            raise InvalidConfig(f"{self.where}: {place}: {key}: a text is needed")
        return found

    def _tables(self, key: str) -> list[dict[str, Any]]:
        found = self.values.get(key, [])
        if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
            raise InvalidConfig(f"{self.where}: at least one [[{key}]] is needed")
        return found

    def sources(self) -> list[Source]:
        """The datasets of the file."""
        found = []
        for number, table in enumerate(self._tables("data"), start=1):
            place = f"[[data]] {number}"
            self._only(table, self.DATA, place)
            required = {key: self.text(table, key, place) for key in ("task", "path")}
            check_url(required["path"])
            optional = {key: self.text(table, key, place) for key in ("build", "metric", "design") if key in table}
            for key, value in (required | optional).items():
                if key not in ("path", "build") and not PART.fullmatch(value):
                    raise InvalidConfig(f"{self.where}: {place}: {key}: letters, digits and _ . : + - only")
            found.append(Source(**required, **optional))
        return found

    def _chosen(self, sources: list[Source], task: str, metric: str | None, design: str | None, place: str) -> Source:
        for source in sources:
            if source.task == task and metric in (None, source.metric) and design in (None, source.design):
                return source
        wanted = ", ".join(part for part in (task, metric, design) if part)
        raise InvalidConfig(f"{self.where}: {place}: no [[data]] for {wanted}")

    def cells(self, seeds: tuple[int, ...]) -> Iterator[Cell]:
        """Seed by seed, so that one seed of everything is there first."""
        from trainer.models.zoo import find_model

        sources = self.sources()
        name = self.text(self.values, "preset", "the file", "cpu")
        common = self._settings(self.values, "the file")
        splits: dict[str, SplitName] = {"validation": "validation", "test": "test"}
        split = splits.get(self.text(self.values, "split", "the file", "test"))
        if not split:
            raise InvalidConfig(f"{self.where}: the file: split: validation or test is needed")
        cells: list[Cell] = []
        for number, table in enumerate(self._tables("grid"), start=1):
            place = f"[[grid]] {number}"
            self._only(table, self.GRID, place)
            tasks = self._list(table, "tasks", str, place, [])
            models = self._list(table, "models", str, place, [])
            flags = self._list(table, "ta", bool, place, [False, True])
            metrics = self._list(table, "metrics", str, place, []) if "metrics" in table else [None]
            designs = self._list(table, "designs", str, place, []) if "designs" in table else [None]
            own = list(dict.fromkeys(seeds)) or self._list(table, "seeds", int, place, self.values.get("seeds", [0]))
            settings = common | self._settings(table, place)
            chosen = self.text(table, "preset", place, name)
            label = self.text(table, "label", place) if "label" in table else ""
            if not all(character.isalnum() or character in " -+." for character in label):
                raise InvalidConfig(f"{self.where}: {place}: label: letters, digits, spaces and - + . only")
            if set(models) <= set(WITHOUT_TA) and False not in flags:
                raise InvalidConfig(f"{self.where}: {place}: {models[0]} has no augmentation: ta = [false] is needed")
            for task, metric, design, model, ta, seed in product(tasks, metrics, designs, models, flags, own):
                if ta and model in WITHOUT_TA:
                    continue
                source = self._chosen(sources, task, metric, design, place)
                cell = Cell(source, model, ta, seed, chosen, settings, label, split)
                try:
                    find_model(model)
                    _ = cell.config  # settings that cannot work are named before anything runs
                except InvalidConfig as error:
                    raise InvalidConfig(f"{self.where}: {place}: {error}") from error
                cells.append(cell)
        yield from sorted(cells, key=lambda cell: cell.seed)

    def _settings(self, table: Mapping[str, Any], place: str) -> dict[str, Any]:
        found = table.get("settings", {})
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise InvalidConfig(f"{self.where}: {place}: settings: a table is needed")
        if taken := sorted({"model", "train_on", "seed"} & set(found)):
            raise InvalidConfig(f"{self.where}: {place}: settings: {taken[0]} is an axis of the grid")
        return found
