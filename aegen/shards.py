"""The files of a dataset: schemas, self-description, atomic writing, reading that trusts nothing.

A shard is a Parquet file that describes itself in its metadata (key ``aegen``, one JSON object): whoever reads
several shards merges what they say. A file appears under its name only when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from aegen.errors import BadData
from aegen.spec import SPLITS

FORMAT = 1
ROW_GROUP = 1 << 16
PART = ".part"
DESCRIPTION_KEY = "aegen"
MAX_DESCRIPTION = 1 << 26  # bytes of JSON that a reader is willing to parse

PAIRS = pa.schema([("id", pa.int64()), ("source", pa.string()), ("target", pa.string())])
STEPS = pa.schema(
    [
        ("pair", pa.int64()),
        ("origin", pa.int32()),
        ("step", pa.int16()),
        ("state", pa.string()),
        ("action", pa.list_(pa.string())),
    ]
)
SCHEMAS = {"pairs": PAIRS, "variants": PAIRS, "expert": STEPS, "augmented": STEPS}

Description = dict[str, Any]


@dataclass(frozen=True)
class FileInfo:
    """What the manifest says of one file."""

    rows: int
    bytes: int
    sha256: str


def shard_name(config: str, split: str, index: int, total: int) -> str:
    """Where a shard lies in its folder.

    >>> shard_name("pairs", "train", 0, 1)
    'pairs/train-00000-of-00001.parquet'
    """
    return f"{config}/{split}-{index:05}-of-{total:05}.parquet"


def shard_parts(name: str) -> tuple[str, str]:
    """Config and split of a shard's name; an error for any other name."""
    config, _, file = name.partition("/")
    split = file.partition("-")[0]
    if config not in SCHEMAS or split not in SPLITS or "/" in file or not file.endswith(".parquet"):
        raise BadData(f"{name}: not the name of a shard; expected for example {shard_name('pairs', 'train', 0, 1)}")
    return config, split


def fsync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a file aside, then put it under its name in one step; on any error nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}{PART}")
    try:
        write(aside)
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(path)
        fsync_folder(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def file_info(path: Path, rows: int) -> FileInfo:
    """Size and hash of a finished file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileInfo(rows, path.stat().st_size, digest)


def row_groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut a stream of batches into tables of ROW_GROUP rows, so that the bytes do not depend on the batches."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += len(batch)
        if count >= ROW_GROUP:
            table = pa.Table.from_batches(waiting, schema)
            whole = count - count % ROW_GROUP
            for start in range(0, whole, ROW_GROUP):
                yield table.slice(start, ROW_GROUP)
            waiting, count = table.slice(whole).to_batches(), count - whole
    if count:
        yield pa.Table.from_batches(waiting, schema)


def write_shard(
    path: Path, config: str, batches: Iterable[pa.RecordBatch], describe: Callable[[], Description]
) -> FileInfo:
    """Write one shard; ``describe`` is asked when all rows have been seen."""
    schema, rows = SCHEMAS[config], 0

    def write(aside: Path) -> None:
        nonlocal rows
        # States and texts rarely repeat within a page, actions always do.
        writer = pq.ParquetWriter(aside, schema, compression="zstd", use_dictionary=["action.list.element", "origin"])
        # Arrow writes without Python's lock: one group goes to disk while the next one is made.
        with writer, ThreadPoolExecutor(1) as disk:
            writing: Future[None] | None = None
            for table in row_groups(schema, batches):
                rows += len(table)
                if writing:
                    writing.result()
                writing = disk.submit(writer.write_table, table, row_group_size=ROW_GROUP)
            if writing:
                writing.result()
            text = json.dumps(describe(), sort_keys=True, ensure_ascii=False)
            writer.add_key_value_metadata({DESCRIPTION_KEY: text})

    write_atomic(path, write)
    return file_info(path, rows)


def open_shard(path: Path, config: str | None = None) -> tuple[pq.ParquetFile, Description]:
    """A shard and its description, checked before any row is read; every error names the file."""
    try:
        file = pq.ParquetFile(path)
    except FileNotFoundError:
        raise BadData(f"{path}: missing") from None
    except (OSError, pa.ArrowException) as error:
        raise BadData(f"{path}: not a readable Parquet file ({_first_line(error)})") from None
    raw = (file.metadata.metadata or {}).get(DESCRIPTION_KEY.encode())
    if raw is None:
        raise BadData(f"{path}: has no {DESCRIPTION_KEY!r} metadata, so it was not written by aegen")
    if len(raw) > MAX_DESCRIPTION:
        raise BadData(f"{path}: {len(raw):,} bytes of metadata; expected at most {MAX_DESCRIPTION:,}")
    description = parse_json(raw, path)
    check_format(description.get("format"), path)
    config = config or description.get("config")
    if config not in SCHEMAS or description.get("config") != config:
        raise BadData(f"{path}: config {description.get('config')!r}; expected {config!r}")
    if not file.schema_arrow.remove_metadata().equals(SCHEMAS[config]):
        raise BadData(f"{path}: columns {file.schema_arrow.names}; expected those of {config}")
    return file, description


def read_batches(path: Path, config: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, one row group at a time."""
    file, _ = open_shard(path, config)
    with file:
        try:
            yield from file.iter_batches(batch_size=ROW_GROUP, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise BadData(f"{path}: damaged ({_first_line(error)})") from None


def parse_json(raw: bytes, where: Path) -> dict[str, Any]:
    """One JSON object from untrusted bytes."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadData(f"{where}: not valid JSON") from None
    if not isinstance(found, dict):
        raise BadData(f"{where}: expected a JSON object")
    return found


def check_format(version: object, where: Path) -> None:
    """Refuse what a later aegen wrote."""
    if version != FORMAT:
        raise BadData(
            f"{where}: format version {version!r}; this aegen reads {FORMAT}: install the aegen that wrote it"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
