"""Write token-level tags of pairs, shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from aegen.arithmetic.rules import writable_tokens
from aegen.columns.schemas import STEPS
from aegen.core.escape import split_state
from aegen.core.types import SpecTree
from aegen.dataset.manifest import FileInfo
from aegen.dataset.shards import Description, open_shard, read_batches, text_facts, write_shard
from aegen.experts.metrics import Metric, load_metric
from aegen.experts.tags import TAGS, rounds
from aegen.experts.trajectory import Summary

BATCH = 1024  # pairs at a time; has no influence on the rows


def write_tags_shard(pairs: Path, path: Path, spec: SpecTree, metric_name: str) -> list[FileInfo]:
    """One shard of ``tags``: a pure function of the shard of pairs with the same name."""
    file, about = open_shard(pairs, "pairs")
    file.close()
    facts = text_facts(about, pairs)
    metric, summary = load_metric(metric_name), Summary()

    def batches() -> Iterator[pa.RecordBatch]:
        for group in read_batches(pairs, "pairs"):
            for start in range(0, len(group), BATCH):
                rows = list(_rows(group.slice(start, BATCH), metric, summary))
                yield pa.RecordBatch.from_pylist(rows, schema=STEPS)

    def describe() -> Description:
        tokens = frozenset(summary.state_tokens)
        return {
            **facts,
            "config": "tags",
            "spec": spec,
            "metric": metric_name,
            "backend": metric.backend,
            "design": TAGS.name,
            "slots": list(TAGS.slots),
            "state_tokens": sorted(tokens),
            "action_tokens": sorted(summary.action_tokens),
            "writable": sorted(writable_tokens(facts["task"], TAGS, tokens)),
            "max_state": summary.max_state,
            "action_length": summary.max_state + 1,
            "max_steps": summary.max_steps,
        }

    return [write_shard(path, "tags", batches(), describe)]


def _rows(batch: pa.RecordBatch, metric: Metric, summary: Summary) -> Iterator[dict[str, Any]]:
    for pair, source, target in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        steps = rounds(split_state(source), split_state(target), metric)
        summary.max_steps = max(summary.max_steps, len(steps))
        for number, (state, tags) in enumerate(steps):
            summary.state_tokens.update(state)
            summary.action_tokens.update(tags)
            summary.max_state = max(summary.max_state, len(state))
            yield {"pair": pair, "origin": 0, "step": number, "state": " ".join(state), "action": list(tags)}
