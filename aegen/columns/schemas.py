"""The columns of each config of a dataset, as Arrow schemas."""

from __future__ import annotations

import pyarrow as pa

from aegen.core.format import ANNOTATION_COLUMNS, COLUMNS, PAIR_COLUMNS, SOURCE_COLUMNS, STEP_COLUMNS

_TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "string": pa.string(),
    "list<string>": pa.list_(pa.string()),
}


def schema(columns: dict[str, str]) -> pa.Schema:
    """The Arrow schema of columns that the format names."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])


PAIRS, STEPS, SOURCES = schema(PAIR_COLUMNS), schema(STEP_COLUMNS), schema(SOURCE_COLUMNS)
ANNOTATIONS = schema(ANNOTATION_COLUMNS)
SCHEMAS: dict[str, pa.Schema] = {config: schema(columns) for config, columns in COLUMNS.items()}
