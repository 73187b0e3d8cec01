"""What may not occur twice: equations in a dataset, sources in two splits."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.core.errors import BadData
from aegen.core.format import SPLITS
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest
from aegen.dataset.shards import read_batches
from aegen.dataset.verify.tasks import equation_numbers
from aegen.pairs.sources import candidates
from aegen.pairs.spec import Spec

Digests = npt.NDArray[np.bytes_]
DIGEST = np.dtype("S16")
SPLIT_PAIRS = (("train", "validation"), ("train", "test"), ("validation", "test"))


def check_unique(folder: Folder, manifest: Manifest, spec: Spec) -> None:
    numbers = [
        equation_numbers(batch.column("target"), spec)
        for name in manifest.shards("pairs")
        for batch in read_batches(folder / name, "pairs")
    ]
    everything = np.sort(np.concatenate(numbers))
    repeated = int((np.diff(everything) == 0).sum())
    if repeated:
        raise BadData(f"{folder.path}: {repeated} equations occur twice")


def overlaps(folder: Folder, manifest: Manifest) -> dict[str, int]:
    """Distinct sources that two splits share, for each pair of splits."""
    distinct: dict[str, Digests] = {split: _distinct_sources(folder, manifest, "pairs", split) for split in SPLITS}
    found = {}
    for left, right in SPLIT_PAIRS:
        found[f"{left}/{right}"] = _in_common(distinct[left], distinct[right])
    return found


def leaking_variants(folder: Folder, manifest: Manifest) -> int:
    """Distinct sources of variants, all of them for training, that another split has too."""
    mine = _distinct_sources(folder, manifest, "variants", "train")
    others = [_distinct_sources(folder, manifest, "pairs", split) for split in SPLITS[1:]]
    return sum(_in_common(mine, other) for other in others)


def check_all_sources(folder: Folder, manifest: Manifest, spec: Spec | None) -> None:
    """No source occurs twice, and those of a spec come in its order."""
    names, found = manifest.shards("sources"), _distinct_sources(folder, manifest, "sources", "train")
    if len(found) != manifest.rows("sources"):
        raise BadData(f"{folder.path}: {manifest.rows('sources') - len(found)} sources occur twice")
    if spec is None:
        return
    drawn = candidates(spec)
    for name in names:
        for batch in read_batches(folder / name, "sources", ["source"]):
            for text in batch.column("source").to_pylist():
                if text not in drawn:  # goes on to the next one that equals it
                    raise BadData(f"{folder / name}: {text!r} is not a source of the spec, or not in its order")


def _distinct_sources(folder: Folder, manifest: Manifest, config: str, split: str) -> Digests:
    """One digest for each, sorted: the texts would not fit into memory."""
    parts = [np.empty(0, dtype=DIGEST)]
    for name in manifest.shards(config, split):
        for batch in read_batches(folder / name, config, ["source"]):
            parts.append(_distinct(_digests(batch.column("source"))))
    return _distinct(np.concatenate(parts))


def _digests(texts: pa.StringArray) -> Digests:
    raw = [blake2b(text, digest_size=DIGEST.itemsize).digest() for text in texts.cast(pa.binary()).to_pylist()]
    return np.array(raw, dtype=DIGEST)


def _distinct(digests: Digests) -> Digests:
    digests.sort()  # numpy.unique takes several times as long
    new = np.ones(len(digests), dtype=np.bool_)
    new[1:] = digests[1:] != digests[:-1]
    return digests[new]


def _in_common(left: Digests, right: Digests) -> int:
    return len(np.intersect1d(left, right, assume_unique=True))
