"""Run the cells of a sweep, several at once, each in its own process; finished cells are never run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from trainer.core.errors import BadData, Failed, FolderConflict, Interrupted
from trainer.data.contract import parse_object
from trainer.data.dataset import Dataset
from trainer.sweeps.cell import CELL
from trainer.sweeps.grid import Cell, Source, Sweep
from trainer.training.run import Description

Say = Callable[[str], None]


def read_cell(folder: Path) -> dict[str, Any] | None:
    """What a finished cell says of itself; None for one that is not finished."""
    path = folder / CELL
    return parse_object(path.read_bytes(), str(path)) if path.is_file() else None


def finished(cell: Cell, out: Path) -> bool:
    """Whether a cell has been run; an error if it was run with other settings, or on other data than is there now."""
    there = read_cell(out / cell.name)
    if there is None:
        return False
    ours, theirs = cell.config.to_json() | {"split": cell.split}, there.get("config")
    theirs = theirs | {"split": there.get("split")} if isinstance(theirs, dict) else {}
    if changed := sorted(key for key in ours if ours[key] != theirs.get(key)):
        raise FolderConflict(f"{out / cell.name}: it was run with another {', '.join(changed)}; choose another --out")
    if is_here(cell.source):
        now = {name: shard.sha256 for name, shard in Dataset(cell.source.path).shards.items()}
        learned = Description.read(out / cell.name / "config.json").data.get("files")
        played = there.get("evaluation", {}).get("files")
        if not all(isinstance(files, dict) and files.items() <= now.items() for files in (learned, played)):
            raise FolderConflict(f"{out / cell.name}: it was run on other data than is in {cell.source.path} now")
    return True


def is_here(source: Source) -> bool:
    """Whether a dataset lies in a folder, finished."""
    return "://" not in source.path and Path(source.path, "manifest.json").is_file()


def missing(sweep: Sweep) -> list[Source]:
    """The datasets that have to be made first."""
    found = {cell.source.path: cell.source for cell in sweep.cells}
    return [source for path, source in found.items() if "://" not in path and not is_here(source)]


def run_sweep(sweep: Sweep, jobs: int = 1, threads: int | None = None, device: str = "auto", say: Say = print) -> int:
    """Run what is not finished; returns how many cells were run. A cell that fails leaves the others alone."""
    left = [cell for cell in sweep.cells if not finished(cell, sweep.out)]
    if absent := missing(sweep) if left else []:
        first = absent[0]
        how = f"; make it with: {first.build}" if first.build else ""
        raise BadData(f"{first.path}: no finished dataset is there{how}")
    say(f"{sweep.title}: {len(sweep.cells)} cells, {len(sweep.cells) - len(left)} finished, {len(left)} to run")
    places: SimpleQueue[dict[str, str]] = SimpleQueue()
    for number in range(jobs):
        places.put(place(number))
    threads = threads or max(1, (os.cpu_count() or 1) // jobs)
    failed: list[str] = []
    crew = Crew()
    with ThreadPoolExecutor(jobs) as pool:
        waiting: set[Future[str]] = {
            pool.submit(_run, cell, sweep.out, threads, device, places, crew, jobs == 1) for cell in left
        }
        done = 0
        try:
            while waiting:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    done += 1
                    try:
                        say(f"[{done}/{len(left)}] {future.result()}")
                    except Failed as error:
                        failed.append(str(error))
                        say(f"[{done}/{len(left)}] {error}")
        except KeyboardInterrupt:
            for future in waiting:
                future.cancel()
            crew.stop()
            raise Interrupted("stopped; the same command goes on from here") from None
    if failed:
        raise Failed(f"{len(failed)} of {len(left)} cells failed, the first: {failed[0]}")
    return len(left)


def place(number: int) -> dict[str, str]:
    """Where a job computes: one GPU each where there are some, of those that we were given."""
    import torch

    count = torch.cuda.device_count()
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    devices = given[:count] or [str(index) for index in range(count)]
    return {"CUDA_VISIBLE_DEVICES": devices[number % len(devices)]} if count > 1 else {}


class Crew:
    """The processes at work, so that all can be ended at once: what a cell has on disk is whole at any moment."""

    def __init__(self) -> None:
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.stopped = threading.Event()

    @contextmanager
    def member(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """One of them while it works."""
        self.processes.add(process)
        try:
            if self.stopped.is_set():  # it was started at the last moment
                process.kill()
            yield
        finally:
            self.processes.discard(process)

    def stop(self) -> None:
        """End them."""
        self.stopped.set()
        for process in [*self.processes]:
            process.kill()


def _run(
    cell: Cell,
    out: Path,
    threads: int,
    device: str,
    places: SimpleQueue[dict[str, str]],
    crew: Crew,
    alone: bool,
) -> str:
    """One cell in its own process; returns a line that says what came of it. Alone, it shows its progress."""
    folder = out / cell.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    order = {
        "cell": {
            "task": cell.source.task,
            "metric": cell.source.metric,
            "design": cell.source.design,
            "model": cell.model,
            "ta": cell.ta,
            "seed": cell.seed,
            "preset": cell.preset,
            "label": cell.label,
            "split": cell.split,
        },
        "config": cell.config.to_json(),
        "commands": cell.commands(out),
        "build": cell.source.build,
        "data": cell.source.path,
        "out": str(folder),
        "threads": threads,
        "device": device,
        "shown": alone,
    }
    here = places.get()
    try:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                [sys.executable, "-m", "trainer.sweeps.cell"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if alone else errors,
                env=os.environ | here | {"OMP_NUM_THREADS": str(threads)},
            ) as process,
            crew.member(process),
        ):
            assert process.stdin and process.stdout
            with suppress(BrokenPipeError):  # it has ended already, and says why
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()  # and left open: it tells the cell that we live
            said = process.stdout.read().decode(errors="replace")
            process.wait()
            if process.returncode:
                errors.seek(0)
                raise Failed(f"{cell.name}: {_why(said, errors.read().decode(errors='replace'))}")
    finally:
        places.put(here)
    answer = json.loads(said.splitlines()[-1])
    if "left" in answer:
        return f"{cell.name}: {answer['left']}"
    scores = answer["evaluation"]
    key = "equation_accuracy" if "equation_accuracy" in scores else "sequence_accuracy"
    return f"{cell.name}: {key.replace('_', ' ')} {scores[key]:.2f} %, {answer['seconds']:.0f} s"


def _why(said: str, errors: str) -> str:
    """The last thing that a failed cell said."""
    try:
        return str(json.loads(said.splitlines()[-1])["error"])
    except (IndexError, ValueError, KeyError):
        return (errors.strip().splitlines() or ["it ended without a word"])[-1][:200]
