"""A shard's footer counts its rows."""

from __future__ import annotations

from pathlib import Path

from aegen.core.errors import BadData
from aegen.dataset.counts import Counts
from aegen.dataset.footers import shard_counts
from aegen.files.places import Remote

Place = Path | Remote


def check_counts(path: Place, config: str, counted: Counts) -> None:
    """The footer's counts are those of the rows."""
    stored = shard_counts(path, config)
    for field in Counts.__struct_fields__:
        said, found = getattr(stored, field), getattr(counted, field)
        if said != found:
            raise BadData(f"{path}: field counts.{field} is {str(said)[:99]}, expected {str(found)[:99]}")
