"""The columns of each config of a dataset."""

from __future__ import annotations

import pyarrow as pa

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
