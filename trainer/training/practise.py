"""From a trained agent to one that has practised: play, keep what wins, learn from it, again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from torch import Tensor, nn

from trainer.core.config import MANY, ROUNDS, SAMPLES, Config, Times, Updates, checked
from trainer.core.device import Runtime
from trainer.core.errors import BadData, InvalidConfig
from trainer.core.files import digest
from trainer.core.format import SPLITS
from trainer.core.interrupt import Interrupt
from trainer.core.progress import Reporter
from trainer.core.records import plain
from trainer.data.batches import Update
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import check_held_out, load_held_out
from trainer.data.encode import load_pairs
from trainer.data.hub import SCHEME, hub_id
from trainer.data.sources import Sources, load_sources, playable
from trainer.models.zoo import build_model, count_parameters, find_model, open_demonstrations
from trainer.training.checkpoint import load_checkpoint, load_weights, most_bytes, save_checkpoint
from trainer.training.events import Events
from trainer.training.fit import Result, check_out
from trainer.training.loop import Loop
from trainer.training.rounds import Practice, PracticeSampler
from trainer.training.run import BEST, CONFIG, PUBLISHED, Description, RunFolder, find_folder
from trainer.training.validation import Validation

EPOCHS = MANY  # the updates run out first


class PracticeLoop(Loop):
    """The loop of a run that begins with a trained agent; its log says what came of each round's games."""

    sampler: PracticeSampler

    def begin(self) -> None:
        """The agent as it came is the first candidate for the best: practice that makes it worse is not kept."""
        at = self.position
        record, at.best = self._validate()
        save_checkpoint(self.run.best, self.model.state_dict(), {"epoch": -1, "updates": 0, "validation": record})

    def _apply(self, trained: nn.Module, update: Update) -> Tensor:
        """Weight decay keeps few examples from being learned by heart: with more of them it weighs less."""
        share = self.sampler.shown * self.model.practised_decay
        for group, own in zip(self.optimizer.param_groups, self.model.parameter_groups(self.config), strict=True):
            group["weight_decay"] = own["weight_decay"] * share
        return super()._apply(trained, update)

    def _finish_epoch(self, interrupt: Interrupt) -> dict[str, Any]:
        return super()._finish_epoch(interrupt) | {"practice": self.sampler.facts}


def practised_updates(imitation: int, demonstrations: int, sources: int) -> int:
    """Updates of one round by default: half of those of imitation, more as there are more sources.

    They grow with the square root of the number of sources, as far as these are more than the demonstrations.

    >>> practised_updates(8000, 7000, 7000), practised_updates(8000, 7000, 28_000)
    (4000, 8000)
    """
    return max(round(imitation / 2 * math.sqrt(max(sources / max(demonstrations, 1), 1))), 1)


@dataclass(frozen=True)
class Request:
    """What to practise on, and how much."""

    sources: str | Path | None = None  # a dataset of sources alone, besides the training pairs
    data: str | Path | None = None  # the demonstrations, if they are not where the run says
    rounds: Times = ROUNDS
    samples: Times = SAMPLES  # games from each source in a round
    updates: Updates | None = None  # of a round; None: by :func:`practised_updates`
    corrections: bool = True  # whether it also learns the expert's answers to states that it came to (DAgger)
    seed: int | None = None  # None: that of the run to begin with

    def __post_init__(self) -> None:
        kinds = {"rounds": Times, "samples": Times, "updates": Updates | None, "corrections": bool}
        for name, kind in kinds.items():
            checked(name, getattr(self, name), kind)


def practise_run(
    start: str | Path,
    out: str | Path,
    request: Request,
    *,
    resume: bool = False,
    device: str = "auto",
    save_every: int = 1000,
    reporter: Reporter | None = None,
) -> Result:
    """Practise from the best weights of a run, or of a published agent, into a new run folder, or resume that."""
    check_out(Path(out))
    if Path(out).resolve() == Path(start).resolve():
        raise InvalidConfig(f"{out}: the run to begin with; choose another folder for the practised one")
    runtime = Runtime.start(device, False)
    run, reporter = RunFolder(Path(out)), reporter or Reporter()
    try:
        if runtime.world > 1:
            raise InvalidConfig("practice plays in one process; run it without torchrun")
        run.hold()
        loop, parameters = _prepare(str(start), run, request, runtime, reporter, resume, save_every)
        before = (loop.position.seconds, loop.position.cpu_seconds)
        with Events(run.path, loop.position.epoch) as events, Interrupt(True) as stop:
            loop.on_epoch = events.add
            at = loop.train(stop)
    finally:
        reporter.close()
        run.release()
        runtime.stop()
    return Result(run.path, parameters, at.epoch, at.updates, at.best, at.best_epoch, at.finished, at.seconds, before)


