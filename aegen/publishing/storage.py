"""A folder or any storage that fsspec reaches: shards and card first, the manifest last."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

from aegen.card.render import CARD, MARK
from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import AegenError, BadData, Failed, NoAccess
from aegen.core.format import MANIFEST, MAX_MANIFEST
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.files.atomic import Aside
from aegen.files.places import check_regular, file_system, location, short


@dataclass(frozen=True)
class Place:
    """Where a dataset lies or shall lie."""

    url: str
    files: Any
    root: str

    @classmethod
    def open(cls, url: str) -> Place:
        """The file system of a URL or path."""
        files, root = file_system(url)
        files.invalidate_cache()
        return cls(url, files, root)

    @property
    def local(self) -> bool:
        """Whether this is a folder of this machine."""
        return "file" in self.files.protocol

    def is_folder(self, path: Path) -> bool:
        """Whether this place is that folder."""
        return self.local and Path(self.root).resolve() == path.resolve()

    def read(self, name: str) -> BinaryIO:
        """Open one file."""
        place = location(self.url)
        if isinstance(place, Path):
            check_regular(place / name)
        return (place / name).open("rb")

    def content(self, name: str) -> bytes | None:
        """One small file, if it is there; of a larger one no more than shows that it is."""
        try:
            with self.read(name) as file:
                return file.read(MAX_MANIFEST + 1)
        except FileNotFoundError:
            return None

    def manifest(self) -> Manifest | None:
        """Of the finished dataset that lies there."""
        raw = self.content(MANIFEST)
        return None if raw is None else Manifest.read(raw, f"{self.url}/{MANIFEST}")

    def writing(self) -> AbstractContextManager[None]:
        """Hold a folder for one writer and rid it of what a killed one left; storages have no locks."""
        return Folder(Path(self.root)).writing() if self.local else nullcontext()

    def foreign(self, manifest: Manifest) -> str | None:
        """Where no manifest is: the first file that would be replaced or removed and is not of this dataset."""
        page = self.content(CARD)
        if page is not None and MARK not in page.decode(errors="replace"):
            return CARD
        with suppress(BadData):  # what cannot be read is nobody's work
            Folder(self.url).check_same(manifest.recipe)  # that of an unfinished build is
        with self._explained():
            return next(iter(self._unlisted(manifest, [])), None)

    def send(
        self, folder: Folder, files: list[str], stale: list[str], manifest: Manifest, there: Manifest | None
    ) -> bool:
        """Make the place hold these files, the last one being the manifest. Whether anything had to be done.

        The caller holds the place.
        """
        try:
            with self._explained():
                missing = [name for name in files if not self._has(folder, name, manifest, there)]
                superfluous = self._unlisted(manifest, stale)
                if not missing and not superfluous:
                    return False
                if any(name == MANIFEST or name in manifest.files for name in missing):
                    if self.files.exists(f"{self.root}/{MANIFEST}"):  # until everything is there, nothing is finished
                        self.files.rm_file(f"{self.root}/{MANIFEST}")
                    missing = [*(name for name in missing if name != MANIFEST), MANIFEST]
                for name in superfluous:
                    self.files.rm_file(f"{self.root}/{name}")
                for name in missing:
                    self._put(folder.here / name, f"{self.root}/{name}")
        except FileNotFoundError as error:
            raise NoAccess(f"{self.url}: no such place ({short(error)})") from None
        return True

    def _put(self, file: Path, path: str) -> None:
        """Send one file; under its name it is there whole or not at all."""
        if not self.local:
            self.files.put_file(str(file), path)
            return
        with Aside(Path(path)) as aside:
            shutil.copyfile(file, aside)

    def _has(self, folder: Folder, name: str, manifest: Manifest, there: Manifest | None) -> bool:
        if name not in manifest.files:
            return self.content(name) == (folder / name).read_bytes()
        path, wanted = f"{self.root}/{name}", manifest.files[name]
        if not self.files.exists(path) or self.files.size(path) != wanted.bytes:
            return False
        if self.local:  # to read it costs little, and a disk that lost a bit kept the size
            return file_info(Path(path), wanted.rows) == wanted
        return there is not None and there.files.get(name) == wanted

    def _unlisted(self, manifest: Manifest, stale: list[str]) -> list[str]:
        found = [name for name in stale if self.files.exists(f"{self.root}/{name}")]
        for config in SCHEMAS:
            names = (
                f"{config}/{path.rpartition('/')[2]}"
                for path in self.files.glob(f"{escape(self.root)}/{config}/*.parquet")
            )
            found += [name for name in names if name not in manifest.files]
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Every storage has errors of its own; the command line knows those of this machine's files."""
        try:
            yield
        except (AegenError, FileNotFoundError):
            raise
        except PermissionError as error:
            raise NoAccess(f"{self.url}: no access ({short(error)})") from None
        except Exception as error:
            if self.local and isinstance(error, OSError):
                raise
            raise Failed(f"{self.url}: {short(error)}") from None
