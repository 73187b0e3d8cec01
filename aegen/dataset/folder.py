"""A dataset folder: who may write to it, what it holds, when it is finished."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aegen.columns.schemas import SCHEMAS
from aegen.core.description import FileInfo, Provenance
from aegen.core.errors import BadData, Failed, FolderConflict, InvalidSpec
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.core.locks import lock
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.recipe import Recipe, differences
from aegen.dataset.shards import open_shard, read_description_of
from aegen.files.atomic import PART, AtomicFile, remove_abandoned_uploads
from aegen.files.places import Remote, check_regular, file_size, location

CLAIM = ".writing-"  # prefix of the file that marks a storage while a writer works
VISIBLE = 10  # seconds until what a worker wrote must be seen from here


class Folder:
    """A dataset folder, on this machine or behind a URL; reading needs a manifest, writing a lock."""

    def __init__(self, path: Path | Remote | str) -> None:
        self.path = location(path)

    def __truediv__(self, name: str) -> Path | Remote:
        return self.path / name

    @property
    def here(self) -> Path:
        """The path of a folder that is on this machine; an error for any other."""
        if isinstance(self.path, Remote):
            raise InvalidSpec(f"{self.path}: expected a folder on this machine; `aegen pull` brings it here")
        return self.path

    def there(self, config: str) -> list[Path | Remote]:
        """The shards of a config that exist, listed or not, in order."""
        if isinstance(self.path, Remote):
            return [*self.path.glob(f"{config}/*.parquet")]
        return [*sorted(self.path.glob(f"{config}/*.parquet"))]

    @property
    def finished(self) -> bool:
        return (self.path / MANIFEST).is_file()

    def manifest(self) -> Manifest:
        """The manifest of a finished folder."""
        path = self.path / MANIFEST
        try:
            if isinstance(path, Path):
                check_regular(path)
            if file_size(path) > MAX_MANIFEST:
                raise BadData(f"{path}: {file_size(path):,} bytes; expected at most {MAX_MANIFEST:,}")
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if isinstance(self.path, Path) and not self.path.exists():
                raise BadData(f"{self.path}: no such folder") from None
            raise BadData(f"{self.path}: no {MANIFEST}, so this is not a finished dataset") from None
        return Manifest.read(raw, path)

    def check_writable(self) -> None:
        """Find out before the work, not after it, that the folder cannot be made."""
        if isinstance(self.path, Remote):
            self.path.check_writable()  # more is told by its first answer
            return
        parent = self.path
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent
        if not parent.is_dir():
            raise FolderConflict(f"{self.path}: {parent} is not a folder")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise FolderConflict(f"{self.path}: no permission to write to {parent}")
        for config in SCHEMAS:
            if (self.path / config).is_symlink():  # it could lead writes out of the dataset
                raise FolderConflict(f"{self.path / config}: a link; expected a folder")

    @contextmanager
    def writing(self, recipe: Recipe | None = None) -> Iterator[None]:
        """Hold the folder for one writer; what a killed one or a lost worker left aside is removed."""
        with (
            self._claimed(recipe.tree() if recipe else {}) if isinstance(self.path, Remote) else self._locked(self.path)
        ):
            self._remove_parts()
            try:
                yield
            finally:
                self._remove_parts()

    def _remove_parts(self) -> None:
        if isinstance(self.path, Remote):  # it holds whole files only: these are prepared here
            remove_abandoned_uploads()
            return
        for part in [*self.path.glob(f".*{PART}"), *self.path.glob(f"*/.*{PART}")]:
            part.unlink(missing_ok=True)

    @contextmanager
    def _claimed(self, spec: Provenance) -> Iterator[None]:
        """Storages have no locks. Two writers of one spec make the same bytes; of another spec there may be no sign."""
        mine = f"{CLAIM}{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]}"
        with AtomicFile(self / mine) as aside:
            aside.write_text(json.dumps(spec, sort_keys=True), encoding="utf-8")
        try:
            for claim in self.path.glob(f"{CLAIM}*"):
                if claim.name != mine:
                    raise FolderConflict(f"{claim}: another spec is being written; if not, remove this file")
            yield
        finally:
            (self / mine).unlink(missing_ok=True)

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        self.check_writable()
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY)  # the folder itself is the lock: no file is left behind
        try:
            if not lock(descriptor):
                raise FolderConflict(f"{self.path}: another process is writing to it; try again when it is done")
            yield
        finally:
            os.close(descriptor)

    def check_same(self, recipe: Recipe) -> None:
        """Refuse to continue a folder that was made by another recipe; name what differs.

        Only the parts that both have are compared.
        """
        there, asked = self.manifest().recipe.tree() if self.finished else self._unfinished(), recipe.tree()
        if there and ("sources" in there) != ("sources" in asked):
            kinds = ("sources without targets", "pairs") if "sources" in there else ("pairs", "sources without targets")
            raise FolderConflict(f"{self.path} holds {kinds[0]}, not {kinds[1]}")
        both = [part for part in asked if part in there]
        found = differences({part: there[part] for part in both}, {part: asked[part] for part in both})
        if found:
            raise FolderConflict(f"{self.path} holds another dataset: {'; '.join(found)}")

    def _unfinished(self) -> Provenance:
        """The recipe of the shards that an interrupted run left."""
        tree: Provenance = {}
        for config in SCHEMAS:
            for path in self.there(config)[:1]:
                tree.update(read_description_of(path).spec)
        return tree

    def remove_unlisted(self, manifest: Manifest, recipe: Recipe) -> None:
        """Remove shards of another recipe that the manifest does not list: a failed run left them."""
        for config in SCHEMAS:
            wanted = recipe.part(config).tree()
            for path in self.there(config):
                if f"{config}/{path.name}" not in manifest.files and read_description_of(path).spec != wanted:
                    path.unlink()

    def done(self, name: str, recipe: Recipe) -> FileInfo | None:
        """A shard of this recipe that an interrupted run has finished already."""
        path = self.path / name
        if not path.is_file():
            return None
        file, description = open_shard(path)
        if found := differences(description.spec, recipe.tree()):
            file.close()
            raise FolderConflict(f"{path}: {'; '.join(found)}")
        with file:
            return file_info(path, file.metadata.num_rows)

    def check_there(self, name: str, info: FileInfo) -> None:
        """Wait until a shard that a worker wrote is visible here."""
        deadline = time.monotonic() + VISIBLE  # some shared folders are a little late
        while not (self / name).is_file() or file_size(self / name) != info.bytes:
            if time.monotonic() > deadline:
                raise Failed(f"{self / name}: written by a worker, not visible here: use a folder that all share")
            time.sleep(0.2)

    def finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest, which makes the dataset complete."""
        with AtomicFile(self.path / MANIFEST) as aside:
            aside.write_text(manifest.to_json(), encoding="utf-8")
        return manifest
