"""How the files of a dataset are named."""

from __future__ import annotations

import re

from aegen.columns.schemas import SCHEMAS
from aegen.core.errors import BadData
from aegen.core.format import SPLITS

SHARD_NAME = re.compile(r"([a-z_]+)/([a-z]+)-[0-9]{5,}-of-[0-9]{5,}\.parquet")  # leads nowhere but into its folder


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
