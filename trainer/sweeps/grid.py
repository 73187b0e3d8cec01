"""A sweep as a small TOML or YAML file: its cells, what each trains on, and where its run goes.

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

A dataset names its ``metric``, ``design`` and ``size`` where there is a choice; a grid selects them with ``metrics``,
``designs`` and ``sizes``, and otherwise uses the first dataset of each task. The size, a word like ``n200``, goes into
the label of the cells. A ``path`` is a folder or a URL; a hub id needs its scheme: ``hf://org/name``. ``[settings]``
changes the preset for all cells whose model reads them, ``settings`` of a dataset or a grid for its own cells, the
grid's last; a ``label`` tells cells apart that differ only in settings. ``split`` is the split that the cells are
evaluated on: use ``validation`` for ablations. ``variants = true`` trains on variants, more sources of every target,
under the label "variants". ``[grid.practise]`` lets the agent of the same cell without a label practise (``sources``,
with the command that builds them, ``rounds``, ``samples``, ``updates``, ``corrections``); such a grid needs a label.
YAML files have the same keys.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from trainer.core.config import MOST_UPDATES, ROUNDS, SAMPLES, Config, Times
from trainer.core.errors import InvalidConfig, one_line
from trainer.core.files import read
from trainer.core.format import MANIFEST
from trainer.core.records import convert
from trainer.data.hub import HUB_ID, SCHEME
from trainer.data.places import check_url
from trainer.sweeps.result import Count, Setting
from trainer.training.presets import preset

MAX_FILE = 1 << 20
AXES = ("model", "train_on", "seed")  # settings that the grid itself decides

Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.:+-]*\Z")]  # part of a folder name
OptionalName = Annotated[str, Meta(pattern=r"\A([A-Za-z0-9][A-Za-z0-9_.:+-]*)?\Z")]
Label = Annotated[str, Meta(pattern=r"\A([^\W_]|[ .+-])*\Z")]
Names = Annotated[tuple[Text, ...], Meta(min_length=1)]
Seeds = Annotated[tuple[Count, ...], Meta(min_length=1)]
Flags = Annotated[tuple[bool, ...], Meta(min_length=1)]


class Settings(Struct, frozen=True):
    """What a whole file, each of its datasets and each of its grids may set."""

    settings: dict[str, Setting] = {}

    def __post_init__(self) -> None:
        if taken := next((name for name in AXES if name in self.settings), None):
            raise ValueError(f"settings: {taken} is an axis of the grid")


class SweepDataset(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset that cells train on, and the command that builds it: ``[[data]]``."""

    task: Name
    path: Text
    build: str = ""
    metric: OptionalName = ""
    design: OptionalName = ""
    size: OptionalName = ""

    @property
    def name(self) -> str:
        """For folders: ``aes``, ``aes-levenshtein-edit``."""
        return "-".join(part for part in (self.task, self.metric, self.design) if part)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder and not a URL; ``org/name`` is a folder, ``hf://org/name`` a hub id."""
        return "://" not in self.path

    @property
    def how_to_get(self) -> str:
        """What to do where it is missing: the end of an error message."""
        if self.build:
            return f"; build it with: {self.build}"
        return f"; if it is on the hub, write {SCHEME}{self.path}" if HUB_ID.fullmatch(self.path) else ""

    @property
    def is_built(self) -> bool:
        """Whether it is a finished dataset folder."""
        return self.is_local and Path(self.path, MANIFEST).is_file()

    def offers(self, task: str, metric: str | None, design: str | None, size: str | None) -> bool:
        """Whether a grid that selects these trains on it."""
        wanted = ((metric, self.metric), (design, self.design), (size, self.size))
        return task == self.task and all(one in (None, own) for one, own in wanted)


