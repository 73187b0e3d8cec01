"""From a dataset and a config to a trained run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import FolderConflict
from trainer.core.format import MANIFEST
from trainer.core.interrupt import Interrupt
from trainer.core.progress import Reporter
from trainer.core.seeding import derive
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import check_held_out, load_held_out
from trainer.data.encode import load_pairs
from trainer.models.zoo import build_model, count_parameters, find_model, make_model, open_demonstrations
from trainer.training.events import Events
from trainer.training.loop import Loop
from trainer.training.run import Description, RunFolder
from trainer.training.validation import Validation


@dataclass(frozen=True)
class Result:
    """What a run achieved."""

    folder: Path
    parameters: int
    epochs: int
    updates: int
    best: float | None  # the validation's accuracy, or minus its loss, as the config selects
    best_epoch: int
    finished: str  # why: updates, epochs, perfection or patience
    seconds: float
    before: tuple[float, float] = (0.0, 0.0)  # seconds, and CPU seconds, of the processes that it resumed
    main: bool = True  # whether this rank reports

    def to_json(self) -> dict[str, Any]:
        """As a plain object."""
        values = vars(self) | {"run": str(self.folder)}
        return {name: value for name, value in values.items() if name not in ("folder", "main", "before")}


def train_run(
    data: str | Path,
    config: Config,
    out: str | Path,
    *,
    resume: bool = False,
    device: str = "auto",
    compiled: bool = False,
    save_every: int = 1000,
    reporter: Reporter | None = None,
    why: str = "",
) -> Result:
    """Train an agent on a dataset into a run folder, or resume an interrupted run; the log says ``why`` this model."""
    check_out(Path(out))
    runtime = Runtime.start(device, compiled)
    run = RunFolder(Path(out))
    reporter = reporter or Reporter(quiet=not runtime.main)
    try:
        if runtime.main:
            run.hold()
        runtime.wait()
        loop, parameters = _prepare(Dataset(data), config, run, runtime, resume, save_every, reporter, why)
        before = (loop.position.seconds, loop.position.cpu_seconds)
        with (
            Events(run.path if runtime.main else None, loop.position.epoch) as events,
            Interrupt(runtime.world == 1) as stop,
        ):
            loop.on_epoch = events.add
            at = loop.train(stop)
    finally:
        reporter.close()
        run.release()
        runtime.stop()
    done = (at.epoch, at.updates, at.best, at.best_epoch, at.finished, at.seconds)
    return Result(run.path, parameters, *done, before, runtime.main)


def check_out(out: Path) -> None:
    """Refuse to write a run into a dataset, which would be published with it."""
    for folder in (out, *out.absolute().parents):
        with suppress(OSError):  # no such name can be: whoever makes the folder says so
            if (folder / MANIFEST).is_file() and (folder / "pairs").is_dir():  # others call a file so too
                raise FolderConflict(f"{out}: {folder} is a dataset; choose another folder for the run")


def _prepare(
    dataset: Dataset,
    config: Config,
    run: RunFolder,
    runtime: Runtime,
    resume: bool,
    save_every: int,
    reporter: Reporter,
    why: str,
) -> tuple[Loop, int]:
    """The loop at its first position, or where the run stopped, and the number of parameters."""
    begun = Description.read(run.config) if resume and run.config.exists() else None
    if config.precision == "auto":  # a run goes on as it began, also on another machine
        config = replace(config, precision=begun.config.precision if begun else runtime.best_precision)
    data = open_demonstrations(dataset, config)
    check_held_out(dataset, data.contract)
    config, knowledge = find_model(config.model).study(data, config, begun.knowledge if begun else None)
    parameters = count_parameters(config, data.contract, knowledge)
    runtime.check_memory(parameters, copies=4)  # weights, gradients, two moments
    # The validation of a dataset beyond memory can be too large for it too.
    rows = config.stream_rows if config.stream else None
    validation = Validation(
        load_held_out(dataset, "validation", data.contract, rows),
        load_pairs(dataset, "validation", data.contract, rows and rows // 4),  # a pair is played for some steps
    )
    # Only now: bad data must not leave a run behind that cannot be resumed.
    description = Description.make(config, data, parameters, knowledge)
    resumes = bool(runtime.largest(int(run.begin(description, resume) if runtime.main else False)))
    torch.manual_seed(derive(config.seed, "weights"))
    model = (make_model if resumes else build_model)(config, data.contract, knowledge)
    sampler = model.sampler(data, config, runtime)
    loop = Loop(
        run,
        config,
        data.contract,
        model=model,
        sampler=sampler,
        validation=validation,
        runtime=runtime,
        reporter=reporter,
        save_every=save_every,
    )
    if resumes:
        loop.resume()
    if runtime.main:
        run.keep_metrics(loop.position.epoch)
        facts = f"{parameters:,} parameters, {sampler.about}, {runtime.device}"
        reporter.line(f"{config.model}: {facts}" + (f" ({why})" if why else ""))
    return loop, parameters
