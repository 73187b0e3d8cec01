"""Write a dataset of sources without targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from aegen.arithmetic.goals import ERRORS, goal_of
from aegen.arithmetic.tasks import TASKS
from aegen.columns.arrow import of_numbers, of_texts
from aegen.columns.schemas import SOURCES
from aegen.core.description import FileInfo, PairsDescription
from aegen.core.errors import InvalidSpec
from aegen.core.format import SPLITS
from aegen.core.progress import Progress, silent
from aegen.dataset.dataset import Dataset
from aegen.dataset.folder import Folder
from aegen.dataset.names import shard_name
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import write_shard
from aegen.files.parquet import ROW_GROUP
from aegen.pairs.sources import Digest, digest
from aegen.pairs.spec import InputFile, SourcesOnly


def held_out(folder: Folder | None) -> tuple[SourcesOnly, set[Digest]]:
    """What is left out: the sources of a dataset's validation and test."""
    if folder is None:
        return SourcesOnly(), set()
    dataset = Dataset.open(folder)
    names = [name for split in SPLITS[1:] for name in dataset.manifest.shards("pairs", split)]
    files = tuple(InputFile(name, dataset.manifest.files[name].sha256) for name in names)
    texts = {digest(source) for split in SPLITS[1:] for _, source, _ in dataset.pair_rows(split)}
    if not texts:  # the card would promise what was not done
        raise InvalidSpec(f"--apart-from {folder.path}: no pairs in its validation and test to hold out")
    return SourcesOnly(dataset.manifest.recipe.name, files), texts


def describe(recipe: Recipe) -> PairsDescription:
    """The description of a shard of sources."""
    task, spec = TASKS.get(recipe.task), recipe.spec
    errors, integers = (spec.errors, spec.l) if spec else (ERRORS, 0)
    return PairsDescription(
        config="sources",
        split="train",
        task=recipe.task,
        tokens=getattr(recipe.pairs, "tokens", "words"),
        arithmetic=task is not None,
        one_source=task is not None and task.one_source,
        goal=goal_of(recipe.task, errors, integers),
        spec=recipe.tree(),
    )


def write_sources(recipe: Recipe, texts: list[str], folder: Folder, progress: Progress = silent) -> dict[str, FileInfo]:
    """Write all shards that are missing; the caller holds the folder and finishes it."""
    files: dict[str, FileInfo] = {}
    size = recipe.pairs.rows_per_shard
    shards = max(1, -(-len(texts) // size))
    with progress("sources", len(texts)) as advance:
        for index in range(shards):
            name, rows = shard_name("sources", "train", index, shards), texts[index * size : (index + 1) * size]
            done = folder.done(name, recipe)  # by an interrupted run
            batches = _batches(rows, index * size)
            files[name] = done or write_shard(folder / name, "sources", batches, partial(describe, recipe))
            advance(len(rows))
    return files


def _batches(texts: list[str], first: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(texts), ROW_GROUP):
        part = texts[start : start + ROW_GROUP]
        ids = np.arange(first + start, first + start + len(part))
        yield pa.record_batch([of_numbers(ids), of_texts(part)], schema=SOURCES)
