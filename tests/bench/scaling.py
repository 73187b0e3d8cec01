"""dask against local, two worker processes each, in turns within one run; time and memory against D."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from aegen.dataset.folder import Folder
from aegen.engines.dask import Dask
from aegen.engines.engine import Engine
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.bench.measure import command

# Enough shards for both workers within seconds; by default a shard has 25 times as many rows, and a call as much work.
SPEC = Spec("aor", 100, 5, 120_000, rows_per_shard=10_000)
REPEATS = 5


def run() -> None:
    """Both engines have their workers up before the clock runs: what is compared is the work."""
    with tempfile.TemporaryDirectory() as place, Dask(workers=2) as dask:
        times: dict[str, list[float]] = {"local": [], "dask": []}
        engines: dict[str, Engine] = {"local": Local(2), "dask": dask}
        warm = Spec("aor", 100, 5, 2000, rows_per_shard=500)
        for name, engine in engines.items():
            pipeline.build(warm, Folder(Path(place) / f"warm-{name}"), engine)
        for turn in range(REPEATS):
            for name, engine in engines.items():
                start = time.perf_counter()
                manifest, _ = pipeline.build(SPEC, Folder(Path(place) / f"{name}-{turn}"), engine)
                times[name].append(time.perf_counter() - start)
        rows = sum(manifest.rows(config) for config in manifest.configs)
        rates = {name: rows / min(took) for name, took in times.items()}
    print(f"build of {SPEC.d:,} AOR pairs, {rows:,} rows, two worker processes")
    for name, rate in rates.items():
        print(f"  {name:<6}{rate:12,.0f} rows/s")
    print(f"  dask is {rates['dask'] / rates['local']:.2f} x local")


def run_long() -> None:
    """The whole data stage: pairs, TG, TA."""
    print("build of AEC N=100 L=5, two workers: time and peak memory of the largest process against D")
    for d in (100_000, 1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "d"
            took, memory = command(*f"build aec --n 100 --l 5 --d {d} --workers 2 --out".split(), out)
            print(f"  D = {d:>10,}   {took:7.1f} s   {took / d * 1e6:6.2f} us/pair   {memory:6.0f} MB")
