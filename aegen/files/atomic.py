"""Files that appear in one step: written under a temporary name, then renamed, or sent to a storage."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

from aegen.core.locks import lock
from aegen.files.places import Remote

PART = ".part"
UPLOAD = f".sending{PART}"  # suffix of a local file that is being sent to a storage


def fsync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class AtomicFile:
    """A file that is written under a temporary name and appears complete in one step; on an error nothing remains.

    A file for a storage is written on this machine first; if its process is killed, the next one removes it.
    """

    partial: Path

    def __init__(self, path: Path | Remote) -> None:
        self.path = path
        self._lock: int | None = None
        if not isinstance(path, Remote):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.partial = path.parent / f".{path.name}.{uuid.uuid4().hex}{PART}"

    def __enter__(self) -> Path:
        if isinstance(self.path, Remote):
            remove_abandoned_uploads()
            self.partial, self._lock = _locked_file(self.path.name)
        return self.partial

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                return
            if isinstance(self.path, Remote):
                self.path.put(self.partial)
            else:
                with self.partial.open("rb+") as file:
                    os.fsync(file.fileno())
                self.partial.replace(self.path)
                fsync_folder(self.path.parent)
        finally:
            self.partial.unlink(missing_ok=True)
            if self._lock is not None:
                os.close(self._lock)


def _locked_file(name: str) -> tuple[Path, int]:
    """A new temporary file and its lock, which shows that it is in use as long as this process lives."""
    while True:
        path = Path(tempfile.gettempdir()) / f".{name}.{uuid.uuid4().hex}{UPLOAD}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if lock(descriptor) and os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process removed it before it was locked


def remove_abandoned_uploads() -> None:
    """Remove the temporary files of processes that were killed while they sent a file to a storage."""
    for path in Path(tempfile.gettempdir()).glob(f".*{UPLOAD}"):
        with suppress(OSError):  # already removed, or of another user
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if lock(descriptor):
                    path.unlink()
            finally:
                os.close(descriptor)
