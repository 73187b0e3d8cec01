"""From a spec to its pairs.

The keyed order of candidates is scanned in blocks. Each valid equation gets its source, and a hash decides its
split: of the source (``split=source``, so a source cannot be in two splits) or of the position (``split=paper``).
A split's rows are its equations in scanning order, cut at its quota. A first pass counts the rows of each block,
so that every shard can be made alone, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.arithmetic.aec import Aec
from aegen.arithmetic.aes import Aes
from aegen.arithmetic.aor import Aor
from aegen.arithmetic.candidates import Order, order
from aegen.arithmetic.tasks import Task
from aegen.arithmetic.texts import Pieces, equation_cells
from aegen.columns.arrow import of_numbers
from aegen.columns.schemas import PAIRS
from aegen.core.errors import InvalidSpec
from aegen.core.format import SPLITS, ConfigName, SplitName
from aegen.core.progress import Progress, silent
from aegen.core.randomness import Draws, derive_key, keyed_hash
from aegen.core.types import Integers
from aegen.engines.engine import Engine
from aegen.pairs.spec import Spec

Cells = Integers
LONGEST_RUN = 64  # blocks that are counted by one call, at most: some hundred thousand rows


def key_of(spec: Spec, purpose: str) -> int:
    """Keys depend on what the equations are, not on how many: a larger D continues a smaller one."""
    options = (spec.division, spec.errors, spec.split) if purpose != "order" else ()
    return derive_key(spec.task, spec.n, spec.l, spec.seed, purpose, *options)


def order_of(spec: Spec) -> Order:
    """The order in which the equations of a spec come."""
    return order(spec.n, spec.l, key_of(spec, "order"))


@dataclass(frozen=True)
class Block:
    """The valid equations of one block; what a pass does not ask for is not made."""

    spec: Spec
    positions: npt.NDArray[np.int64]
    targets: Cells

    @cached_property
    def sources(self) -> Pieces:
        """One source for each equation."""
        return task_of(self.spec).sources(self.targets, Draws(key_of(self.spec, "source"), self.positions))

    @cached_property
    def splits(self) -> npt.NDArray[np.int8]:
        """The split of each equation: 0, 1, 2 as in SPLITS."""
        return split_of(self.spec, self.sources if by_source(self.spec) else self.positions)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Rows of each split."""
        return np.bincount(self.splits, minlength=len(SPLITS))

    def counts_before(self, row: int) -> npt.NDArray[np.int64]:
        """Rows of each split before this one."""
        return np.bincount(self.splits[:row], minlength=len(SPLITS))

    @cached_property
    def by_split(self) -> npt.NDArray[np.int64]:
        """The rows of train, then those of validation, then those of test."""
        return np.argsort(self.splits, kind="stable")

    @cached_property
    def texts(self) -> tuple[pa.StringArray, pa.StringArray]:
        """All sources and targets, split by split."""
        targets = Pieces(self.targets, task_of(self.spec).vocabulary)
        return self.sources.rows(self.by_split).texts(), targets.rows(self.by_split).texts()


def by_source(spec: Spec) -> bool:
    """Whether the source decides the split; one that has one possible target needs not, as targets are unique."""
    return spec.split == "source" and not task_of(spec).one_target


