"""The formats in which text pairs come. A reader yields rows one by one and says where each was found."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from aegen.errors import BadData, InvalidSpec, MissingExtra
from aegen.shards import DAMAGED, check_footer, first_line, unfolding

if TYPE_CHECKING:
    from aegen.importers import Import

MAX_LINE = 1 << 24  # bytes of one line that a reader is willing to hold


@dataclass(frozen=True)
class Row:
    """A pair as it was found; ``problem`` says why it cannot be one."""

    where: str
    source: str = ""
    target: str = ""
    split: str | None = None
    problem: str = ""


class Reader(Protocol):
    """One format; ``options`` are the settings that it depends on."""

    @property
    def kind(self) -> str: ...

    @property
    def options(self) -> dict[str, Any]: ...

    def rows(self) -> Iterator[Row]: ...

    def inputs(self) -> list[dict[str, str]]: ...


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
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


def _open(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None


def _without_ending(line: bytes) -> bytes:
    """A line without the one line break that ends it."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _digests(*paths: Path) -> list[dict[str, str]]:
    found = []
    for path in paths:
        if any("\ud800" <= character <= "\udfff" for character in path.name):
            raise BadData(f"{ascii(path.name)[1:-1]}: a name that is not UTF-8, which nobody could record; rename it")
        try:
            with path.open("rb") as file:
                found.append({"name": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()})
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}") from None
    return found


@dataclass(frozen=True)
class Parallel:
    """Two text files, line by line."""

    source: Path
    target: Path
    split: str | None = None
    kind: ClassVar[str] = "parallel"
    options: ClassVar[dict[str, Any]] = {}

    def rows(self) -> Iterator[Row]:
        missing = ("", "", "missing")
        for left, right in zip_longest(_lines(self.source), _lines(self.target), fillvalue=missing):
            if "missing" in (left[2], right[2]):
                longer, shorter = (left, self.target) if right is missing else (right, self.source)
                yield Row(longer[0], problem=f"{shorter.name} has fewer lines")
                continue
            problem = left[2] or right[2]
            if not problem and (not left[1] or not right[1]):
                problem = "an empty line"
            yield Row(right[0] if right[2] or not right[1] else left[0], left[1], right[1], self.split, problem)

    def inputs(self) -> list[dict[str, str]]:
        return _digests(self.source, self.target)


@dataclass(frozen=True)
class Released:
    """A folder in the layout of the paper's authors: ``train_x.txt``, ``train_y.txt``, ``val_…``, ``test_…``."""

    folder: Path
    kind: ClassVar[str] = "released"
    options: ClassVar[dict[str, Any]] = {}
    names: ClassVar[dict[str, str]] = {"train": "train", "val": "validation", "test": "test"}

    def _parts(self) -> list[Parallel]:
        there = [name for name in self.names if (self.folder / f"{name}_x.txt").exists()]
        if not there:
            raise BadData(f"{self.folder}: no train_x.txt, val_x.txt or test_x.txt in it")
        return [
            Parallel(self.folder / f"{name}_x.txt", self.folder / f"{name}_y.txt", self.names[name]) for name in there
        ]

    def rows(self) -> Iterator[Row]:
        for part in self._parts():
            yield from part.rows()

    def inputs(self) -> list[dict[str, str]]:
        return [entry for part in self._parts() for entry in part.inputs()]


