"""From a dataset and a config to a run: what ``trainer fit`` calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.batches import Memory, Source, Stream
from trainer.config import Config
from trainer.contract import Contract
from trainer.data import Dataset, Footer
from trainer.device import Runtime
from trainer.errors import InvalidConfig
from trainer.events import Events
from trainer.fit import Loop, Validation
from trainer.interrupt import Interrupt
from trainer.lessons import load_held_out, load_lessons, open_training
from trainer.models import build_model, count_parameters
from trainer.progress import Reporter
from trainer.run import Description, Run
from trainer.seeding import derive
from trainer.steps import load_pairs

MAX_IN_MEMORY = 1 << 32  # bytes of id tensors


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    run: Path
    parameters: int
    epochs: int
    updates: int
    best: float | None
    best_epoch: int
    finished: str
    seconds: float
    main: bool = True  # whether this rank is the one that speaks

    def to_json(self) -> dict[str, Any]:
        """As a plain object."""
        values = vars(self) | {"run": str(self.run)}
        del values["main"]
        return values


def make_source(
    dataset: Dataset, footers: list[Footer], contract: Contract, config: Config, runtime: Runtime
) -> Source:
    """The demonstrations: in memory where they fit, or streamed."""
    if config.stream and contract.game == "text":
        raise InvalidConfig(f"{config.model} learns from whole pairs, which are held in memory: leave --stream out")
    if config.stream:
        return Stream(dataset, footers, contract, config, runtime)
    rows = sum(footer.shard.rows for footer in footers)
    needed = rows * (4 * contract.max_state + 8 * contract.action_length + 32)
    if needed > MAX_IN_MEMORY:
        size = f"{rows:,} steps may need {needed / 1e9:.1f} GB of memory"
        raise InvalidConfig(f"{dataset.where}: {size}; --stream reads them in parts")
    return Memory(load_lessons(dataset, footers, contract), config, runtime)


def fit(
    data: str | Path,
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    compiled: bool = False,
    save_every: int = 1000,
    reporter: Reporter | None = None,
) -> Result:
    """Train an agent on a dataset into a run folder, or go on with one that was stopped."""
    runtime = Runtime.start(device, compiled)
    run = Run(Path(out))
    try:
        if runtime.main:
            run.hold()
        runtime.wait()
        return _fit(data, config, run, runtime, resume, save_every, reporter or Reporter(quiet=not runtime.main))
    finally:
        run.release()
        runtime.stop()


def _fit(
    data: str | Path,
    config: Config,
    run: Run,
    runtime: Runtime,
    resume: bool,
    save_every: int,
    reporter: Reporter,
) -> Result:
    dataset = Dataset(data)
    footers, contract = open_training(dataset, config)
    parameters = count_parameters(config, contract)
    runtime.check_memory(parameters, copies=4)  # weights, gradients, two moments
    description = Description.make(config, contract, dataset, parameters)
    going_on = bool(runtime.largest(int(run.begin(description, resume) if runtime.main else False)))
    source = make_source(dataset, footers, contract, config, runtime)
    validation = Validation(
        load_held_out(dataset, "validation", contract),
        load_pairs(dataset, "validation", contract),
    )
    torch.manual_seed(derive(config.seed, "weights"))
    loop = Loop(
        run,
        config,
        contract,
        model=build_model(config, contract),
        source=source,
        validation=validation,
        runtime=runtime,
        reporter=reporter,
        save_every=save_every,
    )
    if going_on:
        loop.resume()
    if runtime.main:
        run.keep_metrics(loop.position.epoch)
        reporter.line(f"{config.model}: {parameters:,} parameters, {describe(source)}, {runtime.device}")
    with (
        Events(run.path if runtime.main else None, loop.position.epoch) as events,
        Interrupt(runtime.world == 1) as stop,
    ):
        loop.on_epoch = events.add
        at = loop.train(stop)
    reporter.close()
    return Result(
        run.path,
        parameters,
        at.epoch,
        at.updates,
        at.best,
        at.best_epoch,
        at.finished,
        at.seconds,
        runtime.main,
    )


def describe(source: Source) -> str:
    """A source in a few words."""
    if isinstance(source, Memory):
        return f"{len(source.steps):,} unique steps of {source.steps.trajectories:,} trajectories"
    assert isinstance(source, Stream)
    return f"{len(source.groups):,} row groups, streamed"
