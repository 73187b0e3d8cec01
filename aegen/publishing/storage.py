"""Publishing to a folder or an object store, and reading from it: shards and card first, the manifest last."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aegen.card.companions import CARD, MARK
from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import BadData, NoAccess
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.files.atomic import AtomicFile
from aegen.files.places import Remote, check_regular, file_size, short


@dataclass(frozen=True)
class Storage:
    """A folder or URL that holds, or will hold, a published dataset."""

    url: str
    folder: Folder

    @classmethod
    def open(cls, url: str) -> Storage:
        return cls(url, Folder(url))

    @property
    def local(self) -> bool:
        return isinstance(self.folder.path, Path)

    def is_folder(self, path: Path) -> bool:
        """Whether this is that folder of this machine."""
        return isinstance(self.folder.path, Path) and self.folder.path.resolve() == path.resolve()

    def read(self, name: str) -> BinaryIO:
        """Open one file."""
        path = self.folder / name
        if isinstance(path, Path):
            check_regular(path)
        return path.open("rb")

    def content(self, name: str) -> bytes | None:
        """One small file, if it exists; a larger one is cut."""
        try:
            with self.read(name) as file:
                return file.read(MAX_MANIFEST + 1)
        except FileNotFoundError:
            return None

    def manifest(self) -> Manifest | None:
        """Of the finished dataset there, if there is one."""
        raw = self.content(MANIFEST)
        return None if raw is None else Manifest.read(raw, f"{self.url}/{MANIFEST}")

    def writing(self) -> AbstractContextManager[None]:
        """Lock a folder and remove partial files of a killed writer; object stores have no locks."""
        return self.folder.writing() if self.local else nullcontext()

    def foreign(self, manifest: Manifest) -> str | None:
        """Without a manifest there: the first file that would be replaced or removed and is not of this dataset."""
        page = self.content(CARD)
        if page is not None and MARK not in page.decode(errors="replace"):
            return CARD
        with suppress(BadData):  # unreadable files belong to no dataset
            self.folder.check_same(manifest.recipe)  # shards of an unfinished build of it may be replaced
        return next(iter(self._unlisted(manifest, [])), None)

    def send(
        self, folder: Folder, files: list[str], stale: list[str], manifest: Manifest, there: Manifest | None
    ) -> bool:
        """Make the storage hold these files, of which the manifest is the last; returns whether anything changed.

        The caller holds the lock.
        """
        try:
            missing = [name for name in files if not self._has(folder, name, manifest, there)]
            superfluous = self._unlisted(manifest, stale)
            if not missing and not superfluous:
                return False
            if any(name == MANIFEST or name in manifest.files for name in missing):
                (self.folder / MANIFEST).unlink(missing_ok=True)  # not finished until everything has arrived
                missing = [*(name for name in missing if name != MANIFEST), MANIFEST]
            for name in superfluous:
                (self.folder / name).unlink()
            for name in missing:
                self._put(folder.here / name, self.folder / name)
        except FileNotFoundError as error:
            raise NoAccess(f"{self.url}: no such place ({short(error)})") from None
        return True

    def _put(self, file: Path, to: Path | Remote) -> None:
        """Send one file, which appears whole or not at all."""
        if isinstance(to, Remote):
            to.put(file)
            return
        with AtomicFile(to) as partial:
            shutil.copyfile(file, partial)

    def _has(self, folder: Folder, name: str, manifest: Manifest, there: Manifest | None) -> bool:
        if name not in manifest.files:
            return self.content(name) == (folder / name).read_bytes()
        path, wanted = self.folder / name, manifest.files[name]
        if not path.exists() or file_size(path) != wanted.bytes:
            return False
        if isinstance(path, Path):  # reading it is cheap, and finds bit rot
            return file_info(path, wanted.rows) == wanted
        return there is not None and there.files.get(name) == wanted

    def _unlisted(self, manifest: Manifest, stale: list[str]) -> list[str]:
        found = [name for name in stale if (self.folder / name).exists()]
        shards = [f"{config}/{path.name}" for config in SCHEMAS for path in self.folder.there(config)]
        return found + [name for name in shards if name not in manifest.files]
