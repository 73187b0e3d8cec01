"""How many bytes the rows of a Parquet file will take in memory, computed before they are read.

A dictionary lets a file of a few kilobytes expand to gigabytes, so the references to it are counted before they are
expanded. ``aegen`` and ``trainer`` carry this file byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .format import MAX_GROUP

COUNTED = 1 << 16  # rows of which references are counted at once
# Texts may be stored in full, or as references to a dictionary. Other encodings can expand a few bytes to gigabytes.
PLAIN = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
REFERENCES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def _columns(metadata: pq.FileMetaData, group: int, wanted: list[str] | None) -> Iterator[pq.ColumnChunkMetaData]:
    row_group = metadata.row_group(group)
    for column in map(row_group.column, range(row_group.num_columns)):
        if wanted is None or any(f"{column.path_in_schema}.".startswith(f"{name}.") for name in wanted):
            yield column


def references(metadata: pq.FileMetaData, wanted: list[str] | None = None) -> list[str]:
    """The columns of texts that refer to a dictionary: a few bytes of them can stand for gigabytes."""
    found = set()
    for column in (column for group in range(metadata.num_row_groups) for column in _columns(metadata, group, wanted)):
        if column.physical_type == "BYTE_ARRAY" and ({*column.encodings} - PLAIN or column.has_dictionary_page):
            if foreign := {*column.encodings} - PLAIN - REFERENCES:
                raise ValueError(f"texts encoded as {', '.join(sorted(foreign))}")
            found.add(column.path_in_schema)
    return sorted(found)


def unfolded(folded: pq.ParquetFile, group: int, referring: list[str], wanted: list[str] | None = None) -> int:
    """Bytes of a row group's values, at most, and of all texts that they refer to; its references stay such."""
    size, names = 0, set(folded.schema_arrow.names)
    for column in _columns(folded.metadata, group, wanted):
        size += max(column.total_uncompressed_size, 8 * column.num_values)
        if size > MAX_GROUP:
            break
        if column.path_in_schema in referring:
            path = column.path_in_schema  # strangers may have a dot in a name
            size += _referred(folded, group, path if path in names else path.partition(".")[0], column.num_values)
    return size


def _referred(folded: pq.ParquetFile, group: int, name: str, count: int) -> int:
    """Bytes of the texts that a column refers to: as if all were the longest, or exact where that would be too many."""
    first = next(_texts(folded, group, name, 1), None)
    if first is not None and first.null_count < len(first):  # what is empty shows no dictionary
        most: int = count * pc.max(pc.binary_length(first.dictionary)).as_py()
        if most <= MAX_GROUP:
            return most
    parts = _texts(folded, group, name, COUNTED)
    return sum(pc.sum(pc.binary_length(part.dictionary).take(part.indices)).as_py() or 0 for part in parts)


def _texts(folded: pq.ParquetFile, group: int, name: str, rows: int) -> Iterator[pa.Array]:
    for batch in folded.iter_batches(batch_size=rows, row_groups=[group], columns=[name], use_threads=False):
        texts = batch.column(name)
        nested = pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type)
        yield texts.flatten() if nested else texts
