"""The files of a dataset: schemas, self-description, writing, reading that trusts nothing.

A shard is a Parquet file that describes itself in its metadata (key ``aegen``, one JSON object): whoever reads
several shards merges what they say. A file appears under its name only when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aegen.aside import Aside
from aegen.errors import BadData, InvalidSpec
from aegen.json_text import check_format, parse_json
from aegen.remote import Remote
from aegen.spec import SPLITS
from aegen.unfolding import MAX_GROUP, references, unfolded

ROW_GROUP = 1 << 16
DESCRIPTION_KEY = "aegen"
MAX_FOOTER = 1 << 27  # bytes of Parquet metadata that a reader takes memory for, the description included
MAX_TOKENS = 1 << 20  # of one text: each takes many times its bytes once it is split; contracts allow as many
# What pyarrow raises on a damaged or hostile file.
DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, RuntimeError, OverflowError, MemoryError)

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
SCHEMAS = {
    "pairs": PAIRS,
    "variants": PAIRS,
    "expert": STEPS,
    "variants_expert": STEPS,
    "augmented": STEPS,
    "tags": STEPS,
}

SHARD_NAME = re.compile(r"([a-z_]+)/([a-z]+)-[0-9]{5,}-of-[0-9]{5,}\.parquet")  # leads nowhere but into its folder
_FACTS = {"split": str, "task": str, "tokens": str, "arithmetic": bool}

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
    match = SHARD_NAME.fullmatch(name)
    if not match or match[1] not in SCHEMAS or match[2] not in SPLITS:
        example = shard_name("pairs", "train", 0, 1)
        raise BadData(f"{ascii(name[:80])[1:-1]}: not the name of a shard; expected for example {example}")
    return match[1], match[2]


def shard_order(name: str) -> tuple[str, int]:
    """What sorts shards by their numbers, which have more digits from 100,000 on.

    >>> sorted([shard_name("pairs", "train", index, 100_001) for index in (100_000, 99_999)], key=shard_order)[0]
    'pairs/train-99999-of-100001.parquet'
    """
    start, _, rest = name.partition("-")
    return start, int(rest.partition("-")[0])


def file_info(path: Path | Remote, rows: int) -> FileInfo:
    """Size and hash of a finished file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return FileInfo(rows, file_size(path), digest.hexdigest())


def file_size(path: Path | Remote) -> int:
    """Bytes of a file."""
    return path.size() if isinstance(path, Remote) else path.stat().st_size


class ShardWriter:
    """One shard, batch by batch: ``with ShardWriter(path, config) as shard: shard.write(batch); shard.finish(about)``.

    Row groups have ROW_GROUP rows whatever the batches, so the bytes depend on the rows alone.
    """

    info: FileInfo  # of the finished file

    def __init__(self, path: Path | Remote, config: str) -> None:
        self.path, self.schema, self.rows = path, SCHEMAS[config], 0
        self._file = Aside(path)
        self._waiting: list[pa.RecordBatch] = []
        self._held = 0
        # Arrow writes without Python's lock: one group goes to disk while the next one is made.
        self._disk = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> ShardWriter:
        # States and texts rarely repeat within a page, actions always do.
        dictionary = ["action.list.element", "origin"]
        aside = self._file.__enter__()
        try:
            self._writer = pq.ParquetWriter(aside, self.schema, compression="zstd", use_dictionary=dictionary)
        except BaseException as error:
            self._file.__exit__(type(error))
            raise
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._waiting.append(batch)
        self._held += len(batch)
        self.rows += len(batch)
        if self._held >= ROW_GROUP:
            table = pa.Table.from_batches(self._waiting, self.schema)
            whole = self._held - self._held % ROW_GROUP
            for start in range(0, whole, ROW_GROUP):
                self._flush(table.slice(start, ROW_GROUP))
            self._waiting, self._held = table.slice(whole).to_batches(), self._held - whole

    def _flush(self, table: pa.Table) -> None:
        if table.nbytes > MAX_GROUP:  # no reader would take it
            raise InvalidSpec(f"{self.path}: {len(table):,} rows of {table.nbytes:,} bytes; at most {MAX_GROUP:,} fit")
        if self._writing:
            self._writing.result()
        self._writing = self._disk.submit(self._writer.write_table, table, row_group_size=ROW_GROUP)

    def finish(self, about: Description) -> None:
        """All rows are there: say what the shard is."""
        if self._held:
            self._flush(pa.Table.from_batches(self._waiting, self.schema))
        if self._writing:
            self._writing.result()
        self._writer.add_key_value_metadata({DESCRIPTION_KEY: json.dumps(about, sort_keys=True, ensure_ascii=False)})

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._disk.shutdown(wait=True)
        try:
            self._writer.close()
            if kind is None:
                self.info = file_info(self._file.aside, self.rows)
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            self._file.__exit__(kind, *rest)


