"""One cell of a sweep in a process of its own: ``python -m trainer.sweeps.cell`` reads a job from standard input.

The input stays open as long as the sweep runs; when it closes, the cell exits at once, so that no cell outlives a sweep
that was killed. Every file is written atomically, so a cell can be killed at any time.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from trainer.core.config import Config
from trainer.core.errors import BadData, FolderConflict, TrainerError
from trainer.core.locks import lock
from trainer.core.progress import Reporter
from trainer.core.records import convert, decode
from trainer.sweeps.grid import GridCell, Practising, SweepDataset
from trainer.sweeps.result import CELL, CellResult, read_cell, write_cell
from trainer.training.measures import Evaluation

if TYPE_CHECKING:
    from trainer.training.practise import Request

SIZE = ("n", "l", "d")  # of a generated dataset


class CellJob(Struct, frozen=True):
    """What the runner writes to the standard input of a cell."""

    cell: GridCell
    out: str  # the folder of the sweep
    threads: int
    device: str
    verbose: bool  # whether progress goes to standard error, or into the cell's log


class CellStatus(Struct, frozen=True):
    """What a cell that did not finish prints: why."""

    error: str = ""
    skipped: str = ""


def exit_with_the_sweep() -> None:
    """Exit this process when the sweep that started it is gone."""

    def wait() -> None:
        while os.read(0, 1 << 16):  # not sys.stdin: Python could not exit while a thread holds its lock
            pass
        os._exit(1)  # sys.exit would end this thread alone

    threading.Thread(target=wait, daemon=True).start()


def take_turn(log: IO[str], seconds: float = 20) -> bool:
    """Be the only process of this cell until the log is closed; False if another one works on.

    It waits a little: a cell whose sweep was just killed may be about to end.
    """
    until = time.monotonic() + seconds
    while not lock(log.fileno()):
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def finished(cell: GridCell, out: Path) -> bool:
    """Whether a cell has been run; an error if it was run with other settings, or on other data than is there now."""
    from trainer.data.dataset import Dataset

    folder = out / cell.name
    result = read_cell(folder)
    if result is None:
        return False
    practised = cell.practise.settings if cell.practise else {}
    requested = cell.config.to_json() | {"split": cell.split, "practice": practised}
    config = Config.parse(result.settings | {"seed": result.seed}, str(folder))  # settings that came later: by default
    existing = config.to_json() | {"split": result.split, "practice": result.practice}
    for name, value in requested.items():
        if value != existing[name]:
            raise FolderConflict(
                f"{folder}: existing {name} {existing[name]!r}, requested {value!r}; choose another --out"
            )
    for dataset, files in ((cell.dataset, result.data), (cell.free, result.sources)):
        if dataset and dataset.is_built:
            current = {name: shard.sha256 for name, shard in Dataset(dataset.path).shards.items()}
            if not files.items() <= current.items():
                raise FolderConflict(
                    f"{folder}: was run on other data than {dataset.path} holds now; choose another --out"
                )
    return True


def run_cell(job: CellJob) -> CellStatus | None:
    """Train and evaluate, resuming a run that was killed, and write ``cell.json``; the status if it was skipped."""
    import torch

    torch.set_num_threads(job.threads)
    out = Path(job.out) / job.cell.name
    out.parent.mkdir(parents=True, exist_ok=True)
    with (out.parent / f"{out.name}.log").open("a") as log:
        if not take_turn(log):
            return CellStatus(skipped="another process is running it")
        if (out / CELL).is_file():
            return CellStatus(skipped="another process has finished it")
        write_cell(out, train_cell(job, out, Reporter() if job.verbose else Reporter(log)))
    return None


def train_cell(job: CellJob, out: Path, reporter: Reporter) -> CellResult:
    """Train and evaluate one cell into its run folder."""
    from trainer.agents.evaluation import evaluate_run
    from trainer.training.fit import train_run
    from trainer.training.practise import practise_run
    from trainer.training.run import Description, RunFolder

    cell, config, data = job.cell, job.cell.config, job.cell.dataset.path
    described = describe(cell.dataset)
    given: dict[str, Any] = {"resume": True, "device": job.device, "save_every": 100, "reporter": reporter}
    begun = Path(job.out) / cell.start.name
    if cell.practise and not finished(cell.start, Path(job.out)):  # the cell that it begins with may be done
        train_run(data, config, begun, **given)
    since, busy = time.monotonic(), time.process_time()
    if cell.practise:
        run = practise_run(begun, out, request(cell.practise, data), **given)
    else:
        run = train_run(data, config, out, **given)
    evaluation = evaluate_run(out, job.device, cell.dataset.path, cell.split)
    about = Description.read(RunFolder(out).config)
    return CellResult(
        **described,
        model=cell.model,
        ta=cell.ta,
        seed=cell.seed,
        preset=cell.preset,
        label=cell.label,
        split=cell.split,
        settings={name: value for name, value in config.to_json().items() if name != "seed"},
        practice=cell.practise.settings if cell.practise else {},
        commands=cell.commands(Path(job.out)),
        build=" && ".join(filter(None, (cell.dataset.build, cell.practise.build if cell.practise else ""))),
        parameters=run.parameters,
        updates=run.updates,
        epochs=run.epochs,
        best_epoch=run.best_epoch,
        finished=run.finished,
        train_seconds=round(run.seconds, 1),
        seconds=round(time.monotonic() - since + run.before[0], 1),
        cpu_seconds=round(time.process_time() - busy + run.before[1], 1),
        device=device_name(job.device),
        threads=job.threads,
        versions=about.versions,
        data=about.data["files"] | evaluation["files"],
        sources=about.sources,
        max_steps=about.contract.max_steps,
        scores=convert(evaluation, Evaluation, out).scores,
        games=evaluation["pairs"],
    )


def request(practise: Practising, data: str) -> Request:
    """What a practising cell asks for."""
    from trainer.training.practise import Request

    return Request(
        sources=practise.sources or None,
        data=data,
        rounds=practise.rounds,
        samples=practise.samples,
        updates=practise.updates or None,
        corrections=practise.corrections,
    )


def describe(dataset: SweepDataset) -> dict[str, Any]:
    """What a dataset says of itself; an error if the sweep file says something else."""
    from trainer.data.dataset import Dataset

    stored = Dataset(dataset.path)
    claimed = {"task": dataset.task, "metric": dataset.metric, "design": dataset.design}
    if not stored.has("expert", "validation"):  # pairs alone: there is no metric or design
        return claimed
    contract = stored.contract(stored.footers("expert", "validation"))
    found = {"task": contract.task, "metric": contract.metric, "design": contract.design}
    for key, value in found.items():
        if claimed[key] and value != claimed[key]:
            raise BadData(f"{dataset.path}: {key} is {value!r}, the sweep file says {claimed[key]!r}")
    pairs = contract.spec.get("pairs", {})
    size = {key: pairs[key] for key in SIZE if type(pairs.get(key)) is int}
    return found | {"usual": contract.usual, "size": size}


def device_name(requested: str) -> str:
    """The hardware that was used."""
    from trainer.core.device import find_device

    device = find_device(requested)
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


def main() -> None:
    """The process: exits with 0 if the cell is finished or skipped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which kills its cells
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    job = decode(sys.stdin.buffer.readline(), CellJob, "standard input")
    exit_with_the_sweep()
    try:
        status, code = run_cell(job), 0
    except TrainerError as error:
        status, code = CellStatus(error=str(error)), error.exit_code
    if status:
        print(msgspec.json.encode(status).decode(), flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
