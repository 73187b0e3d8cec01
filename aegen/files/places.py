"""Files that are not on this machine: the part of :class:`pathlib.Path` that a dataset folder needs, over fsspec."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, wraps
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from aegen.core.errors import AegenError, BadData, Failed, InvalidSpec, MissingExtra, NoAccess

Function = TypeVar("Function", bound=Callable[..., Any])
# An object of these appears under its name when it is complete: they can be written to.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}
# fsspec knows more, among them some that open what a file tells them to, or show what the environment holds.
SCHEMES = OBJECT_STORES | {"file", "local", "http", "https"}


def check_url(url: str) -> str:
    """The scheme of a URL that may be opened: no secret can be in it, and it is no chain (``a::b``)."""
    scheme, _, rest = url.partition("://")
    if re.search("[@?#]", rest):
        raise InvalidSpec(
            "a password in the URL would be seen: leave it to the environment or fsspec's settings (no @, ? or #)"
        )
    if "::" in url or scheme not in SCHEMES:
        raise InvalidSpec(f"{ascii(scheme[:40])[1:-1]}://…: expected one of {', '.join(sorted(SCHEMES))}, without ::")
    return scheme


def masked(text: str) -> str:
    """The error of another library without what stands before an @ or behind a ? in its URLs.

    >>> masked("no https://me:word@host/x and no https://host/x?key=word")
    'no https://…@host/x and no https://host/x?…'
    """
    text = re.sub(r"://[^\s'\"]*@", "://…@", text)
    return re.sub(r"(://[^\s'\"?#]*[?#])[^\s'\"]+", r"\1…", text)


def short(error: BaseException) -> str:
    """The error of another library in one short line that holds no secret."""
    return masked(" ".join(str(error).split()))[:200] or type(error).__name__


def location(where: Path | Remote | str) -> Path | Remote:
    """A path on this machine, or a URL.

    >>> location("data"), location("s3://bucket/data").name
    (PosixPath('data'), 'data')
    """
    if not isinstance(where, str):
        return where
    try:
        where.encode()
    except UnicodeEncodeError:  # Arrow opens no such file
        raise InvalidSpec(f"{ascii(where)[1:-1]}: expected a name in UTF-8") from None
    if "://" not in where:
        return Path(where)
    if where.startswith("hf://"):
        raise InvalidSpec("hf://…: expected a folder or a storage such as s3://…; `aegen publish` sends to the hub")
    if check_url(where) in ("file", "local"):
        return Path(where.partition("://")[2])
    return Remote(where.rstrip("/"))


def _explained(function: Function) -> Function:
    """Every storage has errors of its own; the command line knows those of files."""

    @wraps(function)
    def call(self: Remote, *args: Any, **kwargs: Any) -> Any:
        with _errors_of(self):
            return function(self, *args, **kwargs)

    return call  # type: ignore[return-value]


@contextmanager
def _errors_of(place: Remote) -> Iterator[None]:
    try:
        yield
    except (AegenError, FileNotFoundError, FileExistsError):
        raise
    except PermissionError as error:
        raise NoAccess(f"{place}: no access ({short(error)})") from None
    except Exception as error:  # nothing is said of the file, and it can be tried again
        raise Failed(f"{place}: {short(error)}") from None


@dataclass(frozen=True, order=True)
class Remote:
    """A file or folder behind a URL that all workers reach; what it holds is never cached."""

    url: str

    def __str__(self) -> str:
        return masked(self.url)  # errors and logs hold no password

    __repr__ = __str__

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        return Remote(self.url.rpartition("/")[0])

    @property
    def _files(self) -> Any:
        return file_system(self.url)[0]

    @property
    def _path(self) -> str:
        return file_system(self.url)[1]

    @_explained
    def is_file(self) -> bool:
        return bool(self._files.isfile(self._path))

    @_explained
    def exists(self) -> bool:
        return bool(self._files.exists(self._path))

    @_explained
    def open(self, mode: Literal["rb"] = "rb") -> BinaryIO:
        return _Reader(self, self._files.open(self._path, mode))  # type: ignore[return-value]

    @_explained
    def read_bytes(self) -> bytes:
        return bytes(self._files.cat_file(self._path))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    @_explained
    def size(self) -> int:
        return int(self._files.size(self._path))

    @_explained
    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self._files.rm_file(self._path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    @_explained
    def glob(self, pattern: str) -> Iterator[Remote]:
        """What lies below, as ``pathlib`` would find it."""
        found = self._files.glob(f"{escape(self._path)}/{pattern}")
        return iter([self / path[len(self._path) + 1 :] for path in sorted(found)])

    @_explained
    def put(self, file: Path) -> None:
        """Make the content that of a file; until all of it has arrived, the name shows nothing new."""
        self._files.put_file(str(file), self._path)

    def check_writable(self) -> None:
        """Refuse what can only be read."""
        if (scheme := self.url.partition("://")[0]) not in OBJECT_STORES:
            raise InvalidSpec(f"{self}: {scheme} can only be read; expected a folder or a storage such as s3://…")


class _Reader(io.RawIOBase):
    """A file far away, which can fail at every read."""

    def __init__(self, place: Remote, file: BinaryIO) -> None:
        self._place, self._file = place, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with _errors_of(self._place):
            return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _errors_of(self._place):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


@lru_cache(maxsize=1024)
def file_system(url: str) -> tuple[Any, str]:
    """What opens the files of a path or URL, and the path that it knows them by."""
    local = "://" not in url or check_url(url) in ("file", "local")
    try:
        import fsspec
    except ImportError:
        raise MissingExtra.of("fsspec", "hub") from None
    if local:  # fsspec would take a folder a::b for a chain
        return fsspec.filesystem("file"), str(Path(url.rpartition("://")[2]).absolute())
    try:
        files, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        extra = MissingExtra.of("s3fs", "s3") if url.startswith(("s3://", "s3a://")) else None
        raise extra or InvalidSpec(f"{Remote(url)}: {short(error)}") from None
    except ValueError as error:
        raise InvalidSpec(f"{Remote(url)}: {short(error)}") from None
    return files, path.rstrip("/")


def check_regular(path: Path) -> None:
    """Refuse devices and pipes, which never end; what is missing is somebody else's error."""
    if path.exists() and not path.is_file():
        raise BadData(f"{path}: not a file")


SCHEME = "hf://"


def file_size(path: Path | Remote) -> int:
    """Bytes of a file."""
    return path.size() if isinstance(path, Remote) else path.stat().st_size
