"""Untrusted Parquet files, opened without relying on the sizes they declare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from aegen.core.errors import BadData
from aegen.core.format import MAX_FOOTER, MAX_GROUP
from aegen.core.size_guard import references, unfolded
from aegen.files.places import Remote

ROW_GROUP = 1 << 16
# What pyarrow raises on a damaged or hostile file.
DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, RuntimeError, OverflowError, MemoryError)


def open_parquet(path: Path | Remote, **settings: Any) -> pq.ParquetFile:
    """A Parquet file on this machine or in a storage; its footer is checked with :func:`check_footer` before."""
    return pq.ParquetFile(path.open("rb") if isinstance(path, Remote) else path, **settings)


def check_footer(path: Path | Remote) -> None:
    """Reject a footer that is too large before it is read into memory."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - 8))
        tail = file.read(8)
    declared = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or declared > min(MAX_FOOTER, size):
        raise BadData(f"{path}: not a readable Parquet file (no footer of at most {MAX_FOOTER:,} bytes)")


def unfolding(path: Path | Remote, file: pq.ParquetFile, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file; rejects a row group that would take too much memory."""
    referring = references(file.metadata, columns)
    with open_parquet(path, metadata=file.metadata, read_dictionary=referring) as folded:
        for group in range(file.num_row_groups):
            size = unfolded(folded, group, referring, columns)
            if size > MAX_GROUP:
                raise BadData(f"{path}: a row group decodes to {size:,} bytes; expected at most {MAX_GROUP:,}")
            yield from file.iter_batches(batch_size=ROW_GROUP, row_groups=[group], columns=columns)
