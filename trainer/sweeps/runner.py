"""Run the cells of a sweep, several at once, each in a process of its own; finished cells are never run again."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import msgspec

from trainer.core.errors import BadData, Failed
from trainer.core.records import decode
from trainer.sweeps.cell import CellJob, CellStatus, finished
from trainer.sweeps.grid import GridCell, Sweep
from trainer.sweeps.result import CELL, read_cell
from trainer.training.measures import Measure

Say = Callable[[str], None]


def run_sweep(sweep: Sweep, jobs: int = 1, threads: int | None = None, device: str = "auto", say: Say = print) -> int:
    """Run what is not finished; returns how many cells were run. A failed cell does not stop the others.

    Interrupted, it kills its cells; another call resumes them.
    """
    left = [cell for cell in sweep.cells if not finished(cell, sweep.out)]
    if missing := sweep.missing() if left else []:
        raise BadData(f"{missing[0].path}: no finished dataset{missing[0].how_to_get}")
    total, failed = len(left), list[str]()
    say(f"{sweep.title}: {len(sweep.cells)} cells, {len(sweep.cells) - total} finished, {total} to run")
    if left:
        sweep.out.mkdir(parents=True, exist_ok=True)
    threads = threads or max(1, (os.cpu_count() or 1) // jobs)
    slots, workers = [gpu_of(job) for job in range(jobs)], list[Worker]()
    try:
        while left or workers:
            while slots and (cell := next_cell(left, [worker.job.cell for worker in workers], sweep.out)):
                left.remove(cell)
                job = CellJob(cell, str(sweep.out), threads, device, verbose=jobs == 1)
                workers.append(Worker(job, slots.pop(0)))
            ready = wait([worker.output for worker in workers])
            for worker in [worker for worker in workers if worker.output in ready and not worker.running()]:
                workers.remove(worker)
                slots.append(worker.slot)
                try:
                    line = worker.summary()
                except Failed as error:
                    line = str(error)
                    failed.append(line)
                say(f"[{total - len(left) - len(workers)}/{total}] {line}")
    finally:
        for worker in workers:
            worker.kill()
    if failed:
        raise Failed(f"{len(failed)} of {total} cells failed, the first: {failed[0]}")
    return total


def next_cell(left: Sequence[GridCell], running: Sequence[GridCell], out: Path) -> GridCell | None:
    """The first cell that can run beside those that are running: cells that begin with the same run take turns, unless
    that is finished, because the first of them trains it."""
    taken = {cell.start.name for cell in running if not (out / cell.start.name / CELL).is_file()}
    return next((cell for cell in left if cell.start.name not in taken), None)


def gpu_of(job: int) -> dict[str, str]:
    """The environment of a job: one of the visible GPUs, where there are several."""
    import torch

    count = torch.cuda.device_count()
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    devices = given[:count] or [str(index) for index in range(count)]
    return {"CUDA_VISIBLE_DEVICES": devices[job % len(devices)]} if count > 1 else {}


class Worker:
    """The process of one cell. Its input stays open: the cell exits when the sweep is gone."""

    def __init__(self, job: CellJob, slot: dict[str, str]) -> None:
        self.job, self.slot, self.said = job, slot, b""
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainer.sweeps.cell"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if job.verbose else self.errors,
            env=os.environ | slot | {"OMP_NUM_THREADS": str(job.threads)},
        )
        assert self.process.stdin and self.process.stdout
        self.output: Any = self.process.stdout
        with suppress(BrokenPipeError):  # it has failed already; its errors say why
            self.process.stdin.write(msgspec.json.encode(job) + b"\n")
            self.process.stdin.flush()

    def running(self) -> bool:
        """Read what the cell has printed; False at the end."""
        chunk = os.read(self.output.fileno(), 1 << 16)
        self.said += chunk
        return bool(chunk)

    def summary(self) -> str:
        """Wait for the end: a line with the result, or Failed."""
        self.process.wait()
        self.errors.seek(0)
        errors = self.errors.read().decode(errors="replace").strip().splitlines()
        self.kill()
        cell, status = self.job.cell, self._status()
        if status.skipped:
            return f"{cell.name}: skipped: {status.skipped}"
        result = read_cell(Path(self.job.out) / cell.name)
        if result is None:
            reason = status.error or (errors[-1][:200] if errors else "process exited without output")
            raise Failed(f"{cell.name}: {reason}")
        measure: Measure = "equation" if "equation" in result.scores else "sequence"
        return f"{cell.name}: {measure} accuracy {result.scores[measure]:.2f} %, {result.seconds:.0f} s"

    def _status(self) -> CellStatus:
        try:
            return decode(self.said.splitlines()[-1], CellStatus, self.job.cell.name)
        except (IndexError, BadData):  # nothing, or something that is not ours
            return CellStatus()

    def kill(self) -> None:
        """End the process and close its files: a cell can be killed at any time."""
        self.process.kill()
        with suppress(BrokenPipeError), self.process:  # closes the pipes and waits
            pass
        self.errors.close()
