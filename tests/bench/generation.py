"""Generating pairs, against the plain scalar implementation of the definition."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aegen.engines.local import Local
from aegen.pairs.generate import plan, scan, stripe_batches, stripes
from aegen.pairs.spec import Spec
from tests import oracle
from tests.bench.measure import command, side_by_side

TASKS = (("aor", 10), ("aes", 100), ("aec", 10))
D, FEW = 50_000, 300


def everything(spec: Spec) -> int:
    """All rows of a spec, as Arrow tables in memory."""
    scan.cache_clear()
    layout = plan(spec, Local())
    rows = (batch for index in range(stripes(spec, layout)) for *_, batch in stripe_batches(spec, layout, index))
    return sum(map(len, rows))


def run() -> None:
    print(f"generation, D = {D:,}, one core")
    for task, n in TASKS:
        spec = Spec(task, n, 5, D)
        oracle.expressions(n)  # tables are made once on both sides
        everything(spec)
        fast, slow = side_by_side(lambda spec=spec: everything(spec), lambda t=task, n=n: oracle.pairs(t, n, 5, FEW, 0))
        rate, plain = D / fast, FEW / slow
        print(f"  {task} N={n:<4} {rate:12,.0f} rows/s   plain {plain:8,.0f} rows/s   {rate / plain:6,.0f} x")


def run_sizes() -> None:
    print("generation of AOR N=100 L=5, two workers: time and peak memory of the largest process against D")
    with tempfile.TemporaryDirectory() as folder:
        for d in (100_000, 1_000_000, 10_000_000):
            out = Path(folder) / str(d)
            took, memory = command(*f"generate aor --n 100 --l 5 --d {d} --seed 1 --workers 2 --out".split(), out)
            print(f"  D = {d:>10,}   {took:7.1f} s   {took / d * 1e6:6.2f} us/row   {memory:6.0f} MB")
