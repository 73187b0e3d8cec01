"""A text pair as it was found, and files read line by line within limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from aegen.core.errors import BadData
from aegen.pairs.spec import InputFile

MAX_LINE = 1 << 24  # bytes of one line that a reader is willing to hold
Annotation = tuple[int, tuple[str, ...]]  # an annotator, and the edits: ``start stop|||type|||correction``


@dataclass(frozen=True)
class Row:
    """A pair as it was found; ``problem`` says why it cannot be one."""

    where: str
    source: str = ""
    target: str = ""
    split: str | None = None
    problem: str = ""
    named: bool = False  # whether the user named the split
    annotations: tuple[Annotation, ...] = ()  # what each annotator would change; of M2 alone


class Reader(Protocol):
    """One format; ``options`` are the settings that it depends on."""

    @property
    def kind(self) -> str: ...

    @property
    def options(self) -> dict[str, Any]: ...

    def rows(self) -> Iterator[Row]: ...

    def inputs(self) -> tuple[InputFile, ...]: ...


def lines_of(path: Path) -> Iterator[tuple[str, str, str]]:
    """(where, text, problem) of each line; bytes that are no UTF-8 are a problem of their line only."""
    try:
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(MAX_LINE):
                number += 1
                where = f"{path.name}:{number}"
                if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
                    raise BadData(f"{where}: a line of more than {MAX_LINE:,} bytes")
                try:
                    yield where, _without_ending(raw).decode("utf-8-sig" if number == 1 else "utf-8"), ""
                except UnicodeDecodeError as error:
                    yield where, "", f"not valid UTF-8 (byte {error.start + 1} of the line)"
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None


def open_text(path: Path) -> TextIO:
    """A text file; bytes that are not UTF-8 are left to the reader."""
    try:
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None


def _without_ending(line: bytes) -> bytes:
    """A line without the one line break that ends it."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def digests(*paths: Path) -> tuple[InputFile, ...]:
    """Names and hashes of files, for the record."""
    found = []
    for path in paths:
        if any("\ud800" <= character <= "\udfff" for character in path.name):
            raise BadData(f"{ascii(path.name)[1:-1]}: the file name is not UTF-8; rename it")
        try:
            with path.open("rb") as file:
                found.append(InputFile(path.name, hashlib.file_digest(file, "sha256").hexdigest()))
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}") from None
    return tuple(found)
