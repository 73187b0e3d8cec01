"""Write the demonstrations of pairs, shard by shard: TG and TA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from aegen.arithmetic.rules import writable_tokens
from aegen.core.actions import load_design
from aegen.core.progress import Progress, silent
from aegen.core.types import SpecTree
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import FileInfo
from aegen.dataset.shards import Description, open_shard, read_batches, text_facts, write_shard
from aegen.engines.local import Engine
from aegen.experts.augment import Augmentation
from aegen.experts.demonstrations import BATCH, _steps
from aegen.experts.expert import Expert
from aegen.experts.metrics import load_metric
from aegen.experts.trajectory import Pairs, Summary
from aegen.files.places import Remote
from aegen.pipeline.resume import write_missing


def write_demonstrations_shard(
    pairs: Path | Remote, path: Path | Remote, spec: SpecTree, expert: Expert, augmentation: Augmentation | None
) -> list[FileInfo]:
    """One shard of ``expert``, ``variants_expert`` or, with an augmentation, ``augmented``: its path says which."""
    config, kind = path.parent.name, pairs.parent.name
    file, about = open_shard(pairs, kind)
    file.close()
    facts = text_facts(about, pairs)
    metric, design, summary = load_metric(expert.metric), load_design(expert.design), Summary()

    def batches() -> Iterator[pa.RecordBatch]:
        for group in read_batches(pairs, kind):
            for start in range(0, len(group), BATCH):
                yield from _steps(Pairs.of(group.slice(start, BATCH)), metric, design, augmentation, summary)

    def describe() -> Description:
        tokens = frozenset(summary.state_tokens)
        return {
            **facts,
            "config": config,
            "spec": spec,
            "metric": expert.metric,
            "backend": metric.backend,
            "design": design.name,
            "slots": list(design.slots),
            "state_tokens": sorted(tokens),
            "action_tokens": sorted(summary.action_tokens),
            "writable": sorted(writable_tokens(facts["task"], design, tokens)),
            "max_state": summary.max_state,
            "action_length": len(design.slots),
            "max_steps": summary.max_steps,
            **({"capped_pairs": summary.capped_pairs} if augmentation else {}),
        }

    return [write_shard(path, config, batches(), describe)]


def write_demonstrations(
    folder: Folder,
    spec: SpecTree,
    names: list[str],
    expert: Expert,
    augmentation: Augmentation | None,
    engine: Engine,
    progress: Progress = silent,
) -> dict[str, FileInfo]:
    """Demonstrations for these shards of pairs and variants: the expert's or, with an augmentation, ``augmented``."""
    config = "augmented" if augmentation else "expert"
    calls: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for name in names:
        made = renamed(name, "variants_expert" if name.startswith("variants/") else config)
        calls[(made,)] = (folder / name, folder / made, spec, expert, augmentation)
    return write_missing(folder, spec, engine, progress, config, write_demonstrations_shard, calls)


def renamed(name: str, config: str) -> str:
    """The shard of another config that belongs to a shard."""
    return f"{config}/{name.partition('/')[2]}"
