"""The training loop: it knows tensors, not tasks.

Every update is a pure function of the weights before it and of (seed, epoch, position): what it learns from,
its dropout and its teacher forcing derive from these. So a run that was killed resumes from its last checkpoint
and ends, on a CPU, with the same weights bit for bit as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import torch
from msgspec import Meta, Struct
from torch import Tensor, nn

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import BadData, Failed, FolderConflict, Interrupted
from trainer.core.interrupt import Interrupt
from trainer.core.progress import Reporter
from trainer.core.records import convert, plain
from trainer.core.seeding import derive
from trainer.data.batches import InvalidPosition, Sampler, Update
from trainer.data.contract import Contract
from trainer.game.rules import rules_of
from trainer.models.policy import Policy
from trainer.training.checkpoint import (
    MODEL,
    OPTIMIZER,
    load_checkpoint,
    load_optimizer,
    load_weights,
    most_bytes,
    optimizer_tensors,
    part,
    save_checkpoint,
)
from trainer.training.optimizer import Optimizer
from trainer.training.run import RunFolder
from trainer.training.validation import Validation, validate

T = TypeVar("T")
MANY = 1 << 50
Count = Annotated[int, Meta(ge=0, le=MANY)]
Ending = Literal["", "updates", "epochs", "perfection", "patience"]  # why a run is finished; empty: it is not


def learning_rate(config: Config, epochs: float, updates: int) -> float:
    """A warm-up, and cosine annealing with warm restarts, at a point of the run.

    >>> config = Config(restart=32, learning_rate=1.0)
    >>> [round(learning_rate(config, epochs, 0), 3) for epochs in (0, 16, 31.9, 32, 48)]
    [1.0, 0.5, 0.0, 1.0, 0.5]
    """
    highest = config.learning_rate * min(1, (updates + 1) / max(config.warm_up, 1))
    if config.schedule == "constant":
        return highest
    if config.rate_every == "epoch":
        epochs = math.floor(epochs)
    cycle = (epochs % config.restart) / config.restart if config.restart else min(updates / config.updates, 1)
    return highest * (1 + math.cos(math.pi * cycle)) / 2


def slot_weights(accuracy: Tensor) -> Tensor:
    """The adaptive loss: each slot of the action is weighted by its error; equally if there is none.

    >>> slot_weights(torch.tensor([1.0, 0.25, 0.75])).tolist()
    [0.0, 0.75, 0.25]
    """
    error = 1 - accuracy
    return error / error.sum() if error.sum() > 0 else torch.full_like(error, 1 / len(error))


class Position(Struct):
    """How far a run is, and its best result so far: the state of a ``last`` checkpoint."""

    epoch: Count = 0
    window: Count = 0
    index: Count = 0
    updates: Count = 0
    rate: float = 0.0  # the learning rate of the last update
    best: float | None = None
    best_epoch: Annotated[int, Meta(ge=-1, le=MANY)] = -1
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all threads of the process
    finished: Ending = ""
    world: Count = 0  # ranks that the windows of a stream are divided among; 0: positions are the same for any number

    def check(self, config: Config, where: str) -> None:
        """Refuse a position that a run with these settings cannot reach."""
        most = config.updates or MANY
        if (
            self.epoch > config.epochs
            or self.best_epoch > self.epoch
            or self.updates > most
            or max(self.epoch, self.window, self.index) > self.updates  # each takes at least one update
        ):
            at = f"epoch {self.epoch}, window {self.window}, update {self.index} of it and {self.updates} in all"
            raise BadData(f"{where}: {at}: a run with these settings cannot reach this position")


class Loop:
    """One run: model, optimizer, position."""

    def __init__(
        self,
        run: RunFolder,
        config: Config,
        contract: Contract,
        *,
        model: Policy,
        sampler: Sampler,
        validation: Validation,
        runtime: Runtime,
        reporter: Reporter,
        save_every: int,
    ) -> None:
        self.run, self.config, self.contract = run, config, contract
        self.model, self.sampler, self.validation = model.to(runtime.device), sampler, validation
        self.runtime, self.reporter, self.save_every = runtime, reporter, save_every
        self.environment = rules_of(contract, runtime.device)
        self.optimizer = Optimizer(model.parameter_groups(config), config.learning_rate)
        slots = model.targets
        self.adaptive = config.adaptive == "on" or (config.adaptive == "auto" and slots > 2)
        self.weights = torch.full((slots,), 1 / slots, device=runtime.device)
        # rows, their loss, right actions, right tokens of each slot: of the epoch so far, on this rank
        self.tally = torch.zeros(3 + slots, dtype=torch.float64, device=runtime.device)
        self.position = Position(world=runtime.world if config.stream else 0)
        self.saved, self.since, self.busy = 0, time.monotonic(), time.process_time()
        self.on_epoch: Callable[[dict[str, Any]], None] = lambda record: None

    def train(self, interrupt: Interrupt) -> Position:
        """Train until the epochs, the updates or the patience run out, or the accuracy is perfect."""
        self.since = time.monotonic() - self.position.seconds
        self.busy = time.process_time() - self.position.cpu_seconds
        trained = self.runtime.parallel(self.model, unused=self.model.has_unused)
        while not self.position.finished:
            self._epoch(trained, interrupt)
            record = self._finish_epoch(interrupt)
            if self.runtime.main:
                self.run.add_metrics(record)
                self.reporter.epoch(record)
                self.on_epoch(record)
            self.position.finished = self._why_finished()
            if self.position.finished or self.position.updates - self.saved >= self.save_every:
                self.save()
            if interrupt.requested and not self.position.finished:
                self._stop()
        return self.position

    def _epoch(self, trained: nn.Module, interrupt: Interrupt) -> None:
        at = self.position
        self.model.train()
        for update in self._updates(interrupt):
            loss = self._apply(trained, update)
            at.window, at.index, at.updates = update.window, update.index + 1, at.updates + 1
            done = (at.epoch + update.progress) / self.config.epochs
            if self.config.updates:
                done = max(done, at.updates / self.config.updates)
            self.reporter.update(at.epoch, done, loss.item, at.rate)
            if interrupt.requested:
                self._stop()
            if at.updates - self.saved >= self.save_every:
                self.save()
            if self._spent():
                break

    def _updates(self, interrupt: Interrupt) -> Iterator[Update]:
        """The rest of the epoch; an interrupt does not wait for data, which may be remote."""
        at = self.position
        if self._spent():  # stopped after its last update
            return
        updates = self.sampler.updates(at.epoch, at.window, at.index)
        while True:
            try:
                update = self._droppable(interrupt, lambda: next(updates, None))
            except InvalidPosition as error:  # of the checkpoint
                raise BadData(f"{self.run.last}: {error}") from error
            if update is None:
                return
            yield update

    def _spent(self) -> bool:
        return bool(self.config.updates and self.position.updates >= self.config.updates)

    def _apply(self, trained: nn.Module, update: Update) -> Tensor:
        at, config = self.position, self.config
        batch = update.batch.to(self.runtime.device)
        torch.manual_seed(derive(config.seed, "update", at.epoch, update.window, update.index, self.runtime.rank))
        rate = update.rate
        if rate is None:
            rate = learning_rate(config, at.epoch + update.progress, at.updates)
        at.rate = float(rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
        with self.runtime.autocast(config.precision):
            scores: Tensor = trained(*batch.inputs)
        losses, right = self.model.judge(scores, batch)  # (b, n)
        loss = (losses @ self.weights).mean()
        self.optimizer.zero_grad()
        torch.autograd.backward(loss * update.share)
        nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        if update.share:
            self.tally += count(right, loss.detach())
        return loss.detach()

    def _finish_epoch(self, interrupt: Interrupt) -> dict[str, Any]:
        """Adapt the loss, validate, save the best, and advance to the next epoch.

        Only the validation may be interrupted: a checkpoint written after it would belong to no epoch.
        """
        at, config = self.position, self.config
        rows, loss, right, *slots = self.runtime.total(self.tally).tolist()
        if not rows:
            raise BadData(f"{self.run.last}: epoch {at.epoch} ends before its first update")
        if not math.isfinite(loss):
            raise Failed(f"loss is NaN or infinite in epoch {at.epoch}; try a lower learning rate")
        accuracy = torch.tensor(slots) / rows
        record: dict[str, Any] = {
            "epoch": at.epoch,
            "updates": at.updates,
            "loss": loss / rows,
            "action_accuracy": 100 * right / rows,
            "slot_accuracy": [100 * value for value in accuracy.tolist()],
            "slot_weights": self.weights.tolist(),
            "learning_rate": at.rate,
            "best": False,
        }
        last = at.epoch + 1 == config.epochs or self._spent()
        due = (at.epoch + 1) % config.validate_every == 0 and self.sampler.ready(at.updates)
        if last or due:
            record["validation"], measure = self._droppable(interrupt, self._validate)
            better = at.best is None or measure > at.best
            record["best"] = better or (measure == at.best and config.ties == "last")
            if record["best"]:
                if self.runtime.main:
                    facts = {"epoch": at.epoch, "updates": at.updates, "validation": record["validation"]}
                    save_checkpoint(self.run.best, self.model.state_dict(), facts)
                at.best, at.best_epoch = measure, at.epoch  # only once the weights are on the disk
        if self.adaptive:
            scale = 1 if config.adaptive_scale == "sum" else len(accuracy)
            self.weights = slot_weights(accuracy).to(self.runtime.device) / scale
        self.tally.zero_()
        at.epoch, at.window, at.index = at.epoch + 1, 0, 0
        self._read_clock()
        return record | {"seconds": at.seconds}

    def _validate(self) -> tuple[dict[str, Any], float]:
        return validate(self.model, self.validation, self.environment, self.contract, self.config, self.runtime)

    def _read_clock(self) -> None:
        self.position.seconds = time.monotonic() - self.since
        self.position.cpu_seconds = time.process_time() - self.busy

    def _why_finished(self) -> Ending:
        at, config = self.position, self.config
        if self._spent():
            return "updates"
        if at.epoch >= config.epochs:
            return "epochs"
        if config.select != "loss" and config.ties == "first" and at.best == 1:
            return "perfection"  # no later checkpoint could be better
        return "patience" if at.epoch - 1 - at.best_epoch >= config.patience else ""

    def _droppable(self, interrupt: Interrupt, work: Callable[[], T]) -> T:
        """Do work that leaves the run unchanged: an interrupt stops it at once, and one of several ranks just ends."""
        try:
            with interrupt.at_once():
                return work()
        except KeyboardInterrupt:
            if not interrupt.active:
                raise
            self._stop()

    def _stop(self) -> NoReturn:
        self.save()
        raise Interrupted(f"stopped in epoch {self.position.epoch}; continue with --resume (in Python resume=True)")

    def save(self) -> None:
        """Write ``last``: everything that the rest of the run depends on."""
        self._read_clock()
        tally = self.runtime.total(self.tally)
        if self.runtime.main:
            tensors = {
                **{MODEL + name: tensor for name, tensor in self.model.state_dict().items()},
                **{OPTIMIZER + name: t for name, t in optimizer_tensors(self.model, self.optimizer).items()},
                "weights": self.weights,
                "tally": tally,
            }
            save_checkpoint(self.run.last, tensors, plain(self.position))
        self.saved = self.position.updates

    def resume(self) -> None:
        """Restore what :meth:`save` wrote."""
        where, world = self.run.last, self.position.world
        # Weights, two moments of each, and a count of updates for each tensor; the rest is small.
        tensors, state = load_checkpoint(where, 2 * most_bytes(self.model) + (1 << 20))
        self.position = convert(state, Position, where)
        self.position.check(self.config, str(where))
        if self.position.world != world and not self.position.finished:
            ranks = self.position.world
            how = f"resume with torchrun --nproc-per-node {ranks}" if ranks > 1 else "resume without torchrun"
            raise FolderConflict(f"{self.run.path}: its stream is divided among {ranks} ranks, not {world}; {how}")
        load_weights(self.model, part(tensors, MODEL), where)
        load_optimizer(self.model, self.optimizer, part(tensors, OPTIMIZER), where)
        for name, own in (("weights", self.weights), ("tally", self.tally)):
            if name not in tensors or tensors[name].shape != own.shape or tensors[name].dtype != own.dtype:
                raise BadData(f"{where}: {name} is missing or has another shape")
            if not (tensors[name][:1] >= 0).all():  # rows, or a share
                raise BadData(f"{where}: {name}: expected a first value >= 0, got {float(tensors[name][0])}")
            own.copy_(tensors[name])
        if not self.runtime.main:
            self.tally.zero_()  # the sum is on the first rank
        self.saved = self.position.updates


def count(right: Tensor, loss: Tensor) -> Tensor:
    """Rows, their loss, right actions, and right tokens of each slot (b, n)."""
    rows = torch.tensor(float(len(right)), device=right.device)
    return torch.stack((rows, rows * loss, right.all(1).sum(), *right.sum(0))).double()
