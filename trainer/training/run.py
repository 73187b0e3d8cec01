"""A run folder: its description, its metrics, and its checkpoints.

``config.json`` (settings, contract, data hashes, versions) · ``metrics.jsonl`` (a line per epoch) ·
TensorBoard events · ``last.safetensors`` (to resume from) · ``best.safetensors`` (to play with). An evaluation adds
``evaluation-SPLIT.json`` (accuracies) and ``outcomes-SPLIT.json`` (game by game).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import torch
from msgspec import Meta, Struct

from trainer.core.config import Config
from trainer.core.errors import BadData, Failed, FolderConflict, refused
from trainer.core.files import read, write, write_json
from trainer.core.format import VERSION, SplitName
from trainer.core.locks import lock
from trainer.core.records import convert, decode, plain
from trainer.data.contract import Contract
from trainer.data.demonstrations import Demonstrations
from trainer.data.hub import SCHEME, HubFiles, hub_id
from trainer.data.places import check_url
from trainer.models.planner.model import Planner
from trainer.models.planner.recipe import Stage
from trainer.models.policy import Knowledge
from trainer.models.zoo import find_model, make_model

CONFIG, LAST, BEST = "config.json", "last.safetensors", "best.safetensors"
PUBLISHED = "model.safetensors"  # the best weights, beside their config and card
HASH = "sha256"
LONGER = (
    ": a run cannot be made longer, because its learning rates, validations and last epoch depend on the number of"
    " updates; train in another folder"
)
PACKAGES = ("aegen-trainer", "torch", "pyarrow", "numpy", "safetensors")


class ConfigFile(Struct):
    """The fields of ``config.json``, before the config, the contract and the knowledge are read."""

    config: dict[str, Any]
    contract: dict[str, Any]
    data: dict[str, Any]
    parameters: Annotated[int, Meta(ge=1, le=1 << 50)]
    versions: dict[str, Any]
    sha256: str
    knowledge: Any = None
    practice: dict[str, Any] | None = None
    recipe: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Description:
    """What ``config.json`` says: enough to rebuild the agent, and to find its data again."""

    config: Config
    contract: Contract
    data: dict[str, Any]
    parameters: int
    versions: dict[str, Any]
    knowledge: Knowledge | None = None  # what the model must know of the data to be built
    practice: dict[str, Any] | None = None  # how it practised; None: it has only imitated
    recipe: tuple[Stage, ...] = ()  # the stages of a model with a recipe of its own

    @classmethod
    def make(
        cls,
        config: Config,
        data: Demonstrations,
        parameters: int,
        knowledge: Knowledge | None,
        practice: dict[str, Any] | None = None,
    ) -> Description:
        """Of a new run."""
        source = {"where": data.dataset.where, "spec": data.dataset.spec, "files": data.hashes}
        recipe = stages(config, data.contract, knowledge)
        return cls(config, data.contract, source, parameters, versions(), knowledge, practice, recipe)

    @classmethod
    def read(cls, path: Path) -> Description:
        """Of a run folder or a published one."""
        values, where = read_json(path, f"{path.parent}: not a run folder: no {CONFIG}"), str(path)
        check_version(values.get("format"), where)
        record = convert(values, ConfigFile, where)
        config = Config.parse(record.config, where)
        model = find_model(config.model)
        contract = model.contract_type.parse(record.contract, where)
        knowledge = model.read_knowledge(record.knowledge, contract, where)
        # Last, because an error in a field says more. The hash is against damage, not against an attacker.
        if record.sha256 != sealed(values)[HASH]:
            raise BadData(f"{path}: altered: the content does not match its SHA-256")
        facts = record.data, record.parameters, record.versions, knowledge, record.practice, record.recipe
        return cls(config, contract, *facts)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decided what the run computed, without those that its model does not read."""
        return find_model(self.config.model).read_settings(self.config)

    @property
    def sources(self) -> dict[str, str]:
        """SHA-256 of the shards of sources without targets that it practised on."""
        return convert((self.practice or {}).get("sources", {}), dict[str, str], "practice")

    @property
    def dataset(self) -> str:
        """Where the data is: on the hub, or in a folder of this machine; a URL in an untrusted file is not followed."""
        where = self.data.get("where")
        if isinstance(where, str) and (hub_id(where) if where.startswith(SCHEME) else is_folder(where)):
            return where
        raise BadData("the dataset of this agent is neither on the hub nor in a folder of this machine; use --data")

    def to_json(self) -> dict[str, Any]:
        """The content of ``config.json``."""
        known = {} if self.knowledge is None else {"knowledge": plain(self.knowledge)}
        known |= {} if self.practice is None else {"practice": self.practice}
        recipe = {"recipe": plain(self.recipe)} if self.recipe else {}
        return sealed(
            known
            | recipe
            | {
                "format": VERSION,
                "config": self.settings,
                "contract": self.contract.to_json(),
                "data": self.data,
                "parameters": self.parameters,
                "versions": self.versions,
            }
        )


def stages(config: Config, contract: Contract, knowledge: Knowledge | None) -> tuple[Stage, ...]:
    """How the networks of a model with a recipe of its own are trained, one after the other; else nothing."""
    with torch.device("meta"):
        model = make_model(config, contract, knowledge)
    if not isinstance(model, Planner):
        return ()
    updates = model.stage_updates(config)
    return tuple(replace(stage, updates=n) for stage, n in zip(model.recipe.stages, updates, strict=True))


