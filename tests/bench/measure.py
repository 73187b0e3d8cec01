"""Seconds and megabytes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs: what the work costs when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def side_by_side(left: Callable[[], object], right: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """The best of both, taken in turns so that both meet the same machine."""
    pairs = [(best(left, 1), best(right, 1)) for _ in range(repeats)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def command(*arguments: object) -> tuple[float, float]:
    """Seconds and peak megabytes of ``python -m aegen …`` and its workers."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    start = time.perf_counter()
    full = [sys.executable, "-c", code, sys.executable, "-m", "aegen", *map(str, arguments)]
    done = subprocess.run(full, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, int(done.stdout) / 1024