def split_of(spec: Spec, keys: Pieces | Integers) -> npt.NDArray[np.int8]:
    """70 % of all hashes mean train, 15 % validation, 15 % test.

    The hash is of the source or, where that does not decide (:func:`by_source`), of the position.
    """
    key = key_of(spec, "split")
    words = keys.hashes(key) if isinstance(keys, Pieces) else keyed_hash(key, keys)
    bounds = [np.uint64(2**64 * part // 100) for part in (70, 85)]
    return (words >= bounds[0]).view(np.int8) + (words >= bounds[1]).view(np.int8)


@lru_cache(maxsize=16)
def scan(spec: Spec, block: int) -> Block:
    """All rows of one block; the last few are kept, so that small datasets are scanned once, not twice."""
    order = order_of(spec)
    positions, found = order.equations(block * order.block, (block + 1) * order.block)
    return Block(spec, positions, equation_cells(found))


def count(spec: Spec, block: int) -> tuple[int, ...]:
    """Rows of each split in one block."""
    return tuple(scan(spec, block).counts.tolist())


def count_run(spec: Spec, first: int, last: int) -> list[tuple[int, ...]]:
    """Rows of each split in the blocks first … last-1."""
    return [count(spec, block) for block in range(first, last)]


def runs(blocks: int) -> Iterator[tuple[int, int]]:
    """Blocks in runs that grow: small work ends soon, large work is no flood of messages.

    >>> list(runs(9))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]
    """
    first = 0
    while first < blocks:
        last = min(blocks, first + min(LONGEST_RUN, 1 + first // 32))
        yield first, last
        first = last


@dataclass(frozen=True)
class Layout:
    """How many rows each split has, and how many of them lie before each block."""

    quotas: dict[str, int]
    before: npt.NDArray[np.int64]  # (blocks + 1, splits)
    block: int = 0  # number of the block that the first line of ``before`` speaks of

    def first_id(self, split: str) -> int:
        """Ids run through the splits: train first, then validation, then test."""
        return sum(self.quotas[name] for name in SPLITS[: SPLITS.index(split)])


def plan(spec: Spec, engine: Engine, progress: Progress = silent) -> Layout:
    """Count until every split is full. Too few equations in the whole space: an error that says how many."""
    blocks = -(-order_of(spec).size // order_of(spec).block)
    quotas = np.array(list(spec.quotas.values()))
    totals = [np.zeros(len(SPLITS), dtype=np.int64)]
    with progress("counting", spec.d) as advance:
        for found in (
            counts for run in engine.map(count_run, ((spec, *run) for run in runs(blocks))) for counts in run
        ):
            totals.append(totals[-1] + found)
            advance(int(np.minimum(totals[-1], quotas).sum() - np.minimum(totals[-2], quotas).sum()))
            if (totals[-1] >= quotas).all():
                break
    available = totals[-1]
    if available.sum() < spec.d:
        raise InvalidSpec(f"d={spec.d:,}: only {available.sum():,} valid equations exist for n={spec.n}, l={spec.l}")
    # Close to the end of a space a split can run dry: the others take over, since no row may change its split.
    sizes = np.minimum(quotas, available)
    for index in range(len(SPLITS)):
        sizes[index] += min(available[index] - sizes[index], spec.d - sizes.sum())
    return Layout(dict(zip(SPLITS, sizes.tolist(), strict=True)), np.stack(totals))


def stripes(spec: Spec, layout: Layout) -> int:
    """How many shards each split has: as many as the training rows need."""
    return max(1, -(-layout.quotas["train"] // spec.rows_per_shard))


def stripe(spec: Spec, layout: Layout, index: int) -> Iterator[tuple[SplitName, int, Block, slice]]:
    """The rows of shard ``index`` of all splits, scanned once: (split, number of the first row, block, rows in it).

    Shards are cut where a training shard is full; the other splits have there what comes between the cuts. Rows of a
    block are counted split by split.
    """
    train = layout.before[:, 0]
    cuts = [index * spec.rows_per_shard, (index + 1) * spec.rows_per_shard]
    first, last = _blocks(spec, layout, index)
    for block in range(first, min(last + 1, len(train) - 1)):
        rows = scan(spec, layout.block + block)
        begin, end = np.zeros(len(SPLITS), dtype=np.int64), rows.counts
        if index and block == first:
            begin = rows.counts_before(int(rows.by_split[cuts[0] - train[block]]))
        if block == last:
            end = rows.counts_before(int(rows.by_split[cuts[1] - train[block]]))
        offsets = np.cumsum(rows.counts) - rows.counts
        for code, split in enumerate(SPLITS):
            before = int(layout.before[block, code] + begin[code])
            count = min(int(end[code] - begin[code]), max(layout.quotas[split] - before, 0))
            start = int(offsets[code] + begin[code])
            yield split, before, rows, slice(start, start + count)


def _blocks(spec: Spec, layout: Layout, index: int) -> tuple[int, int]:
    """The lines of the layout for the first and the last block of a stripe."""
    train = layout.before[:, 0]
    cuts = index * spec.rows_per_shard, (index + 1) * spec.rows_per_shard
    first, last = (int(np.searchsorted(train, cut, side="right")) - 1 for cut in cuts)
    return first if index else 0, last if index + 1 < stripes(spec, layout) else len(train) - 1


def part_of(layout: Layout, spec: Spec, index: int) -> Layout:
    """What a worker needs to know to make one stripe: of a large dataset the whole would be too much to send."""
    first, last = _blocks(spec, layout, index)
    return Layout(layout.quotas, layout.before[first : last + 2], layout.block + first)


def stripe_batches(spec: Spec, layout: Layout, index: int) -> Iterator[tuple[ConfigName, SplitName, pa.RecordBatch]]:
    """The same rows as batches: (config, split, batch)."""
    for split, first, rows, mine in stripe(spec, layout, index):
        ids = np.arange(first, first + mine.stop - mine.start) + layout.first_id(split)
        texts = [column[mine] for column in rows.texts]
        yield "pairs", split, pa.record_batch([of_numbers(ids), *texts], schema=PAIRS)
        if spec.variants and split == "train":
            yield "variants", split, variants(spec, ids, rows, rows.by_split[mine])


def batches(spec: Spec, layout: Layout, config: str, split: str) -> Iterator[pa.RecordBatch]:
    """All rows of one config and split, in order."""
    for index in range(stripes(spec, layout)):
        for *key, batch in stripe_batches(spec, layout, index):
            if key == [config, split]:
                yield batch


def variants(spec: Spec, ids: Integers, rows: Block, mine: Integers) -> pa.RecordBatch:
    """``spec.variants`` more sources for each of these training targets, with the ids of their pairs.

    A variant whose source belongs to another split is drawn again.
    """
    targets = rows.targets[mine].repeat(spec.variants, axis=0)
    positions = rows.positions[mine].repeat(spec.variants)
    sources = _draw_variants(spec, targets, positions, np.tile(np.arange(spec.variants), len(mine)))
    texts = sources.texts(), Pieces(targets, task_of(spec).vocabulary).texts()
    return pa.record_batch([of_numbers(ids.repeat(spec.variants)), *texts], schema=PAIRS)


def _draw_variants(spec: Spec, targets: Cells, positions: Integers, numbers: Integers) -> Pieces:
    """Variant ``numbers[row]`` of each row; each attempt is a fresh draw of (position, number, attempt)."""
    found: Pieces | None = None
    waiting, attempt = np.arange(len(targets)), 0
    while found is None or len(waiting):
        key = derive_key(key_of(spec, "source"), "variant", attempt)
        words = keyed_hash(key, positions[waiting] * spec.variants + numbers[waiting]).astype(np.int64)
        drawn = task_of(spec).sources(targets[waiting], Draws(key, words))
        found = drawn if found is None else found
        found.numbers[waiting] = drawn.numbers
        waiting = waiting[split_of(spec, drawn) != 0] if by_source(spec) else waiting[:0]
        attempt += 1
    return found


@lru_cache(maxsize=4)
def task_of(spec: Spec) -> Task:
    """The task that a spec describes; cached because a task may hold tables."""
    match spec.task:
        case Aor.name:
            return Aor(spec.n)
        case Aes.name:
            return Aes(spec.n, spec.division)
        case Aec.name:
            return Aec(spec.n, spec.errors)
    raise InvalidSpec(f"task={spec.task}: no such task")
