"""TG and TA, against the plain implementation, the old one of AES, bare editops, and merely writing the rows."""

from __future__ import annotations

import tempfile
from collections import deque
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from Levenshtein import editops

from aegen.core.actions import DESIGNS
from aegen.core.environment import Environment
from aegen.core.format import split_state
from aegen.dataset.folder import Folder
from aegen.dataset.recipe import ExpertUsed, Recipe
from aegen.dataset.shards import read_description_of
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.experts.demonstrations import step_batches
from aegen.experts.expert import Expert
from aegen.experts.metrics import load_metric, to_strings
from aegen.experts.trajectory import Pairs, Summary
from aegen.pairs.spec import Spec
from aegen.pipeline.build import generate
from aegen.pipeline.demonstrations import write_expert_shard
from tests import plain
from tests.bench import old_span
from tests.bench.measure import best, command, side_by_side


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _aor(Path(folder))
        _aes(Path(folder))
        _aec(Path(folder))
        _expert(Path(folder))


def _aor(folder: Path) -> None:
    """7,000 AOR pairs: TG + TA + writing."""
    spec = Spec("aor", 10, 5, 10_000)
    pairs, out = _pairs(folder, spec)
    few = [
        (split_state(row["source"]), split_state(row["target"]))
        for row in pq.read_table(pairs).slice(0, 250).to_pylist()
    ]
    fast = _against_writing(spec, pairs, out)
    slow = best(lambda: _plain(few, folder / "plain.parquet"), 2) * 7000 / len(few)
    print(f"  {slow / fast:6.1f} x faster than the plain implementation ({slow:.1f} s)")


def _aes(folder: Path) -> None:
    """7,000 AES pairs: TG + TA + writing."""
    spec = Spec("aes", 100, 5, 10_000)
    pairs, out = _pairs(folder, spec)
    _against_writing(spec, pairs, out)
    old, about = out.parent / "old.parquet", read_description_of(out)
    slow, fast = side_by_side(lambda: old_span.write_augmented(pairs, old, about), lambda: _ours(spec, pairs, out))
    assert pq.read_table(old).equals(pq.read_table(out))
    print(f"  {slow / fast:6.1f} x faster than with a loop for each state ({slow:.2f} s)")


def _aec(folder: Path) -> None:
    """7,000 AEC pairs: TG + TA + writing."""
    spec = Spec("aec", 10, 5, 10_000)
    _against_writing(spec, *_pairs(folder, spec))


def _pairs(folder: Path, spec: Spec) -> tuple[Path, Path]:
    """A shard of pairs, and where its demonstrations go."""
    generate(spec, Folder(folder / spec.task), Local())
    pairs = folder / spec.task / "pairs" / "train-00000-of-00001.parquet"
    out = folder / spec.task / "augmented" / pairs.name
    out.parent.mkdir()
    return pairs, out


def _ours(spec: Spec, pairs: Path, out: Path) -> None:
    recipe = Recipe(spec, ExpertUsed.of(Expert.of(spec.task)), Augmentation())
    write_expert_shard(pairs, out, "augmented", recipe)


def _against_writing(spec: Spec, pairs: Path, out: Path) -> float:
    """Our seconds, printed beside those that it takes to write the same rows from memory."""
    _ours(spec, pairs, out)
    table = pq.read_table(out)
    bare_path = out.parent / "bare.parquet"
    fast, bare = side_by_side(
        lambda: _ours(spec, pairs, out), lambda: pq.write_table(table, bare_path, compression="zstd")
    )
    print(f"TG + TA + writing, 7,000 {spec.task.upper()} pairs, {len(table):,} steps: {fast:.2f} s")
    print(f"  {fast / bare:6.2f} x the time of writing the same rows from memory ({bare:.3f} s)")
    return fast


def _plain(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]], path: Path) -> None:
    """Algorithms 1 and 2 as printed (tests/plain.py), rows as Python objects."""
    game = Environment(DESIGNS["insert"], frozenset("+-*/="), 10)
    rows = []
    for number, (source, goal) in enumerate(pairs):
        for origin, start in enumerate([source, *plain.augment(source, goal, game)]):
            for step, (state, action) in enumerate(plain.generate(start, goal, game)):
                rows.append(
                    {"pair": number, "origin": origin, "step": step, "state": " ".join(state), "action": action}
                )
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd")


def _expert(folder: Path) -> None:
    """10,000 AEC pairs: TG in memory against bare editops on strings that are interned already."""
    generate(Spec("aec", 10, 5, 10_000), Folder(folder / "aec"), Local())
    table = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "aec" / "pairs").glob("*.parquet")))
    batch = table.combine_chunks().to_batches()[0]
    pairs = Pairs.of(batch)
    texts = to_strings(pairs.sources), to_strings(pairs.goals)
    metric, design = load_metric("levenshtein"), DESIGNS["edit"]

    def ours() -> None:
        deque(step_batches(Pairs.of(batch), metric, design, None, Summary()), maxlen=0)

    fast, bare = side_by_side(ours, lambda: [editops(a, b) for a, b in zip(*texts, strict=True)], 9)
    print(f"TG of {len(batch):,} AEC pairs: {fast:.3f} s, {fast / bare:.2f} x bare editops ({bare:.4f} s)")


def run_long() -> None:
    print("TG of AEC, one worker: peak memory against the number of pairs")
    with tempfile.TemporaryDirectory() as folder:
        for d in (100_000, 1_000_000):
            out = Path(folder) / str(d)
            command(*f"generate aec --n 100 --l 5 --d {d} --out".split(), out)
            took, memory = command("trajectories", out, "--workers", 1)
            print(f"  {d:>9,} pairs   {took:6.1f} s   {memory:5.0f} MB")
