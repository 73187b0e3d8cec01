"""Files that appear in one step: filled aside, then moved to their name or sent to a storage."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

from aegen.files.places import Remote

PART = ".part"
SENDING = f".sending{PART}"  # ends the name of a file of this machine that is on its way to a storage


def fsync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Aside:
    """A file that is filled aside and appears under its name in one step; on any error nothing is left of it.

    What goes to a storage is filled on this machine first; what a killed process left of that, the next one removes.
    """

    aside: Path

    def __init__(self, path: Path | Remote) -> None:
        self.path = path
        self._lock: int | None = None
        if not isinstance(path, Remote):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.aside = path.parent / f".{path.name}.{uuid.uuid4().hex}{PART}"

    def __enter__(self) -> Path:
        if isinstance(self.path, Remote):
            sweep_sent()
            self.aside, self._lock = _locked_file(self.path.name)
        return self.aside

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                return
            if isinstance(self.path, Remote):
                self.path.put(self.aside)
            else:
                with self.aside.open("rb+") as file:
                    os.fsync(file.fileno())
                self.aside.replace(self.path)
                fsync_folder(self.path.parent)
        finally:
            self.aside.unlink(missing_ok=True)
            if self._lock is not None:
                os.close(self._lock)


def _locked_file(name: str) -> tuple[Path, int]:
    """A new temporary file, and the lock on it that shows for as long as our process lives that it is in use."""
    import fcntl

    while True:
        path = Path(tempfile.gettempdir()) / f".{name}.{uuid.uuid4().hex}{SENDING}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # swept before it was locked


def sweep_sent() -> None:
    """Remove the temporary files of processes that were killed while they sent something to a storage."""
    import fcntl

    for path in Path(tempfile.gettempdir()).glob(f".*{SENDING}"):
        with suppress(OSError):  # in use, gone, or not ours
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)
