"""Seconds and megabytes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


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


def tree(process: int) -> list[int]:
    """A process and its descendants, those of its fork server included."""
    found = [process]
    for children in Path("/proc").glob(f"{process}/task/*/children"):
        try:
            found += [pid for child in children.read_text().split() for pid in tree(int(child))]
        except OSError:
            continue  # it has just ended
    return found


def resident(process: int) -> int:
    """Kilobytes that a process has in memory now."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def command(*arguments: object) -> tuple[float, float]:
    """Seconds and peak megabytes of ``python -m aegen …``: the largest process among it and its workers."""
    start, peak = time.perf_counter(), 0
    full = [sys.executable, "-m", "aegen", *map(str, arguments)]
    with subprocess.Popen(full, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, *map(resident, tree(process.pid)))
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(full)} failed")
    return time.perf_counter() - start, peak / 1024
