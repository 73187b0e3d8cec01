"""The files of a dataset: written with a description of themselves, read without trusting anything.

A shard is a Parquet file that describes itself in its metadata (key ``aegen``, one JSON object); readers of several
shards merge the descriptions. A file appears under its name only when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aegen.columns.schemas import SCHEMAS
from aegen.core.description import FileInfo, PairsDescription, read_description
from aegen.core.errors import BadData, InvalidSpec
from aegen.core.format import KEY, MAX_GROUP, MAX_STATE, ConfigName
from aegen.core.records import plain
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.manifest import file_info
from aegen.files.atomic import AtomicFile
from aegen.files.parquet import DAMAGED, ROW_GROUP, check_footer, open_parquet, unfolding
from aegen.files.places import Remote, short

Description = PairsDescription  # of any shard: that of demonstrations is a kind of it


class ShardWriter:
    """One shard, batch by batch: ``with ShardWriter(path, config) as shard: shard.write(batch); shard.finish(about)``.

    Row groups have ROW_GROUP rows whatever the batches, so the bytes depend on the rows alone.
    """

    info: FileInfo  # of the finished file

    def __init__(self, path: Path | Remote, config: ConfigName) -> None:
        self.path, self.schema, self.rows, self.counts = path, SCHEMAS[config], 0, Counts()
        self._file = AtomicFile(path)
        self._waiting: list[pa.RecordBatch] = []
        self._held = 0
        # Arrow writes without Python's lock: one group goes to disk while the next one is made.
        self._disk = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> ShardWriter:
        # States and texts rarely repeat within a page, actions always do.
        dictionary = ["action.list.element", "origin"]
        # Start the thread now: an interrupt of its start, later, would leave it writing unnoticed.
        self._disk.submit(int).result()
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
        self.counts += count_rows(batch)
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

    def finish(self, about: Description, kinds: Mapping[str, int] | None = None) -> None:
        """All rows are written: add the description, which every reader must accept, and the counts.

        ``kinds`` counts the edits by what they do, which their author knows without reading the rows.
        """
        if self._held:
            self._flush(pa.Table.from_batches(self._waiting, self.schema))
        if self._writing:
            self._writing.result()
        counts = self.counts + Counts(kinds=dict(kinds or {}))
        raw = msgspec.json.encode(msgspec.structs.replace(about, counts=plain(counts)), order="sorted")
        try:
            read_description(raw, self.path)
        except BadData as error:
            raise InvalidSpec(str(error)) from None
        self._writer.add_key_value_metadata({KEY: raw})

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._disk.shutdown(wait=True)
            with suppress(Exception) if kind else nullcontext():  # half a row group cannot be closed
                self._writer.close()
            if kind is None:
                self.info = file_info(self._file.partial, self.rows)
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            self._file.__exit__(kind, *rest)


def write_shard(
    path: Path | Remote,
    config: ConfigName,
    batches: Iterable[pa.RecordBatch],
    describe: Callable[[], Description],
    kinds: Mapping[str, int] | None = None,
) -> FileInfo:
    """Write one shard; ``describe`` is called, and ``kinds`` read, after the last row."""
    with ShardWriter(path, config) as shard:
        for batch in batches:
            shard.write(batch)
        shard.finish(describe(), kinds)
    return shard.info


def open_shard(path: Path | Remote, config: str | None = None) -> tuple[pq.ParquetFile, Description]:
    """A shard and its description, checked before any row is read; every error names the file."""
    try:
        check_footer(path)
        file = open_parquet(path)
        schema, metadata = file.schema_arrow, file.metadata
        raw = (metadata.metadata or {}).get(KEY.encode())
        groups = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
    except FileNotFoundError:
        raise BadData(f"{path}: missing") from None
    except DAMAGED as error:
        raise BadData(f"{path}: not a readable Parquet file ({short(error)})") from None
    if not all(0 <= size <= MAX_GROUP for size in groups):
        raise BadData(f"{path}: a row group of {max(groups):,} bytes; expected at most {MAX_GROUP:,}")
    if raw is None:
        raise BadData(f"{path}: no {KEY!r} metadata, so it was not written by aegen")
    description = read_description(raw, path)
    if config is not None and description.config != config:
        raise BadData(f"{path}: config {description.config!r}, expected {config!r}")
    if not schema.remove_metadata().equals(SCHEMAS[description.config]):
        raise BadData(f"{path}: columns {str(schema.names)[:200]}, expected those of {description.config}")
    return file, description


def read_description_of(path: Path | Remote, config: str | None = None) -> Description:
    """What a shard says of itself."""
    file, description = open_shard(path, config)
    file.close()
    return description


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
                    raise BadData(f"{path}: a text of more than {MAX_STATE:,} tokens")
                yield batch
    except DAMAGED as error:
        raise BadData(f"{path}: damaged ({short(error)})") from None


def read_pairs(path: Path | Remote, config: str = "pairs") -> Iterator[tuple[int, str, str]]:
    """Id, source and target of each row of a shard of pairs or variants."""
    for batch in read_batches(path, config):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _empty_cells(column: pa.Array) -> bool:
    """Whether something is missing in a column, or within a list of it."""
    return bool(column.null_count) or (pa.types.is_list(column.type) and bool(column.values.null_count))


def _too_long(column: pa.Array) -> bool:
    """Whether a text has too many tokens; they are counted only where it has the bytes for so many."""
    texts = column.flatten() if pa.types.is_list(column.type) else column
    if not pa.types.is_string(texts.type) or (pc.max(pc.binary_length(texts)).as_py() or 0) < MAX_STATE:
        return False
    return bool(pc.max(pc.count_substring(texts, " ")).as_py() >= MAX_STATE)
