"""From pairs on disk to the configs ``expert`` (TG) and ``augmented`` (TG and TA), shard by shard.

A shard of demonstrations is a pure function of the shard of pairs with the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aegen.actions import Design, load_design
from aegen.augment import Augmentation, augmented_starts
from aegen.engine import Engine
from aegen.environment import writable_tokens
from aegen.equation import Integers
from aegen.errors import BadData, InvalidSpec
from aegen.folder import Folder, SpecTree, write_missing
from aegen.lattice import certain, lattice_batch, steps_of_all
from aegen.metrics import Metric, load_metric
from aegen.progress import Progress, silent
from aegen.remote import Remote
from aegen.shards import Description, FileInfo, open_shard, read_batches, text_facts, write_shard
from aegen.trajectory import Pairs, Summary, expert_starts, step_batch

BATCH = 1024  # pairs at a time; has no influence on the rows
PORTION = 1 << 22  # tokens of states that are held at once, about
TASK_DEFAULTS = {"aor": ("levenshtein", "insert"), "aes": ("span", "span"), "aec": ("levenshtein", "edit")}
TEXT_DEFAULTS = ("levenshtein", "edit")
# How many tokens the edits of a metric remove and add; a user's own may do anything.
EDITS = {"levenshtein": ((0, 1), (1, 0), (1, 1)), "lcs": ((0, 1), (1, 0)), "span": ((3, 1),)}


@dataclass(frozen=True)
class Expert:
    """Who demonstrates, and in which words: the metric and the action design."""

    metric: str
    design: str

    @classmethod
    def of(cls, task: str, metric: str | None = None, design: str | None = None) -> Expert:
        """The paper's choice for a task, where nothing else is asked.

        >>> Expert.of("aes"), Expert.of("text", metric="lcs")
        (Expert(metric='span', design='span'), Expert(metric='lcs', design='edit'))
        """
        default_metric, default_design = TASK_DEFAULTS.get(task, TEXT_DEFAULTS)
        asked = cls(metric or default_metric, load_design(design or default_design).name)
        asked.check(task)
        return asked

    def check(self, task: str) -> None:
        """Refuse what cannot work, before there is anything to demonstrate.

        The edits of an equation are known beforehand; of a text we know only what its metric can do at all.
        """
        if self.metric == "span" and task in ("aor", "aec"):
            raise InvalidSpec(f"metric span is made for parentheses, and {task} has none")
        kinds = EDITS.get(self.metric, ())
        if task == "aor":
            kinds = kinds[:1]  # a source lacks tokens, and nothing else
        refused = [kind for kind in kinds if not load_design(self.design).expresses(*map(np.array, kind))]
        if refused and (task in TASK_DEFAULTS or len(refused) == len(kinds)):
            removed, added = refused[0]
            raise InvalidSpec(
                f"design {self.design} cannot express an edit that replaces {removed} tokens by {added}, "
                f"and for {task} metric {self.metric} needs it"
            )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "backend": load_metric(self.metric).backend}


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


def _steps(
    batch: Pairs, metric: Metric, design: Design, augmentation: Augmentation | None, summary: Summary
) -> Iterator[pa.RecordBatch]:
    """All steps from these pairs, in portions that are together no longer than some million tokens."""
    scripts = metric.scripts(batch.sources, batch.goals, batch.alphabet)
    edits = scripts.counts
    lengths = batch.sources.lengths + batch.goals.lengths + 1
    if not augmentation:
        starts = expert_starts(batch)
        for begin, end in portions((edits + 1) * lengths):
            yield step_batch(batch, starts.part(begin, end), metric, design, summary)
        return
    if (
        edits.max(initial=0) <= augmentation.max_edits
        and (steps_of_all(edits) * lengths).sum() <= PORTION
        and metric.shortest
        and certain(batch, scripts)
    ):
        yield lattice_batch(batch, scripts, design, augmentation, summary)
        return
    states = np.where(edits > augmentation.max_edits, augmentation.max_states, 2 ** np.minimum(edits, 20)) + 1
    for first, last in portions(states * lengths):
        part = batch.part(first, last)
        starts = augmented_starts(part, scripts.part(first, last), augmentation, summary)
        heavy = ((edits + 1) * lengths)[first:last]
        for begin, end in portions(heavy[starts.pair]):
            yield step_batch(part, starts.part(begin, end), metric, design, summary)


def portions(weights: Integers) -> Iterator[tuple[int, int]]:
    """Neighbours together, up to PORTION; what is heavier than that is alone.

    >>> list(portions(np.array([1, 2, PORTION, 3])))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin = weight = 0
    if weights.sum() <= PORTION:  # the usual case, without a loop
        yield 0, len(weights)
        return
    for index, more in enumerate(weights.tolist()):
        if index > begin and weight + more > PORTION:
            yield begin, index
            begin = index
            weight = 0
        weight += more
    yield begin, len(weights)


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


def task_name(spec: SpecTree) -> str:
    """The task whose rules a dataset follows."""
    task = spec.get("pairs", {}).get("task")
    if not isinstance(task, str):
        raise BadData("the manifest's spec names no task")
    return task


def read_expert(spec: SpecTree) -> Expert:
    """Who demonstrated in a dataset that has demonstrations."""
    if "expert" not in spec:
        raise InvalidSpec("there are no expert trajectories yet: run `aegen trajectories` first")
    metric, design = (spec["expert"].get(key) for key in ("metric", "design"))
    if not isinstance(metric, str) or not isinstance(design, str):
        raise BadData("the manifest's spec names no metric and design for expert")
    return Expert(metric, load_design(design).name)
