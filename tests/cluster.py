"""A dask cluster of real processes on loopback: one scheduler, some workers, each ended by its own id."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
LACK = """
import sys
from importlib import metadata
version = metadata.version
metadata.version = lambda name: version("lacking" if name == "{package}" else name)
sys.modules["{package}"] = None
"""


class Cluster:
    """``cluster.address`` is the scheduler's; ``cluster.workers`` are processes that a test may kill."""

    def __init__(self, place: Path) -> None:
        self.place, self.workers = place, []
        self.environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(place), "PYTHONPATH": str(ROOT)}
        file = place / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", file, "--no-dashboard")
        while not (file.is_file() and file.read_text().endswith("}")):
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]

    def lack(self, package: str) -> None:
        """What is started from now on has not installed a package."""
        (self.place / "lack").mkdir()
        (self.place / "lack" / "sitecustomize.py").write_text(LACK.format(package=package))
        self.environment |= {"PYTHONPATH": str(self.place / "lack")}

    def _start(self, what: str, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}"]
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1", *map(str, arguments)],
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add_worker(self, threads: int = 1) -> subprocess.Popen:
        """One more worker process, without a nanny that would replace it."""
        options = ("--no-nanny", "--no-dashboard", "--nthreads", threads, "--local-directory", self.place)
        worker = self._start("worker", self.address, *options)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@contextmanager
def cluster(place: Path, workers: int = 2, threads: int = 1, lacking: str | None = None):
    """A running cluster, whose workers the scheduler knows; they may lack a package."""
    from distributed import Client

    place.mkdir(parents=True, exist_ok=True)
    started = Cluster(place)
    try:
        if lacking:
            started.lack(lacking)
        for _ in range(workers):
            started.add_worker(threads)
        with Client(started.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield started
    finally:
        started.close()
