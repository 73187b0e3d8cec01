"""Is a dataset what it claims to be? The whole first (hashes, schemas, files), then the meaning of every row."""

from aegen.dataset.verify.distinct import SPLIT_PAIRS, overlaps
from aegen.dataset.verify.whole import check_whole, verify

__all__ = ["SPLIT_PAIRS", "check_whole", "overlaps", "verify"]