class _RowByRow:
    """The lines of a file for ``csv``, which holds a whole row: whoever has read one says so."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.held = file, 0  # characters of the row

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.file.readline(MAX_LINE)
        self.held += len(line)
        if self.held >= MAX_LINE:
            raise csv.Error(f"a row of more than {MAX_LINE:,} characters")
        if not line:
            raise StopIteration
        return line


class _Tsv(csv.excel_tab):
    """Never quoted: a tab ends a field, a line break ends a row, and a quotation mark is a character."""

    quoting = csv.QUOTE_NONE


@dataclass(frozen=True)
class Table:
    """CSV, TSV, JSONL or Parquet with a column of sources and a column of targets, and perhaps one called split."""

    path: Path
    kind: str
    source: str
    target: str

    @property
    def options(self) -> dict[str, Any]:
        return {"source_column": self.source, "target_column": self.target}

    def rows(self) -> Iterator[Row]:
        records = {"csv": self._csv, "tsv": self._csv, "jsonl": self._jsonl, "parquet": self._parquet}[self.kind]
        for where, record, problem in records():
            row = Row(f"{self.path.name}:{where}", problem=problem)
            if not problem:
                row = self._row(row, record)
            yield row

    def _row(self, row: Row, record: dict[str, Any]) -> Row:
        for name in (self.source, self.target):
            if name not in record:
                return replace(row, problem=f"no column {name!r}")
            if not isinstance(record[name], str):
                return replace(row, problem=f"column {name!r} holds no text")
        split = record.get("split")
        if split is not None and split not in ("train", "validation", "test"):
            return replace(row, problem="split is none of train, validation, test")
        return replace(row, source=record[self.source], target=record[self.target], split=split)

    def _csv(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        dialect = _Tsv if self.kind == "tsv" else csv.excel
        csv.field_size_limit(MAX_LINE)
        # Bytes that are no UTF-8 come through as characters that the importer refuses, row by row.
        with _open(self.path) as file:
            lines = _RowByRow(file)
            reader = csv.reader(lines, dialect=dialect, strict=True)
            try:
                header = next(reader, [])
                self._check_columns(header)
                for fields in reader:
                    lines.held = 0
                    if fields:  # not an empty line
                        problem = "" if len(fields) == len(header) else "another number of columns than the header"
                        yield reader.line_num, dict(zip(header, fields, strict=False)), problem
            except csv.Error as error:
                raise BadData(f"{self.path.name}:{max(1, reader.line_num)}: {error}") from None

    def _check_columns(self, there: list[str]) -> None:
        for name in (self.source, self.target):
            if name not in there:
                raise BadData(f"{self.path.name}: no column {name!r}; there are {', '.join(map(repr, there))}")

    def _jsonl(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        for number, (_, text, problem) in enumerate(_lines(self.path), start=1):
            yield (number, {}, problem) if problem else (number, *self._json(text))

    @staticmethod
    def _json(text: str) -> tuple[dict[str, Any], str]:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return {}, "not valid JSON"
        return (record, "") if isinstance(record, dict) else ({}, "not a JSON object")

    def _parquet(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        try:
            check_footer(self.path)
            with pq.ParquetFile(self.path) as file:
                names = self._text_columns(file.schema_arrow)
                number = 0
                for batch in unfolding(self.path, file, names):
                    columns = [batch.column(name).cast(pa.large_binary()).to_pylist() for name in names]
                    for cells in zip(*columns, strict=True):
                        number += 1
                        yield number, *self._decoded(names, cells)
        except DAMAGED as error:
            raise BadData(f"{self.path}: not a readable Parquet file ({first_line(error)})") from None

    def _text_columns(self, schema: pa.Schema) -> list[str]:
        """Those that are read; what is nested or no text could take any memory."""
        self._check_columns(schema.names)
        names = [name for name in dict.fromkeys((self.source, self.target, "split")) if name in schema.names]
        if "split" in names and schema.field("split").type == pa.null():
            names.remove("split")
        for name in names:
            kind = schema.field(name).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if kind not in (pa.string(), pa.large_string(), pa.string_view()):
                raise BadData(f"{self.path.name}: column {name!r} holds no text")
        return names

    @staticmethod
    def _decoded(names: list[str], cells: tuple[bytes | None, ...]) -> tuple[dict[str, Any], str]:
        """A record; bytes that are no UTF-8 come through as they do from CSV."""
        if any(len(cell) > MAX_LINE for cell in cells if cell):
            return {}, f"a text of more than {MAX_LINE:,} bytes"
        texts = (cell if cell is None else cell.decode(errors="surrogateescape") for cell in cells)
        return dict(zip(names, texts, strict=True)), ""

    def inputs(self) -> list[dict[str, str]]:
        return _digests(self.path)


@dataclass(frozen=True)
class M2:
    """The M2 format of grammatical error correction: ``S`` a sentence, ``A`` the edits of an annotator."""

    path: Path
    annotator: int = 0
    kind: ClassVar[str] = "m2"

    @property
    def options(self) -> dict[str, Any]:
        return {"annotator": self.annotator}

    def rows(self) -> Iterator[Row]:
        block: list[tuple[str, str, str]] = []
        for line in _lines(self.path):
            _, text, problem = line
            if block and not problem and (not text or text.startswith("S ")):
                yield self._read(block)
                block = []
            if text or problem:
                block.append(line)
        if block:
            yield self._read(block)

    def _read(self, block: list[tuple[str, str, str]]) -> Row:
        """One sentence and its edits; what is wrong with one line is wrong with all of them."""
        edits = []
        for number, (where, text, problem) in enumerate(block):
            if problem or not text.startswith("A " if number else "S "):
                return Row(where, problem=problem or "a line that begins with neither S nor A, or not where it should")
            if number:
                edit, trouble = self._edit(text)
                if trouble:
                    return Row(where, problem=trouble)
                if edit:
                    edits.append(edit)
        return self._corrected(Row(block[0][0], source=block[0][1][2:]), edits)

    def _edit(self, text: str) -> tuple[tuple[int, int, list[str]] | None, str]:
        fields = text[2:].split("|||")
        try:
            start, stop = map(int, fields[0].split())
            annotator = int(fields[5])
        except (ValueError, IndexError):
            return None, "an edit that cannot be read"
        if annotator != self.annotator or fields[1] == "noop" or start < 0:
            return None, ""
        written = fields[2].split("||")[0]  # the first of several alternatives
        return (start, stop, written.split(" ") if written not in ("", "-NONE-") else []), ""

    @staticmethod
    def _corrected(row: Row, edits: list[tuple[int, int, list[str]]]) -> Row:
        words, target, reached = row.source.split(" "), [], 0
        for start, stop, new in sorted(edits, key=lambda edit: edit[:2]):
            if not reached <= start <= stop <= len(words):
                return replace(row, problem="edits that overlap or lie outside the sentence")
            target += words[reached:start] + new
            reached = stop
        return replace(row, target=" ".join(target + words[reached:]))

    def inputs(self) -> list[dict[str, str]]:
        return _digests(self.path)


@dataclass(frozen=True)
class HubDataset:
    """A dataset that the package ``datasets`` loads: a hub id or a folder."""

    name: str
    source: str
    target: str
    kind: ClassVar[str] = "datasets"

    @property
    def options(self) -> dict[str, Any]:
        return {"source_column": self.source, "target_column": self.target}

    def _load(self) -> Any:
        try:
            import datasets
        except ImportError:
            raise MissingExtra.of("datasets", "hub") from None
        name, _, config = self.name.partition(":")
        try:
            if (Path(name) / "dataset_dict.json").exists() or (Path(name) / "state.json").exists():
                loaded = datasets.load_from_disk(name)
            else:
                loaded = datasets.load_dataset(name, config or None)
        except Exception as error:  # whatever it stumbles over in a stranger's folder, of which it checks little
            raise self._refused(error) from None
        return loaded if isinstance(loaded, dict) else {"": loaded}

    def _refused(self, error: Exception) -> BadData:
        return BadData(
            f"{self.name}: the package datasets cannot read it ({type(error).__name__}: {first_line(error)})"
        )

    def rows(self) -> Iterator[Row]:
        for split, data in self._load().items():
            for name in (self.source, self.target):
                if name not in data.column_names:
                    raise BadData(
                        f"{self.name}: no column {name!r}; there are {', '.join(map(repr, data.column_names))}"
                    )
            known = split if split in ("train", "validation", "test") else None
            for number, (source, target) in enumerate(self._pairs(data), start=1):
                row = Row(f"{self.name}/{split or 'all'}:{number}", split=known)
                if isinstance(source, str) and isinstance(target, str):
                    yield replace(row, source=source, target=target)
                else:
                    yield replace(row, problem="no text")

    def _pairs(self, data: Any) -> Iterator[tuple[Any, Any]]:
        try:
            for record in data:
                yield record[self.source], record[self.target]
        except Exception as error:
            raise self._refused(error) from None

    def inputs(self) -> list[dict[str, str]]:
        return [{"name": Path(self.name).name, "sha256": "-".join(data._fingerprint for data in self._load().values())}]


SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet", ".m2": "m2"}
KINDS = ("auto", "released", "parallel", "csv", "tsv", "jsonl", "parquet", "m2", "datasets")


def open_reader(wanted: Import) -> Reader:
    """The reader for these paths: by the asked kind, or by what they look like."""
    paths, kind = wanted.paths, wanted.kind
    if kind not in KINDS:
        raise InvalidSpec(f"kind={kind}: expected one of {', '.join(KINDS)}")
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InvalidSpec(f"{path}: import reads its input several times, which a pipe does not allow; use a file")
    if kind == "auto":
        kind = _guess(paths)
    if len(paths) != (2 if kind == "parallel" else 1):
        raise InvalidSpec(f"{kind} takes {'two files' if kind == 'parallel' else 'one path'}, not {len(paths)}")
    match kind:
        case "parallel":
            return Parallel(paths[0], paths[1])
        case "released":
            return Released(paths[0])
        case "m2":
            return M2(paths[0], wanted.annotator)
        case "datasets":
            return HubDataset(str(paths[0]), wanted.source_column, wanted.target_column)
    return Table(paths[0], kind, wanted.source_column, wanted.target_column)


def _guess(paths: tuple[Path, ...]) -> str:
    if len(paths) == 2:
        return "parallel"
    path = paths[0]
    if any((path / f"{name}_x.txt").exists() for name in Released.names):
        return "released"
    if path.suffix in SUFFIXES and not path.is_dir():
        return SUFFIXES[path.suffix]
    if path.is_file():
        raise InvalidSpec(f"{path.name}: cannot tell its format; say --kind {' | '.join(KINDS[1:])}")
    if not path.exists() and not re.fullmatch(r"[\w.-]+/[\w.-]+(:[\w.-]+)?", str(path)):
        raise BadData(f"{path}: No such file or directory, and not the id of a dataset (owner/name)")
    return "datasets"