class Practising(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the agents of a grid practise: ``[grid.practise]``."""

    sources: str = ""  # a dataset of sources without targets
    build: str = ""  # the command that makes it
    rounds: Times = ROUNDS
    samples: Times = SAMPLES
    updates: Annotated[int, Meta(ge=0, le=MOST_UPDATES)] = 0  # of a round; 0: by the number of sources
    corrections: bool = True

    @property
    def settings(self) -> dict[str, Setting]:
        """What decides the practice."""
        names = ("sources", "rounds", "samples", "updates", "corrections")
        return {name: getattr(self, name) for name in names}

    def options(self) -> list[str]:
        """The same for a command line, without what is the default."""
        words = ["--sources", self.sources] if self.sources else []
        words += [] if self.rounds == ROUNDS else ["--rounds", str(self.rounds)]
        words += [] if self.samples == SAMPLES else ["--samples", str(self.samples)]
        words += ["--updates", str(self.updates)] if self.updates else []
        return words + ([] if self.corrections else ["--no-corrections"])


class Grid(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every combination of some axes: ``[[grid]]``."""

    tasks: Names
    models: Names
    ta: Flags = (False, True)
    metrics: Names | None = None
    designs: Names | None = None
    sizes: Names | None = None
    seeds: Seeds | None = None
    preset: Text | None = None
    label: Label = ""
    variants: bool = False
    practise: Practising | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.practise and not self.label:
            raise ValueError("practise: requires a label; the cell that it begins with has none")
        if self.variants and True in self.ta:
            raise ValueError("variants: they are not augmented; set ta = [false]")


class SweepFile(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a sweep file."""

    title: str = ""
    out: str = ""
    preset: Text = "cpu"
    seeds: Seeds = (0,)
    split: Literal["validation", "test"] = "test"
    data: Annotated[tuple[SweepDataset, ...], Meta(min_length=1)]
    grid: Annotated[tuple[Grid, ...], Meta(min_length=1)]


class GridCell(Struct, frozen=True):
    """One model, one dataset, one seed."""

    dataset: SweepDataset
    model: str
    ta: bool
    seed: int
    preset: str
    settings: dict[str, Setting] = {}
    label: str = ""
    split: Literal["validation", "test"] = "test"
    variants: bool = False
    practise: Practising | None = None

    @property
    def start(self) -> GridCell:
        """The cell whose run it begins with: itself, unless it practises."""
        return replace(self, label=labelled(self.dataset, self.variants), practise=None) if self.practise else self

    @property
    def free(self) -> SweepDataset | None:
        """The sources without targets that it practises on."""
        if not self.practise or not self.practise.sources:
            return None
        return SweepDataset(task=self.dataset.task, path=self.practise.sources, build=self.practise.build)

    @property
    def name(self) -> str:
        """Its folder below that of the sweep."""
        label = f",{self.label.replace(' ', '-')}" if self.label else ""
        return f"{self.dataset.name}/{self.model}{'+ta' if self.ta else ''}{label}/seed-{self.seed}"

    @property
    def axes(self) -> dict[str, Any]:
        """The settings that the grid decides."""
        train_on = "variants" if self.variants else "augmented" if self.ta else "expert"
        return {"model": self.model, "train_on": train_on, "seed": self.seed}

    @property
    def config(self) -> Config:
        """Everything that decides what the cell computes."""
        return preset(self.preset, **self.settings, **self.axes)

    def commands(self, out: Path) -> list[str]:
        """The commands that run the same cell by hand."""
        options = [word for key, value in (self.axes | self.settings).items() for word in as_option(key, value)]
        run, path = str(out / self.name), self.dataset.path
        split = [] if self.split == "test" else ["--split", self.split]
        fit = ["trainer", "fit", path, "--preset", self.preset, *options, "--out", run]
        # A run records a folder or a hub id, but no other URL.
        data = [] if self.dataset.is_local or path.startswith(SCHEME) else ["--data", path]
        evaluate = shlex.join(["trainer", "evaluate", run, *data, *split])
        if self.practise:
            begun = self.start.commands(out)[0]
            words = ["practise", str(out / self.start.name), *data, *self.practise.options(), "--out", run]
            return [begun, shlex.join(["trainer", *words]), evaluate]
        return [shlex.join(fit), evaluate]


def labelled(dataset: SweepDataset, variants: bool, own: str = "") -> str:
    """The label of a cell: the size of its data, then what the grid calls it.

    >>> data = SweepDataset(task="aor", path="data/aor", size="n20")
    >>> labelled(data, False), labelled(data, True), labelled(data, True, "practised")
    ('n20', 'n20 variants', 'n20 practised')
    """
    return " ".join(part for part in (dataset.size, own or ("variants" if variants else "")) if part)


def as_option(name: str, value: Setting) -> list[str]:
    """A setting as it is written on the command line.

    >>> as_option("train_on", "expert"), as_option("stream", True), as_option("confidence", False)
    (['--train-on', 'expert'], ['--stream'], ['--no-confidence'])
    """
    option = name.replace("_", "-")
    if not isinstance(value, bool):
        return [f"--{option}", str(value)]
    if value:
        return [f"--{option}"]
    return [f"--no-{option}"] if getattr(Config(), name, False) else []  # only what is on by default can be turned off


class Sweep(Struct, frozen=True):
    """All cells of a file, in the order in which they run."""

    title: str
    out: Path
    cells: tuple[GridCell, ...]

    def only(self, words: tuple[str, ...]) -> Sweep:
        """The cells that have any of the words in their name; without words all cells."""
        if not words:
            return self
        if missed := next((word for word in words if not any(word in cell.name for cell in self.cells)), None):
            raise InvalidConfig(f"no cell has {missed!r} in its name; --plan lists them")
        return replace(self, cells=tuple(cell for cell in self.cells if any(word in cell.name for word in words)))

    def missing(self) -> list[SweepDataset]:
        """The datasets that have to be built first, in this order."""
        used = (dataset for cell in self.cells for dataset in (cell.dataset, cell.free) if dataset)
        found = {dataset.path: dataset for dataset in used}
        return [dataset for dataset in found.values() if dataset.is_local and not dataset.is_built]


def read_sweep(path: Path, out: Path | None = None, seeds: tuple[int, ...] = (), preset_name: str = "") -> Sweep:
    """The sweep of a file. ``seeds`` replaces all seeds; ``preset_name`` replaces the file's preset, not a grid's."""
    values = read_values(path)
    file = convert(values | ({"preset": preset_name} if preset_name else {}), SweepFile, path)
    for place in (*(dataset.path for dataset in file.data), *(g.practise.sources for g in file.grid if g.practise)):
        check_url(place)
    cells: list[GridCell] = []
    for number, grid in enumerate(file.grid):
        try:
            cells += expand(file, grid, seeds)
        except InvalidConfig as error:
            raise InvalidConfig(f"{path}: grid[{number}]: {error}") from error
    names = [cell.name for cell in cells]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidConfig(f"{path}: duplicate cell: {repeated[0]}")
    cells.sort(key=lambda cell: cell.seed)  # one seed of everything comes first
    return Sweep(file.title or path.stem, out or Path(file.out or f"runs/{path.stem}"), tuple(cells))


def expand(file: SweepFile, grid: Grid, seeds: tuple[int, ...]) -> Iterator[GridCell]:
    """The cells of one grid; a model without augmentation has only cells without it."""
    from trainer.models.zoo import find_model

    models = {name: find_model(name) for name in grid.models}
    if not any(model.augmentable for model in models.values()) and False not in grid.ta:
        raise InvalidConfig(f"{grid.models[0]} cannot be augmented: set ta = [false]")
    if unread := [name for name in grid.settings if all(name in model.unread for model in models.values())]:
        raise InvalidConfig(f"settings: {unread[0]}: {', '.join(models)} do not read it")
    chosen = tuple(dict.fromkeys(seeds)) or grid.seeds or file.seeds
    data = product(grid.tasks, grid.metrics or (None,), grid.designs or (None,), grid.sizes or (None,))
    for (task, metric, design, size), model, ta, seed in product(data, grid.models, grid.ta, chosen):
        if ta and not models[model].augmentable:
            continue
        dataset = next((dataset for dataset in file.data if dataset.offers(task, metric, design, size)), None)
        if dataset is None:
            raise InvalidConfig(f"no [[data]] for {', '.join(part for part in (task, metric, design, size) if part)}")
        settings = file.settings | dataset.settings | grid.settings
        own = {name: value for name, value in settings.items() if name not in models[model].unread}
        label = labelled(dataset, grid.variants, grid.label)
        given = (grid.preset or file.preset, own, label, file.split, grid.variants, grid.practise)
        cell = GridCell(dataset, model, ta, seed, *given)
        _ = cell.config  # invalid settings are reported before anything runs
        yield cell


def read_values(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or of a YAML file (``.yaml``, ``.yml``), which is loaded without Python objects."""
    content = read(path, most=MAX_FILE)
    if len(content) > MAX_FILE:
        raise InvalidConfig(f"{path}: larger than {MAX_FILE:,} bytes")
    try:
        text = content.decode()
        return _parse_yaml(text, path) if path.suffix in (".yaml", ".yml") else tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path}: not valid UTF-8: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfig(f"{path}: not valid TOML: {error}") from error


def _parse_yaml(text: str, path: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path}: not valid YAML: {one_line(error)}") from error
    if not isinstance(values, dict):
        raise InvalidConfig(f"{path}: expected a mapping, got {type(values).__name__}")
    return values
