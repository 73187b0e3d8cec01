"""Tables with a column of sources and one of targets: CSV, TSV, JSON lines, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from aegen.core.errors import BadData
from aegen.core.format import SPLITS
from aegen.files.parquet import DAMAGED, check_footer, unfolding
from aegen.files.places import short
from aegen.pairs import rows
from aegen.pairs.rows import Row, digests, lines_of, open_text
from aegen.pairs.spec import InputFile


class _RowByRow:
    """The lines of a file for ``csv``, which buffers a whole row: the consumer resets ``held`` after each."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.held = file, 0  # characters of the row

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.file.readline(rows.MAX_LINE)
        self.held += len(line)
        if self.held >= rows.MAX_LINE:
            raise csv.Error(f"a row of more than {rows.MAX_LINE:,} characters")
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
        if split is not None and split not in SPLITS:
            return replace(row, problem=f"split: expected one of {', '.join(SPLITS)}")
        return replace(row, source=record[self.source], target=record[self.target], split=split)

    def _csv(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        dialect = _Tsv if self.kind == "tsv" else csv.excel
        csv.field_size_limit(rows.MAX_LINE)
        # Bytes that are no UTF-8 come through as characters that the importer refuses, row by row.
        with open_text(self.path) as file:
            lines = _RowByRow(file)
            reader = csv.reader(lines, dialect=dialect, strict=True)
            try:
                header = next(reader, [])
                self._check_columns(header)
                for fields in reader:
                    lines.held = 0
                    if fields:  # not an empty line
                        problem = "" if len(fields) == len(header) else "wrong number of columns"
                        yield reader.line_num, dict(zip(header, fields, strict=False)), problem
            except csv.Error as error:
                raise BadData(f"{self.path.name}:{max(1, reader.line_num)}: {error}") from None

    def _check_columns(self, there: list[str]) -> None:
        for name in (self.source, self.target):
            if name not in there:
                raise BadData(f"{self.path.name}: no column {name!r}; there are {', '.join(map(repr, there))}")

    def _jsonl(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        for number, (_, text, problem) in enumerate(lines_of(self.path), start=1):
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
            raise BadData(f"{self.path}: not a readable Parquet file ({short(error)})") from None

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
        if any(len(cell) > rows.MAX_LINE for cell in cells if cell):
            return {}, f"a text of more than {rows.MAX_LINE:,} bytes"
        texts = (cell if cell is None else cell.decode(errors="surrogateescape") for cell in cells)
        return dict(zip(names, texts, strict=True)), ""

    def inputs(self) -> tuple[InputFile, ...]:
        return digests(self.path)
