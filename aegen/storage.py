"""A folder or any storage that fsspec reaches: shards and card first, the manifest last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from aegen.card import CARD, MARK
from aegen.errors import AegenError, Failed, FolderConflict, InvalidSpec, MissingExtra
from aegen.folder import MANIFEST, Folder, Manifest, parse_manifest
from aegen.shards import SCHEMAS


@dataclass(frozen=True)
class Place:
    """Where a dataset lies or shall lie."""

    url: str
    files: Any
    root: str

    @classmethod
    def open(cls, url: str) -> Place:
        """The file system of a URL or path."""
        try:
            import fsspec
        except ImportError:
            raise MissingExtra.of("fsspec", "hub") from None
        try:
            files, root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise InvalidSpec(f"{url}: {error}") from None
        files.invalidate_cache()
        return cls(url, files, root.rstrip("/"))

    def is_folder(self, path: Path) -> bool:
        """Whether this place is that folder."""
        return "file" in _protocols(self.files) and Path(self.root).resolve() == path.resolve()

    def read(self, name: str) -> BinaryIO:
        """Open one file."""
        with self._explained():
            file: BinaryIO = self.files.open(f"{self.root}/{name}", "rb")
            return file

    def _content(self, name: str) -> bytes | None:
        try:
            with self.read(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def manifest(self) -> Manifest | None:
        """Of the finished dataset that lies there."""
        raw = self._content(MANIFEST)
        return None if raw is None else parse_manifest(raw, f"{self.url}/{MANIFEST}")

    def send(
        self, folder: Folder, files: list[str], stale: list[str], manifest: Manifest, there: Manifest | None
    ) -> bool:
        """Make the place hold these files, the last one being the manifest. Whether anything had to be done."""
        page = self._content(CARD)
        if page is not None and there is None and MARK not in page.decode(errors="replace"):
            raise FolderConflict(f"{self.url}/{CARD}: not a card that aegen rendered; move it away first")
        with self._explained():
            missing = [name for name in files if not self._has(folder, name, manifest, there)]
            superfluous = self._unlisted(manifest, stale)
            if not missing and not superfluous:
                return False
            if there and there != manifest:
                self.files.rm_file(f"{self.root}/{MANIFEST}")  # until everything is there, nothing is finished
            for name in superfluous:
                self.files.rm_file(f"{self.root}/{name}")
            for name in missing:
                path = f"{self.root}/{name}"
                self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.files.put_file(str(folder / name), path)
        return True

    def _has(self, folder: Folder, name: str, manifest: Manifest, there: Manifest | None) -> bool:
        if name not in manifest.files:
            return self._content(name) == (folder / name).read_bytes()
        path = f"{self.root}/{name}"
        said = there is not None and there.files.get(name) == manifest.files[name]
        return said and self.files.exists(path) and self.files.size(path) == manifest.files[name].bytes

    def _unlisted(self, manifest: Manifest, stale: list[str]) -> list[str]:
        found = [name for name in stale if self.files.exists(f"{self.root}/{name}")]
        for config in SCHEMAS:
            names = (
                f"{config}/{path.rpartition('/')[2]}" for path in self.files.glob(f"{self.root}/{config}/*.parquet")
            )
            found += [name for name in names if name not in manifest.files]
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Every storage has errors of its own; the command line knows those of files."""
        try:
            yield
        except (AegenError, OSError):
            raise
        except Exception as error:
            raise Failed(f"{self.url}: {' '.join(str(error).split())[:200] or type(error).__name__}") from None


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)
