"""The manifest: the list of a finished dataset's files, and how they were made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import BadData
from aegen.core.format import FORMAT
from aegen.core.json_text import check_format, parse_json
from aegen.core.types import SpecTree
from aegen.dataset.names import shard_order, shard_parts
from aegen.files.places import Remote, file_size

MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 28  # bytes; a million files are about 200 MB
_INFO_TYPES = {"rows": int, "bytes": int, "sha256": str}


@dataclass(frozen=True)
class Manifest:
    """The list of a finished dataset's files; ``spec`` says how each config was made."""

    spec: SpecTree
    files: dict[str, FileInfo]
    capped_pairs: int = 0  # pairs whose shifted states are a sample

    @property
    def configs(self) -> list[str]:
        return [config for config in SCHEMAS if any(name.startswith(f"{config}/") for name in self.files)]

    def shards(self, config: str, split: str | None = None) -> list[str]:
        """Names of the shards of a config, in order."""
        prefix = f"{config}/{split}-" if split else f"{config}/"
        return sorted((name for name in self.files if name.startswith(prefix)), key=shard_order)

    def rows(self, config: str, split: str | None = None) -> int:
        return sum(self.files[name].rows for name in self.shards(config, split))

    def to_json(self) -> str:
        files = {name: asdict(info) for name, info in sorted(self.files.items())}
        record = {"format": FORMAT, "spec": self.spec, "files": files, "capped_pairs": self.capped_pairs}
        return json.dumps(record, indent=1, sort_keys=True) + "\n"


def differences(there: Mapping[str, Any], asked: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs between two nested records, one phrase each.

    >>> differences({"pairs": {"d": 10}}, {"pairs": {"d": 20}})
    ['pairs.d is 10 there, 20 asked']
    """
    found = []
    for key in sorted(set(there) | set(asked)):
        left, right = there.get(key), asked.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            found += differences(left, right, f"{prefix}{key}.")
        elif left != right:
            found.append(f"{prefix}{key} is {left} there, {right} asked")
    return found


def parse_manifest(raw: bytes, where: object) -> Manifest:
    """A manifest from untrusted bytes; its file names cannot lead out of the folder."""
    record = parse_json(raw, where, MAX_MANIFEST)
    check_format(record.get("format"), where)
    spec, files = record.get("spec"), record.get("files")
    parts = [*spec.values()] if isinstance(spec, dict) else [None]
    if not isinstance(spec, dict) or not isinstance(files, dict) or not all(isinstance(part, dict) for part in parts):
        raise BadData(f"{where}: spec, its parts, and files are expected to be objects")
    listed = {}
    for name, info in files.items():
        shard_parts(name)
        if not isinstance(info, dict) or {key: type(entry) for key, entry in info.items()} != _INFO_TYPES:
            raise BadData(f"{where}: {name}: expected rows, bytes and sha256")
        listed[name] = FileInfo(**info)
    capped = record.get("capped_pairs", 0)
    if type(capped) is not int:
        raise BadData(f"{where}: capped_pairs is expected to be a number")
    if "pairs" not in spec:
        raise BadData(f"{where}: spec is expected to say how the pairs were made")
    return Manifest(spec, listed, capped)


@dataclass(frozen=True)
class FileInfo:
    """What the manifest says of one file."""

    rows: int
    bytes: int
    sha256: str


def file_info(path: Path | Remote, rows: int) -> FileInfo:
    """Size and hash of a finished file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return FileInfo(rows, file_size(path), digest.hexdigest())
