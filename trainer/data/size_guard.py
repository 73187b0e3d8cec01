"""How many bytes the rows of a shard take in memory, found out before they take them.

A dictionary lets a file of a few kilobytes stand for gigabytes, so its references are counted while they are such.
``aegen`` counts in the same way; the packages share nothing but the datasets.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MAX_RAW = 1 << 30  # bytes of one row group, uncompressed and without dictionaries
PART = 1 << 16  # rows of which references are counted at once
# How texts may be encoded: as long as they are, or as references to a dictionary. What else there is can be a few bytes
# that stand for gigabytes.
PLAIN = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
REFERENCES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def leaves(metadata: pq.FileMetaData, group: int) -> Iterator[pq.ColumnChunkMetaData]:
    """What the footer says of the columns of a row group."""
    row_group = metadata.row_group(group)
    return map(row_group.column, range(row_group.num_columns))


def references(metadata: pq.FileMetaData) -> list[str]:
    """The columns of texts that refer to a dictionary: a few bytes of them can stand for gigabytes."""
    found = set()
    for column in (column for group in range(metadata.num_row_groups) for column in leaves(metadata, group)):
        if column.physical_type == "BYTE_ARRAY" and ({*column.encodings} - PLAIN or column.has_dictionary_page):
            if foreign := {*column.encodings} - PLAIN - REFERENCES:
                raise ValueError(f"texts encoded as {', '.join(sorted(foreign))}")
            found.add(column.path_in_schema)
    return sorted(found)


def unfolded(folded: pq.ParquetFile, group: int, referring: list[str]) -> int:
    """Bytes of a row group's values, at most, and of all texts that they refer to; its references stay such."""
    size = 0
    for column in leaves(folded.metadata, group):
        size += max(column.total_uncompressed_size, 8 * column.num_values)
        if size > MAX_RAW:
            break
        if column.path_in_schema in referring:
            size += referred(folded, group, column.path_in_schema.partition(".")[0], column.num_values)
    return size


def referred(folded: pq.ParquetFile, group: int, name: str, count: int) -> int:
    """Bytes of the texts that a column refers to: as if all were the longest, or exact where that would be too many."""
    first = next(texts(folded, group, name, 1), None)
    if first is not None and first.null_count < len(first):  # what is empty shows no dictionary
        most: int = count * pc.max(pc.binary_length(first.dictionary)).as_py()
        if most <= MAX_RAW:
            return most
    parts = texts(folded, group, name, PART)
    return sum(pc.sum(pc.binary_length(part.dictionary).take(part.indices)).as_py() or 0 for part in parts)


def texts(folded: pq.ParquetFile, group: int, name: str, rows: int) -> Iterator[pa.Array]:
    """The values of a column of texts or of lists of them, so many rows at a time."""
    for batch in folded.iter_batches(batch_size=rows, row_groups=[group], columns=[name], use_threads=False):
        found = batch.column(0)
        yield found.flatten() if pa.types.is_list(found.type) or pa.types.is_large_list(found.type) else found