def check_version(version: object, where: str) -> None:
    """Refuse a run of another version of the format."""
    if version != VERSION or isinstance(version, bool):
        advice = "update the package" if isinstance(version, int) and version > VERSION else "train the agent again"
        raise BadData(f"{where}: format {str(version)[:20]}, this version reads format {VERSION}: {advice}")


def sealed(values: dict[str, Any]) -> dict[str, Any]:
    """An object with the SHA-256 of its other fields: a flipped bit of a number cannot be noticed otherwise."""
    rest = {name: value for name, value in values.items() if name != HASH}
    return rest | {HASH: hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def read_json(path: Path, missing: str = "") -> dict[str, Any]:
    """The JSON object in a small file."""
    return decode(read(path, missing), dict[str, Any], path)


def versions() -> dict[str, Any]:
    """Versions that the numbers of a run may depend on."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue  # not installed: run from a checkout
    return found


def is_folder(path: str) -> bool:
    """Whether this is the path of an existing folder, not a URL."""
    try:
        return bool(path) and "://" not in path and Path(path).is_dir()
    except OSError:  # not a valid file name
        return False


def find_folder(where: str) -> Path:
    """The local folder of a run, downloaded from the hub where it is a hub id."""
    path = Path(where)
    if path.is_dir():
        return path
    check_url(where)
    name = hub_id(where)
    if not name:
        raise BadData(f"{where}: no such run folder")
    files = HubFiles(where, name, "model")
    try:
        files.fetch(CONFIG)
        return files.fetch(PUBLISHED).parent
    except FileNotFoundError as error:
        raise BadData(f"{error}: not a published agent") from None


class RunFolder:
    """The files of a run; one process at a time writes to them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock: int | None = None
        self.made = False  # whether to remove the folder if the run does not start

    @property
    def config(self) -> Path:
        return self.path / CONFIG

    @property
    def last(self) -> Path:
        return self.path / LAST

    @property
    def best(self) -> Path:
        return self.path / BEST

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def evaluation(self, split: SplitName) -> Path:
        """The accuracies on a split, if the run was evaluated on it."""
        return self.path / f"evaluation-{split}.json"

    def outcomes(self, split: SplitName) -> Path:
        """How each game of that evaluation went."""
        return self.path / f"outcomes-{split}.json"

    def hold(self) -> None:
        """Make the folder and lock it until :meth:`release`."""
        try:
            made = self._make()
            self.lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise refused(error, f"{self.path}: cannot write") from error
        if not lock(self.lock):
            self.release()
            raise FolderConflict(f"{self.path}: in use by another process")
        self.made = made
        for aside in self.path.glob(".*.aside"):  # left by a killed process
            if not aside.is_dir():
                aside.unlink(missing_ok=True)

    def _make(self) -> bool:
        """Whether the folder had to be made."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            return False
        return True

    def release(self) -> None:
        """Unlock; the empty folder of a run that did not start is removed."""
        if self.made:
            self.made = False
            with suppress(OSError):  # not empty
                self.path.rmdir()
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def begin(self, description: Description, resume: bool) -> bool:
        """Describe a new run, or compare with the existing one; True if there is a checkpoint."""
        if not self.config.exists():
            write_json(self.config, description.to_json())
            return False
        if not resume:
            how = "continue it with --resume (in Python resume=True), or use another folder"
            raise FolderConflict(f"{self.path}: already contains a run; {how}")
        self.check(description)
        return self.last.exists()

    def check(self, description: Description) -> None:
        """Refuse to resume with other settings or other data."""
        existing = Description.read(self.config)
        ours, theirs = description.settings, existing.settings
        ours, theirs = ours | (description.practice or {}), theirs | (existing.practice or {})
        if (description.practice is None) != (existing.practice is None):
            kinds = ("practised", "imitated") if existing.practice else ("imitated", "practised")
            raise FolderConflict(f"{self.path}: contains an agent that {kinds[0]}, not one that {kinds[1]}")
        for name in [*description.config.to_json(), *(description.practice or ())]:
            if ours.get(name) != theirs.get(name):
                said = f"{name}: existing value {theirs.get(name)!r}, requested {ours.get(name)!r}"
                raise FolderConflict(f"{self.path}: {said}" + (LONGER if name == "updates" else ""))
        if existing.recipe != description.recipe:
            raise FolderConflict(f"{self.path}: trained by another recipe, of another version; use another folder")
        if existing.data.get("files") != description.data["files"] or existing.contract != description.contract:
            raise FolderConflict(f"{self.path}: trained on another dataset ({existing.data.get('where')})")

    def keep_metrics(self, epochs: int) -> None:
        """Drop the lines of epochs that will be trained again, and a partial line left by a killed process."""
        kept = [line for line in self.read_metrics() if line["epoch"] < epochs]
        write(self.metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def add_metrics(self, line: dict[str, Any]) -> None:
        """One line for one epoch."""
        try:
            with self.metrics.open("a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise Failed(f"{self.metrics}: cannot write: {error.strerror}") from error

    def read_metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``."""
        try:
            content = self.metrics.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadData(f"{self.metrics}: {error.strerror}") from error
        lines = []
        for text in content.splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                break
            if not isinstance(line, dict) or not isinstance(line.get("epoch"), int):
                break
            lines.append(line)
        return lines
