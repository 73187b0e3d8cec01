"""From a dataset and a config to a run: what ``trainer fit`` calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import InvalidConfig
from trainer.core.interrupt import Interrupt
from trainer.core.progress import Reporter
from trainer.core.seeding import derive
from trainer.data.batches import Memory, Source
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset, Footer
from trainer.data.encode import Steps, load_pairs
from trainer.data.stream import Stream
from trainer.models.planner.lessons import Lessons
from trainer.models.planner.model import Planner
from trainer.models.zoo import build_model, count_parameters, find_model
from trainer.training.demonstrations import check_games, load_held_out, load_lessons, open_training
from trainer.training.events import Events
from trainer.training.loop import Loop, Validation
from trainer.training.run import Description, Run

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
    before: tuple[float, float] = (0.0, 0.0)  # seconds, and CPU seconds, of earlier processes that it went on from
    main: bool = True  # whether this rank is the one that speaks

    def to_json(self) -> dict[str, Any]:
        """As a plain object."""
        values = vars(self) | {"run": str(self.run)}
        del values["main"], values["before"]
        return values


def load_training(dataset: Dataset, footers: list[Footer], contract: Contract) -> Steps:
    """The demonstrations in memory, where they fit."""
    rows = sum(footer.shard.rows for footer in footers)
    needed = rows * (4 * contract.max_state + 8 * contract.action_length + 32)
    if needed > MAX_IN_MEMORY:
        size = f"{rows:,} steps may need {needed / 1e9:.1f} GB of memory"
        raise InvalidConfig(f"{dataset.where}: {size}; --stream reads them in parts")
    return load_lessons(dataset, footers, contract)


def survey(
    dataset: Dataset, footers: list[Footer], contract: Contract, config: Config
) -> tuple[Config, Any, Steps | None]:
    """The config with what the data decides, the model's knowledge, and the steps where they had to be read."""
    kind = find_model(config.model)
    if kind.learns_from_steps:
        return config, None, None
    if config.stream:
        raise InvalidConfig(f"{config.model} keeps its lessons in memory; --stream needs another model")
    steps = load_training(dataset, footers, contract)
    check_games(steps, contract, f"{dataset.where}/{footers[0].shard.name.partition('/')[0]}")
    knowledge = kind.survey(steps, contract, config)
    return replace(config, **kind.complete(config, knowledge)), knowledge, steps


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
    config, knowledge, steps = survey(dataset, footers, contract, config)
    parameters = count_parameters(config, contract, knowledge)
    runtime.check_memory(parameters, copies=4)  # weights, gradients, two moments
    description = Description.make(config, contract, dataset, parameters, knowledge)
    going_on = bool(runtime.largest(int(run.begin(description, resume) if runtime.main else False)))
    # The validation of a dataset beyond memory can be too large for it too.
    rows = config.stream_rows if config.stream else None
    validation = Validation(
        load_held_out(dataset, "validation", contract, rows),
        load_pairs(dataset, "validation", contract, rows and rows // 4),  # a pair is played for some steps
    )
    torch.manual_seed(derive(config.seed, "weights"))
    model = build_model(config, contract, knowledge)
    source: Source
    if isinstance(model, Planner) and steps is not None:
        source = Lessons(model, steps, config, contract, runtime)
    elif config.stream and contract.game == "text":
        raise InvalidConfig(f"{config.model} learns from whole pairs, which are held in memory: leave --stream out")
    elif config.stream:
        source = Stream(dataset, footers, contract, config, runtime)
    else:
        source = Memory(load_training(dataset, footers, contract), config, runtime)
    loop = Loop(
        run,
        config,
        contract,
        model=model,
        source=source,
        validation=validation,
        runtime=runtime,
        reporter=reporter,
        save_every=save_every,
    )
    if going_on:
        loop.resume()
    before = (loop.position.seconds, loop.position.cpu_seconds)
    if runtime.main:
        run.keep_metrics(loop.position.epoch)
        reporter.line(f"{config.model}: {parameters:,} parameters, {source.about}, {runtime.device}")
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
        before,
        runtime.main,
    )
