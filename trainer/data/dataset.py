"""A dataset folder, wherever it is: manifest, footers, then rows.

The order is the defence: the manifest first (which files, how large, which hashes), then the footers of the
shards (schema, description, row counts), and only then rows. A folder is a local path, a hub id
(``org/name``, ``hf://org/name@revision``), or the URL of a storage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trainer.core.description import FileInfo, ManifestRecord, PairsDescription, read_description, read_manifest
from trainer.core.errors import BadData, MissingExtra, MissingShards, TrainerError, one_line
from trainer.core.format import (
    COLUMNS,
    KEY,
    MANIFEST,
    MAX_FOOTER,
    MAX_GROUP,
    MAX_MANIFEST,
    SHARD,
    STEP_COLUMNS,
    ConfigName,
    SplitName,
)
from trainer.core.size_guard import references, unfolded
from trainer.data.contract import Contract, merge
from trainer.data.hub import SCHEME, HubFiles, hub_id
from trainer.data.places import LOCAL, check_url

MAX_TABLE = 1 << 32  # bytes of all rows that are read at once
PIECE = 1 << 26  # bytes of one request: a remote storage answers slowly
MERGED = 64  # contracts that are kept before they are merged into one

TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "string": pa.string(),
    "list<string>": pa.list_(pa.string()),
}

# What pyarrow raises on a damaged or foreign file.
DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError, RuntimeError, UnicodeDecodeError)


@dataclass(frozen=True)
class Shard:
    """One file of the manifest."""

    name: str
    info: FileInfo

    @property
    def rows(self) -> int:
        return self.info.rows

    @property
    def bytes(self) -> int:
        return self.info.bytes

    @property
    def sha256(self) -> str:
        return self.info.sha256


@dataclass(frozen=True)
class Footer:
    """The end of a shard: its description, and the rows of its row groups."""

    shard: Shard
    description: PairsDescription | None  # None once it is merged into a contract
    groups: tuple[int, ...]


def locate(where: str) -> tuple[Any, str]:
    """What opens files, and the path of a dataset folder, a hub id or the URL of a storage."""
    check_url(where)
    if name := hub_id(where):
        return HubFiles(where, name, "dataset"), ""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtra("fsspec") from error
    scheme, mark, path = where.rpartition("://")
    if not mark or scheme in LOCAL:  # fsspec would take a folder a::b for a chain
        return fsspec.filesystem("file"), str(Path(path).absolute())
    try:
        filesystem, path = fsspec.core.url_to_fs(where)
    except ImportError as error:
        raise (MissingExtra("s3fs", "s3") if where.startswith("s3") else BadData(f"{where}: {error}")) from error
    except (ValueError, OSError) as error:
        raise BadData(f"{where}: {one_line(error)}") from error
    return filesystem, path.rstrip("/")


class Dataset:
    """A finished dataset folder: its manifest, its contract, and its rows."""

    def __init__(self, where: str | Path) -> None:
        said = str(where)
        name = hub_id(said)
        self.where = f"{SCHEME}{name}" if name else said  # what a run records must not be taken for a folder later
        self.filesystem, self.root = locate(said)
        manifest = self._read_manifest()
        self.spec = manifest.spec
        self.shards = {name: Shard(name, info) for name, info in manifest.files.items()}

    def _read_manifest(self) -> ManifestRecord:
        path = f"{self.root}/{MANIFEST}"
        if self.local and Path(path).exists() and not Path(path).is_file():  # a device never ends
            raise BadData(f"{self.where}: {MANIFEST} is not a file")
        try:
            with self.filesystem.open(path, "rb") as file:
                text = file.read(MAX_MANIFEST + 1)
        except FileNotFoundError as error:
            if self.local and not Path(self.root).exists():
                raise BadData(f"{self.where}: no such folder") from error
            raise BadData(f"{self.where}: no {MANIFEST}, so this is not a finished dataset") from error
        except Exception as error:
            if not self._understood(error):
                raise
            raise BadData(f"{self.where}: {one_line(error)}") from error
        return read_manifest(text, f"{self.where}/{MANIFEST}")

    @property
    def local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not isinstance(self.filesystem, HubFiles) and "file" in self.filesystem.protocol

    def has(self, config: ConfigName, split: SplitName) -> bool:
        """Whether the manifest lists such shards."""
        return any(name.startswith(f"{config}/{split}-") for name in self.shards)

    def select(self, config: ConfigName, split: SplitName) -> list[Shard]:
        """The shards of one config and split, complete and in order."""
        found = {}
        total = 0
        for name, shard in self.shards.items():
            match = SHARD.fullmatch(name)
            assert match
            if match[1] == config and match[2] == split:
                found[int(match[3])] = shard
                if total not in (0, int(match[4])):
                    raise BadData(f"{self.where}: the {config}/{split} shards disagree on how many they are")
                total = int(match[4])
        if not found:
            raise MissingShards(f"{self.where}: no {config}/{split} shards")
        for index in range(total):
            if index not in found:
                raise BadData(f"{self.where}: shard {index} of {total} of {config}/{split} is missing")
        return [found[index] for index in range(total)]

    def read_footer(self, shard: Shard, columns: dict[str, str]) -> Footer:
        """The end of one shard, checked against the manifest, without any row."""
        where = f"{self.where}/{shard.name}"
        with self._open(shard) as file:
            footer = pq.ParquetFile(file)
            schema, metadata = footer.schema_arrow, footer.metadata
            for name, kind in columns.items():
                index = schema.get_field_index(name)
                if index < 0 or not same_type(schema.field(index).type, TYPES[kind]):
                    found = schema.field(index).type if index >= 0 else "nothing"
                    raise BadData(f"{where}: column {name}: expected {kind}, got {found}")
            if metadata.num_rows != shard.rows:
                raise BadData(f"{where}: {metadata.num_rows:,} rows, the manifest says {shard.rows:,}")
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            for group in groups:
                if not 0 <= group.total_byte_size <= MAX_GROUP:
                    raise BadData(f"{where}: a row group of {group.total_byte_size:,} bytes, at most {MAX_GROUP:,}")
            text = (metadata.metadata or {}).get(KEY.encode())
            if text is None:
                raise BadData(f"{where}: no {KEY!r} metadata, so it was not written by aegen")
            described = read_description(text, where)
            if described.config != shard.name.partition("/")[0]:
                raise BadData(f"{where}: config {described.config!r}")
            return Footer(shard, described, tuple(group.num_rows for group in groups))

    def footers(self, config: ConfigName, split: SplitName) -> list[Footer]:
        """The footers of all shards of a config and split."""
        return [self.read_footer(shard, COLUMNS[config]) for shard in self.select(config, split)]

    def contract(self, footers: list[Footer]) -> Contract:
        """The merged contract of step shards."""
        where = [f"{self.where}/{footer.shard.name}" for footer in footers]
        said = [(name, footer.description) for name, footer in zip(where, footers, strict=True) if footer.description]
        return merge((name, Contract.of(description, name)) for name, description in said)

    def open_steps(self, configs: Iterable[ConfigName], split: SplitName) -> tuple[list[Footer], Contract]:
        """The footers of step shards without their descriptions, and the contract that these make together.

        A description is as large as its vocabulary: kept for every shard, they would fill the memory in the end.
        """
        footers: list[Footer] = []
        described: list[tuple[str, Contract]] = []
        for shard in (shard for config in configs for shard in self.select(config, split)):
            footer, where = self.read_footer(shard, STEP_COLUMNS), f"{self.where}/{shard.name}"
            if footer.description:
                described.append((where, Contract.of(footer.description, where)))
            footers.append(replace(footer, description=None))
            if len(described) == MERGED:
                described = [(described[0][0], merge(described))]
        return footers, merge(described)

    def read(self, shard: Shard, columns: dict[str, str], most: int = MAX_TABLE) -> pa.Table:
        """All rows of one shard; its hash is compared with the manifest's first."""
        with self._open(shard) as file:
            if shard.bytes > most:  # mostly a hole, or rows that are too many too
                raise BadData(f"{self.where}/{shard.name}: {shard.bytes:,} bytes, too many to hold at once")
            # Arrow's own memory: its threads let go of it without Python, also at the end.
            found, content = hashlib.sha256(), pa.allocate_buffer(shard.bytes)
            with pa.FixedSizeBufferWriter(content) as sink:
                while part := file.read(PIECE):
                    sink.write(part)
                    found.update(part)
            self._check_hash(shard, found)
            return self._rows(shard, pa.BufferReader(content), columns, None, most)

    def read_all(self, shards: Iterable[Shard], columns: dict[str, str]) -> pa.Table:
        """All rows of some shards."""
        tables: list[pa.Table] = []
        for shard in shards:
            tables.append(self.read(shard, columns, MAX_TABLE - sum(table.nbytes for table in tables)))
        return pa.concat_tables(tables)

    def check(self, shard: Shard) -> None:
        """Compare the hash of one shard with the manifest's, without keeping its bytes."""
        found = hashlib.sha256()
        with self._open(shard) as file:
            while part := file.read(1 << 20):
                found.update(part)
        self._check_hash(shard, found)

    def _check_hash(self, shard: Shard, found: hashlib._Hash) -> None:
        if found.hexdigest() != shard.sha256:
            raise BadData(f"{self.where}/{shard.name}: altered: its SHA-256 is not the manifest's")

    def read_groups(self, shard: Shard, groups: list[int], most: int = MAX_TABLE) -> pa.Table:
        """Some row groups of one shard of steps, without the rest."""
        with self._open(shard) as file:
            return self._rows(shard, file, STEP_COLUMNS, groups, most)

    def _rows(
        self, shard: Shard, file: pa.NativeFile, columns: dict[str, str], groups: list[int] | None, most: int
    ) -> pa.Table:
        """Some row groups, or all; memory is only taken for as many bytes as they may have."""
        with pq.ParquetFile(file) as reader:
            referring = references(reader.metadata)
            folded = pq.ParquetFile(file, metadata=reader.metadata, read_dictionary=referring)
            tables, taken = [], 0
            for group in range(reader.num_row_groups) if groups is None else groups:
                size = unfolded(folded, group, referring)
                if size > MAX_GROUP or taken + size > most:
                    found = f"rows that unfold to {taken + size:,} bytes, too many to hold at once"
                    raise BadData(f"{self.where}/{shard.name}: {found}")
                tables.append(reader.read_row_group(group, columns=list(columns)))
                tables[-1].validate(full=True)  # Arrow reads any bytes as text; this takes a tenth of the reading
                taken += tables[-1].nbytes
            return pa.concat_tables(tables) if tables else reader.schema_arrow.empty_table().select(list(columns))

    @contextmanager
    def _open(self, shard: Shard) -> Iterator[Any]:
        where, path = f"{self.where}/{shard.name}", f"{self.root}/{shard.name}"
        try:
            with self.filesystem.open(path, "rb") as raw, pa.PythonFile(raw, mode="r") as file:
                size = file.size()
                if size != shard.bytes:
                    raise BadData(f"{where}: {size:,} bytes, the manifest says {shard.bytes:,}")
                file.seek(max(size - 8, 0))
                tail = file.read(8)
                if tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") > min(MAX_FOOTER, size):
                    raise BadData(f"{where}: not a Parquet file")
                file.seek(0)
                yield file
        except FileNotFoundError as error:
            raise BadData(f"{where}: the manifest lists it, but it is missing") from error
        except Exception as error:
            if not self._understood(error):
                raise
            raise BadData(f"{where}: {one_line(error)}") from error

    def _understood(self, error: Exception) -> bool:
        """Whether an error says that a file cannot be read; every storage far away has some of its own."""
        return not isinstance(error, TrainerError) and ("://" in self.where or isinstance(error, DAMAGED))

    def hashes(self, config: ConfigName, split: SplitName) -> dict[str, str]:
        """The SHA-256 of each shard, as the manifest has them."""
        return {shard.name: shard.sha256 for shard in self.select(config, split)}


def leading(footers: list[Footer], rows: int | None) -> list[Footer]:
    """The first shards with no more than so many rows together, but at least one that has some; without a limit all."""
    kept: list[Footer] = []
    total = 0
    for footer in footers:
        if rows is not None and total and total + footer.shard.rows > rows:
            break
        kept.append(footer)
        total += footer.shard.rows
    return kept


def same_type(found: pa.DataType, needed: pa.DataType) -> bool:
    """Whether a column can be read as the contract's type; string widths and list field names may vary."""
    if pa.types.is_list(needed):
        return (pa.types.is_list(found) or pa.types.is_large_list(found)) and same_type(
            found.value_type, needed.value_type
        )
    if pa.types.is_string(needed):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    return bool(found == needed)
