"""How the files of a dataset are named."""

from __future__ import annotations

from typing import cast

from aegen.core.errors import BadData, InvalidSpec
from aegen.core.format import SHARD, SPLITS, ConfigName, SplitName


def shard_name(config: str, split: str, index: int, total: int) -> str:
    """The path of a shard within its folder.

    >>> shard_name("pairs", "train", 0, 1)
    'pairs/train-00000-of-00001.parquet'
    """
    return f"{config}/{split}-{index:05}-of-{total:05}.parquet"


def shard_parts(name: str) -> tuple[ConfigName, SplitName]:
    """Config and split of a shard; an error for any other name."""
    match = SHARD.fullmatch(name)
    if not match:
        example = shard_name("pairs", "train", 0, 1)
        raise BadData(f"{ascii(name[:80])[1:-1]}: not a shard name, expected for example {example}")
    return cast(ConfigName, match[1]), cast(SplitName, match[2])


def check_split(split: str) -> None:
    """Refuse a split that no dataset has: its rows would be none, without a word."""
    if split not in SPLITS:
        raise InvalidSpec(f"split={str(split)[:60]}: expected one of {', '.join(SPLITS)}")


def shard_of(name: str, config: str) -> str:
    """The shard of another config that holds the same pairs.

    >>> shard_of("pairs/train-00000-of-00001.parquet", "expert")
    'expert/train-00000-of-00001.parquet'
    """
    return f"{config}/{name.partition('/')[2]}"


def shard_order(name: str) -> tuple[str, int]:
    """The sort key of shards: numbers from 100,000 on have more digits.

    >>> sorted([shard_name("pairs", "train", index, 100_001) for index in (100_000, 99_999)], key=shard_order)[0]
    'pairs/train-99999-of-100001.parquet'
    """
    start, _, rest = name.partition("-")
    return start, int(rest.partition("-")[0])
