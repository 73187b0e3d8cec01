"""A run folder: what was asked for, what came of it, and the checkpoints.

``config.json`` (settings, contract, data hashes, versions) · ``metrics.jsonl`` (a line an epoch) ·
TensorBoard events · ``last.safetensors`` (to go on from) · ``best.safetensors`` (to play with).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from trainer.core.config import Config
from trainer.core.errors import BadData, Failed, FolderConflict, refused
from trainer.data.contract import MAX_JSON, Contract, Fields, check_format, parse_object
from trainer.data.dataset import Dataset
from trainer.data.hub import SCHEME, hub_id
from trainer.models.zoo import find_model
from trainer.training.checkpoint import write, write_json
from trainer.training.demonstrations import hashes

FORMAT = 2
HASH = "sha256"
PACKAGES = ("aegen", "torch", "pyarrow", "numpy", "safetensors")


@dataclass(frozen=True)
class Description:
    """What ``config.json`` says: enough to rebuild the agent, and to find its data again."""

    config: Config
    contract: Contract
    data: dict[str, Any]
    parameters: int
    versions: dict[str, Any]
    knowledge: Any = None  # what the model had to know of the data to be built

    @classmethod
    def make(
        cls, config: Config, contract: Contract, dataset: Dataset, parameters: int, knowledge: Any = None
    ) -> Description:
        """Of a new run."""
        data = {"where": dataset.where, "spec": dataset.spec, "files": hashes(config, contract, dataset)}
        return cls(config, contract, data, parameters, versions(), knowledge)

    @classmethod
    def read(cls, path: Path) -> Description:
        """Of a run folder or a published one."""
        values = read_json(path, f"{path.parent}: no config.json, so no run is there")
        check_format(values, str(path))
        read = Fields(values, str(path))
        config = Config.parse(read.object("config"), str(path))
        contract = Contract.parse(read.object("contract"), str(path))
        described = cls(
            config,
            contract,
            read.object("data"),
            read.number("parameters", 1, 1 << 50),
            read.object("versions"),
            find_model(config.model).parse_knowledge(values.get("knowledge"), contract, str(path)),
        )
        # Last, for what is wrong with a field says more. It is against damage: who means harm writes another.
        if read.text(HASH) != sealed(values, str(path))[HASH]:
            raise BadData(f"{path}: altered: its content is not what its SHA-256 says")
        return described

    @property
    def dataset(self) -> str:
        """Where the data is, if a stranger's file may say it: on the hub, or in a folder that is here."""
        where = self.data.get("where")
        if isinstance(where, str) and (hub_id(where) if where.startswith(SCHEME) else is_folder(where)):
            return where
        raise BadData("the agent does not say where on the hub or in which folder its data is: name it with --data")

    def to_json(self) -> dict[str, Any]:
        """The content of ``config.json``."""
        known = {} if self.knowledge is None else {"knowledge": self.knowledge.to_json()}
        return sealed(
            known
            | {
                "format": FORMAT,
                "library": "aegen",
                "config": self.config.to_json(),
                "contract": self.contract.to_json(),
                "data": self.data,
                "parameters": self.parameters,
                "versions": self.versions,
            }
        )


def sealed(values: dict[str, Any], where: str = "config.json") -> dict[str, Any]:
    """An object with the SHA-256 of all else that it says: one flipped bit of a number is a number too."""
    said = {name: value for name, value in values.items() if name != HASH}
    try:
        json.dumps(said, indent=1, ensure_ascii=False).encode()  # as it is written
        text = json.dumps(said, sort_keys=True)
    except (ValueError, RecursionError) as error:
        raise BadData(f"{where}: nested too deeply, or with half a character") from error
    return said | {HASH: hashlib.sha256(text.encode()).hexdigest()}


def read_json(path: Path, missing: str = "") -> dict[str, Any]:
    """The object in a small file."""
    try:
        with path.open("rb") as file:
            return parse_object(file.read(MAX_JSON + 1), str(path))
    except FileNotFoundError as error:
        raise BadData(missing or f"{path}: missing") from error
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from error


def versions() -> dict[str, Any]:
    """What the numbers of a run may depend on."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue  # run from a checkout
    return found


def is_folder(path: str) -> bool:
    """Whether this is the path of a folder that is there, and no URL."""
    try:
        return bool(path) and "://" not in path and Path(path).is_dir()
    except OSError:  # a name that no folder can have
        return False


class Run:
    """A run folder that one process at a time writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock: int | None = None
        self.made = False  # whether the folder is ours to remove if nothing comes of it

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def hold(self) -> None:
        """Make the folder and keep others out until :meth:`release`."""
        try:
            made = self._make()
            self.lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise refused(error, f"{self.path}: cannot be written") from error
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise FolderConflict(f"{self.path}: another process trains into it") from error
        self.made = made
        for aside in self.path.glob(".*.aside"):  # what a kill may have left; a folder is none of ours
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
        """Let others in; of a run that was refused no empty folder is left."""
        if self.made:
            self.made = False
            with suppress(OSError):  # something is in it
                self.path.rmdir()
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def begin(self, description: Description, resume: bool) -> bool:
        """Describe a new run, or compare with the one that is there; True if there is a checkpoint."""
        path = self.path / "config.json"
        if not path.exists():
            write_json(path, description.to_json())
            return False
        if not resume:
            raise FolderConflict(f"{self.path}: there is a run already; --resume goes on with it, or choose another")
        self.check(description)
        return self.last.exists()

    def check(self, description: Description) -> None:
        """Refuse to go on with other settings or other data."""
        there = Description.read(self.path / "config.json")
        ours, theirs = description.config.to_json(), there.config.to_json()
        for name, setting in ours.items():
            if setting != theirs[name]:
                raise FolderConflict(f"{self.path}: its run has {name} {theirs[name]!r}, not {setting!r}")
        if there.data.get("files") != description.data["files"] or there.contract != description.contract:
            raise FolderConflict(f"{self.path}: its run was trained on another dataset ({there.data.get('where')})")

    def keep_metrics(self, epochs: int) -> None:
        """Drop the lines of epochs that will be trained again, and half a line that a kill may have left."""
        kept = [line for line in self.read_metrics() if line["epoch"] < epochs]
        write(self.metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def add_metrics(self, line: dict[str, Any]) -> None:
        """One line for one epoch."""
        try:
            with self.metrics.open("a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise Failed(f"{self.metrics}: cannot be written: {error.strerror}") from error

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
