"""Paths of this machine, and of storages behind URLs, over fsspec."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO, Literal

from aegen.core.errors import AegenError, BadData, Failed, InvalidSpec, MissingExtra, NoAccess

SCHEME = "hf://"  # of the hub, which is no place for a folder: it is published to and pulled from
# Writable: an object appears under its name when it is complete.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}
# fsspec has more, some of which open what a file names, or show the environment.
SCHEMES = OBJECT_STORES | {"file", "local", "http", "https"}


def check_url(url: str) -> str:
    """The scheme of a URL, if it may be opened: it holds no secret and is no chain (``a::b``)."""
    scheme, _, rest = url.partition("://")
    if re.search("[@?#]", rest):
        raise InvalidSpec(
            "a password in the URL would be visible: use the environment or fsspec's settings (no @, ? or #)"
        )
    if "::" in url or scheme not in SCHEMES:
        raise InvalidSpec(f"{ascii(scheme[:40])[1:-1]}://…: expected one of {', '.join(sorted(SCHEMES))}, without ::")
    return scheme


def masked(text: str) -> str:
    """An error text without what may be secret: in a URL before an @ or after a ? or #, and behind ``Bearer``.

    >>> masked("no https://me:word@host/x and no https://host/x?key=word")
    'no https://…@host/x and no https://host/x?…'
    """
    text = re.sub(r"://[^\s'\"]*@", "://…@", text)
    text = re.sub(r"(://[^\s'\"?#]*[?#])[^\s'\"]+", r"\1…", text)
    return re.sub(r"Bearer [^\s'\"]+", "Bearer …", text)  # however it is quoted


def short(error: BaseException, secret: str | None = None) -> str:
    """The error of another library in one short line, without secrets: those of URLs, and one that is known.

    >>> short(ValueError("no\\n  https://me:word@host"), secret="host")
    'no https://…@…'
    """
    text = str(error).replace(secret, "…") if secret else str(error)
    return " ".join(masked(text).split())[:200] or type(error).__name__


def location(where: Path | Remote | str) -> Path | Remote:
    """A path on this machine, or a URL.

    >>> location("data"), location("s3://bucket/data").name
    (PosixPath('data'), 'data')
    """
    if not isinstance(where, str):
        return where
    try:
        where.encode()
    except UnicodeEncodeError:  # Arrow cannot open such a file
        raise InvalidSpec(f"{ascii(where)[1:-1]}: expected a name in UTF-8") from None
    if "://" not in where:
        return Path(where)
    if where.startswith(SCHEME):
        raise InvalidSpec(f"{SCHEME}…: expected a folder or a storage such as s3://…; use `aegen publish` for the hub")
    if check_url(where) in ("file", "local"):
        return Path(where.partition("://")[2])
    return Remote(where.rstrip("/"))


@contextmanager
def _storage_errors(place: Remote) -> Iterator[None]:
    """Every storage library has errors of its own; turn them into ours, with the place."""
    try:
        yield
    except (AegenError, FileNotFoundError, FileExistsError):
        raise
    except PermissionError as error:
        raise NoAccess(f"{place}: no access ({short(error)})") from None
    except Exception as error:  # says nothing about the file, so a retry may succeed
        raise Failed(f"{place}: {short(error)}") from None


@dataclass(frozen=True, order=True)
class Remote:
    """A file or folder behind a URL that all workers reach, with the methods of :class:`pathlib.Path` used here.

    Nothing is cached. Not a universal-pathlib path: that passes on the errors of each storage library and shows
    passwords, so it would need a wrapper of the same methods.
    """

    url: str

    def __str__(self) -> str:
        return masked(self.url)  # no password in errors and logs

    __repr__ = __str__

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the file system with our path."""
        with _storage_errors(self):
            files, path = file_system(self.url)
            return getattr(files, method)(path, *arguments)

    def is_file(self) -> bool:
        return bool(self._call("isfile"))

    def exists(self) -> bool:
        return bool(self._call("exists"))

    def size(self) -> int:
        return int(self._call("size"))

    def open(self, mode: Literal["rb"] = "rb") -> BinaryIO:
        return _Reader(self, self._call("open", mode))  # type: ignore[return-value]

    def read_bytes(self) -> bytes:
        return bytes(self._call("cat_file"))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self._call("rm_file")
        except FileNotFoundError:
            if not missing_ok:
                raise

    def glob(self, pattern: str) -> Iterator[Remote]:
        """Matches below this folder, in order."""
        with _storage_errors(self):
            files, path = file_system(self.url)
            return iter([self / found[len(path) + 1 :] for found in sorted(files.glob(f"{escape(path)}/{pattern}"))])

    def put(self, file: Path) -> None:
        """Upload a file; it appears under this name when it has arrived completely."""
        with _storage_errors(self):
            files, path = file_system(self.url)
            files.put_file(str(file), path)

    def check_writable(self) -> None:
        """Reject a scheme that can only be read."""
        if (scheme := self.url.partition("://")[0]) not in OBJECT_STORES:
            raise InvalidSpec(f"{self}: {scheme} can only be read; expected a folder or a storage such as s3://…")


class _Reader(io.RawIOBase):
    """An open file of a storage, which can fail at every read."""

    def __init__(self, place: Remote, file: BinaryIO) -> None:
        self._place, self._file = place, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with _storage_errors(self._place):
            return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _storage_errors(self._place):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


@lru_cache(maxsize=1024)
def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    check_url(url)
    try:
        import fsspec
    except ImportError:
        raise MissingExtra.of("fsspec", "hub") from None
    try:
        files, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        extra = MissingExtra.of("s3fs", "s3") if url.startswith(("s3://", "s3a://")) else None
        raise extra or InvalidSpec(f"{Remote(url)}: {short(error)}") from None
    except ValueError as error:
        raise InvalidSpec(f"{Remote(url)}: {short(error)}") from None
    return files, path.rstrip("/")


def check_regular(path: Path) -> None:
    """Reject devices and pipes, which never end; a missing file is not checked here."""
    if path.exists() and not path.is_file():
        raise BadData(f"{path}: not a file")


def file_size(path: Path | Remote) -> int:
    """Bytes of a file."""
    return path.size() if isinstance(path, Remote) else path.stat().st_size