def _prepare(
    start: str,
    run: RunFolder,
    request: Request,
    runtime: Runtime,
    reporter: Reporter,
    resume: bool,
    save_every: int,
) -> tuple[PracticeLoop, int]:
    """The loop at its first position, or where the run stopped, and the number of parameters."""
    folder = find_folder(start)
    begun = Description.read(folder / CONFIG)
    if not find_model(begun.config.model).practises:
        raise InvalidConfig(f"{start}: {begun.config.model} cannot practise: it does not sample its actions")
    contract, knowledge = begun.contract, begun.knowledge
    weights = [folder / name for name in (BEST, PUBLISHED) if (folder / name).exists()]
    if not weights:
        raise BadData(f"{start}: no weights yet; the first validation writes them")
    dataset = Dataset(request.data or begun.dataset)
    data = open_demonstrations(dataset, replace(begun.config, stream=False))
    if data.contract != contract:
        raise BadData(f"{dataset.where}: not the demonstrations that {start} was trained on")
    check_held_out(dataset, contract)
    free = Dataset(request.sources) if request.sources else None
    played = find_sources(dataset, free, contract)
    practice = Practice(
        rounds=request.rounds,
        samples=request.samples,
        updates=request.updates or default_updates(start, folder, begun.config, played),
        corrections=request.corrections,
        start=digest(weights[0]),
        sources=free.hashes("sources", "train") if free else {},
    )
    seed = begun.config.seed if request.seed is None else request.seed
    updates = practice.rounds * practice.updates
    config = replace(begun.config, updates=updates, epochs=EPOCHS, seed=seed, stream=False)
    parameters = count_parameters(config, contract, knowledge)
    runtime.check_memory(parameters, copies=4)  # weights, gradients, two moments
    validation = Validation(load_held_out(dataset, "validation", contract), load_pairs(dataset, "validation", contract))
    model = build_model(config, contract, knowledge)
    load_weights(model, load_checkpoint(weights[0], most_bytes(model))[0], weights[0])
    # Only now: bad data must not leave a run behind that cannot be resumed.
    described = Description.make(config, data, parameters, knowledge, plain(practice))
    name = hub_id(start)
    places = {"begun": f"{SCHEME}{name}" if name else start, "sources": free.where if free else ""}
    resumes = run.begin(dataclass_replace(described, data=described.data | places), resume)
    sampler = PracticeSampler(model, data, config, practice, played, run.path, runtime, reporter)
    loop = PracticeLoop(
        run,
        config,
        contract,
        model=model,
        sampler=sampler,
        validation=validation,
        runtime=runtime,
        reporter=reporter,
        save_every=save_every,
    )
    reporter.line(f"{config.model}: {parameters:,} parameters, {sampler.about}, {runtime.device}")
    if resumes:
        loop.resume()
    else:
        loop.begin()
    run.keep_metrics(loop.position.epoch)
    return loop, parameters


def find_sources(dataset: Dataset, free: Dataset | None, contract: Contract) -> list[tuple[str, Sources]]:
    """What is played: the training sources with their targets, and the free ones, of which none is held out."""
    if contract.goal is None:
        raise BadData(f"{dataset.where}: no reward: its shards define no goal; build the dataset again")
    pairs = load_pairs(dataset, "train", contract)
    mine = playable(pairs.sources, pairs.states, pairs.lengths, pairs.playable, contract.goal)
    targets = [target for target, plays in zip(pairs.targets, pairs.playable.tolist(), strict=True) if plays]
    found = [("training", dataclass_replace(mine, targets=targets))]
    if free is None:
        return found
    sources = load_sources(free, contract)
    for split in SPLITS[1:]:
        if dataset.has("pairs", split):
            held_out = set(load_pairs(dataset, split, contract).sources)
            if shared := len(held_out & set(sources.texts)):
                how = f"leave them out with `aegen sources … --apart-from {dataset.where}`"
                raise BadData(f"{free.where}: {shared:,} of its sources are in {split} of {dataset.where}; {how}")
    return [*found, ("free", sources)]


def default_updates(start: str, folder: Path, config: Config, played: list[tuple[str, Sources]]) -> int:
    """Updates of a round, by what the run to begin with was trained for and how many sources there are."""
    lines = RunFolder(folder).read_metrics()
    imitated = config.updates or (lines[-1].get("updates") if lines else None)
    if not isinstance(imitated, int):
        raise InvalidConfig(f"{start}: the number of its updates is not recorded; use --updates")
    return practised_updates(imitated, len(played[0][1]), sum(len(sources) for _, sources in played))
