"""Files: written whole or not at all, and read within limits."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.core.errors import BadData, Failed
from trainer.core.records import MAX_BYTES


def write(path: Path, content: bytes) -> None:
    """Replace a file atomically: a reader sees either the old content or the new."""
    aside = path.with_name(f".{path.name}.aside")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failed(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)  # a partial file would only fill a full disk


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as indented JSON."""
    write(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def read(path: Path, missing: str = "", most: int = MAX_BYTES) -> bytes:
    """The content of a small file; one byte more than ``most`` is read, so that whoever decodes it can refuse it."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError as error:
        raise BadData(missing or f"{path}: missing") from error
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from error


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