def write_shard(
    path: Path | Remote, config: str, batches: Iterable[pa.RecordBatch], describe: Callable[[], Description]
) -> FileInfo:
    """Write one shard; ``describe`` is asked when all rows have been seen."""
    with ShardWriter(path, config) as shard:
        for batch in batches:
            shard.write(batch)
        shard.finish(describe())
    return shard.info


def open_shard(path: Path | Remote, config: str | None = None) -> tuple[pq.ParquetFile, Description]:
    """A shard and its description, checked before any row is read; every error names the file."""
    try:
        check_footer(path)
        file = _parquet(path)
        schema, metadata = file.schema_arrow, file.metadata
        raw = (metadata.metadata or {}).get(DESCRIPTION_KEY.encode())
        groups = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
    except FileNotFoundError:
        raise BadData(f"{path}: missing") from None
    except DAMAGED as error:
        raise BadData(f"{path}: not a readable Parquet file ({first_line(error)})") from None
    if not all(0 <= size <= MAX_GROUP for size in groups):
        raise BadData(f"{path}: a row group of {max(groups):,} bytes; expected at most {MAX_GROUP:,}")
    if raw is None:
        raise BadData(f"{path}: has no {DESCRIPTION_KEY!r} metadata, so it was not written by aegen")
    description = parse_json(raw, path)
    check_format(description.get("format"), path)
    config = config or description.get("config")
    if not isinstance(config, str) or config not in SCHEMAS or description.get("config") != config:
        raise BadData(f"{path}: config {description.get('config')!r}; expected {config!r}")
    if not schema.remove_metadata().equals(SCHEMAS[config]):
        raise BadData(f"{path}: columns {str(schema.names)[:200]}; expected those of {config}")
    return file, description


def _parquet(path: Path | Remote, **settings: Any) -> pq.ParquetFile:
    return pq.ParquetFile(path.open("rb") if isinstance(path, Remote) else path, **settings)


def text_facts(about: Description, where: object) -> Description:
    """What a shard of pairs says of its texts, and what is made of it says again."""
    found = {key: about.get(key) for key in ("format", *_FACTS)}
    for key, kind in _FACTS.items():
        if type(found[key]) is not kind:
            raise BadData(f"{where}: metadata field {key} is not what it should be")
    return found


def check_footer(path: Path | Remote) -> None:
    """Refuse a footer that is larger than any of ours before anybody takes memory for it."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - 8))
        tail = file.read(8)
    declared = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or declared > min(MAX_FOOTER, size):
        raise BadData(f"{path}: not a readable Parquet file (no footer of at most {MAX_FOOTER:,} bytes)")


def read_batches(path: Path | Remote, config: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, one row group at a time."""
    file, _ = open_shard(path, config)
    try:
        with file:
            for batch in unfolding(path, file, columns):
                if any(map(_empty_cells, batch.columns)):
                    raise BadData(f"{path}: a row with an empty cell")
                batch.validate(full=True)  # Arrow itself takes any bytes for texts
                if any(map(_too_long, batch.columns)):
                    raise BadData(f"{path}: a text of more than {MAX_TOKENS:,} tokens")
                yield batch
    except DAMAGED as error:
        raise BadData(f"{path}: damaged ({first_line(error)})") from None


def unfolding(path: Path | Remote, file: pq.ParquetFile, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of any Parquet file, no row group of which takes more memory than it may."""
    referring = references(file.metadata, columns)
    with _parquet(path, metadata=file.metadata, read_dictionary=referring) as folded:
        for group in range(file.num_row_groups):
            size = unfolded(folded, group, referring, columns)
            if size > MAX_GROUP:
                raise BadData(f"{path}: a row group that unfolds to {size:,} bytes; expected at most {MAX_GROUP:,}")
            yield from file.iter_batches(batch_size=ROW_GROUP, row_groups=[group], columns=columns)


def _empty_cells(column: pa.Array) -> bool:
    """Whether something is missing in a column, or within a list of it."""
    return bool(column.null_count) or (pa.types.is_list(column.type) and bool(column.values.null_count))


def _too_long(column: pa.Array) -> bool:
    """Whether a text has too many tokens; they are counted only where it has the bytes for so many."""
    texts = column.flatten() if pa.types.is_list(column.type) else column
    if not pa.types.is_string(texts.type) or (pc.max(pc.binary_length(texts)).as_py() or 0) < MAX_TOKENS:
        return False
    return bool(pc.max(pc.count_substring(texts, " ")).as_py() >= MAX_TOKENS)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
