"""The manifest: the list of a finished dataset's files, and how they were made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from aegen.core.description import FileInfo, ManifestRecord, read_manifest
from aegen.core.format import COLUMNS
from aegen.dataset.names import check_split, shard_order
from aegen.dataset.recipe import Recipe
from aegen.files.places import Remote, file_size


@dataclass(frozen=True)
class Manifest:
    """The list of a finished dataset's files, and the recipe they were made by."""

    recipe: Recipe
    files: dict[str, FileInfo]
    capped_pairs: int = 0  # pairs whose shifted states are a sample

    @classmethod
    def read(cls, raw: bytes, where: object) -> Manifest:
        """A manifest from untrusted bytes."""
        record = read_manifest(raw, where)
        return cls(Recipe.read(record.spec, where), record.files, record.capped_pairs)

    @property
    def configs(self) -> list[str]:
        return [config for config in COLUMNS if any(name.startswith(f"{config}/") for name in self.files)]

    def shards(self, config: str, split: str | None = None) -> list[str]:
        """Names of the shards of a config, in order."""
        if split is not None:
            check_split(split)
        prefix = f"{config}/" if split is None else f"{config}/{split}-"
        return sorted((name for name in self.files if name.startswith(prefix)), key=shard_order)

    def rows(self, config: str, split: str | None = None) -> int:
        return sum(self.files[name].rows for name in self.shards(config, split))

    @property
    def total_rows(self) -> int:
        """Rows of all configs."""
        return sum(info.rows for info in self.files.values())

    def to_json(self) -> str:
        record = ManifestRecord(spec=self.recipe.tree(), files=self.files, capped_pairs=self.capped_pairs)
        return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=1).decode() + "\n"


def file_info(path: Path | Remote, rows: int) -> FileInfo:
    """Size and hash of a finished file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return FileInfo(rows, file_size(path), digest.hexdigest())
