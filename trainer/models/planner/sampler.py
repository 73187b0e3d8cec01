"""The planner's updates: batches of examples for one of its two networks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.device import Runtime, many_shapes
from trainer.core.seeding import generator
from trainer.data.batches import InvalidPosition, Update
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.models.planner.edit_classes import END
from trainer.models.planner.examples import Examples, open_trajectories
from trainer.models.planner.knowledge import whole_scripts
from trainer.models.planner.recipe import Part, Stage

if TYPE_CHECKING:
    from trainer.models.planner.model import Planner

EPOCH = 500  # updates between two validations
MAX_QUESTIONS = 1 << 21  # to the token network, for the features of the plan network
SINGLE = 0.75  # share of the auxiliary rows with one mask; the others have as many as a script


@dataclass(frozen=True)
class PlannerBatch:
    """One update's rows: a part of the planner, what it sees, and what it should say."""

    part: Part
    states: Tensor  # (b, m), for the token part a view (b, 2 r)
    lengths: Tensor  # (b)
    actions: Tensor  # (b, k) the right classes, -1 behind the last; k is 1 unless some states have several
    features: Tensor | None = None
    smoothing: float = 0.0

    @property
    def inputs(self) -> tuple[Part, Tensor, Tensor, Tensor | None]:
        return self.part, self.states, self.lengths, self.features

    def to(self, device: torch.device) -> PlannerBatch:
        """The same rows on a device."""
        features = None if self.features is None else self.features.to(device)
        states, lengths, actions = (tensor.to(device) for tensor in (self.states, self.lengths, self.actions))
        return PlannerBatch(self.part, states, lengths, actions, features, self.smoothing)


class PlannerSampler:
    """The updates of a planner: every one a pure function of (seed, its number) and of the weights so far."""

    def __init__(self, model: Planner, steps: Steps, config: Config, contract: Contract, runtime: Runtime) -> None:
        self.model, self.config, self.runtime = model, config, runtime
        self.stages = model.recipe.stages
        self.shares = model.stage_updates(config)
        self.total = sum(self.shares)
        view, classes_of = model.knowledge.view, model.edits
        if view == "scripts":
            sources, scripts, _ = whole_scripts(steps, contract)
            numbers = {script: number for number, script in enumerate(model.knowledge.scripts)}
            answers = torch.tensor([numbers[script] for script in scripts])
            self.tokens = Examples(sources, (sources > 0).sum(1), answers)
        elif view == "span":
            classes, tokens = classes_of.classes(steps.actions.long())
            states, lengths = steps.states[steps.state_of].long(), steps.lengths[steps.state_of].long()
            self.plans = Examples(states, lengths, classes)
            edits = classes != END
            spans, widths = model.spans(states[edits], classes[edits])
            self.tokens = Examples(spans, widths, tokens[edits]).unique()
        else:
            self.openings = open_trajectories(steps, classes_of, contract, model.mask, config.seed)
            self.plans = self.openings.plans
        if steps.games:
            self.group()
        self.told: Tensor | None = None

    def group(self) -> None:
        """Learn all right answers to a state at once: several games can win from one."""
        if self.model.knowledge.view == "opened":
            self.openings = replace(self.openings, fillings=self.openings.fillings.grouped())
        else:
            self.tokens = self.tokens.grouped()
        if self.model.knowledge.view != "scripts":
            self.plans = self.plans.grouped()

    @property
    def about(self) -> str:
        known = self.model.knowledge
        return f"view {known.view}" + (", tokens through their characters" if known.tokens == "characters" else "")

    def ready(self, updates: int) -> bool:
        return updates > sum(self.shares[:-1])

    def from_update(self, number: int) -> Iterator[Update]:
        """All updates from one on."""
        epoch, index = divmod(number, EPOCH)
        while epoch * EPOCH < self.total:
            yield from self.updates(epoch, 0, index)
            epoch, index = epoch + 1, 0

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on; an epoch is one window."""
        first = epoch * EPOCH
        count = min(EPOCH, self.total - first)
        if window or count <= 0 or index > count:
            raise InvalidPosition(epoch, window, index)
        for at in range(index, count):
            stage, number, updates = self.find(first + at)
            draw = generator(self.config.seed, "lesson", first + at)
            batch = self.plan_rows(stage, draw) if stage.part == "plan" else self.token_rows(stage, draw)
            share = len(batch.actions) * self.runtime.world / stage.batch
            yield Update(batch, 0, at, at / count, share, stage.rate(number, updates))

    def find(self, update: int) -> tuple[Stage, int, int]:
        """The stage of an update, its number there, and how many the stage has."""
        for stage, updates in zip(self.stages, self.shares, strict=True):
            if update < updates:
                return stage, update, updates
            update -= updates
        raise IndexError(update)

    def mine(self, rows: Tensor) -> Tensor:
        """This rank's part of a batch."""
        return rows[self.runtime.rank :: self.runtime.world]

    def plan_rows(self, stage: Stage, draw: torch.Generator) -> PlannerBatch:
        """States and the places of their next edits."""
        if self.told is None and self.model.confident:
            self.told = self.tell()
        rows = self.mine(torch.randint(len(self.plans), (stage.batch,), generator=draw))
        states, lengths = self.plans.states[rows], self.plans.lengths[rows]
        features = None if self.told is None else self.told[rows]
        return PlannerBatch("plan", states, lengths, as_columns(self.plans.answers[rows]), features, stage.smoothing)

    def tell(self) -> Tensor:
        """What the token network says of every place of the plans' states; too many states are sampled."""
        questions = int(2 * self.plans.lengths.sum()) + len(self.plans)
        if questions > MAX_QUESTIONS:
            order = torch.randperm(len(self.plans), generator=generator(self.config.seed, "plans"))
            kept = order[: max(len(order) * MAX_QUESTIONS // questions, 1)].sort().values
            self.plans = Examples(self.plans.states[kept], self.plans.lengths[kept], self.plans.answers[kept])
        width = max(int(self.plans.lengths.max()), 1)
        self.plans = Examples(self.plans.states[:, :width], self.plans.lengths, self.plans.answers)
        device = self.runtime.device
        training = self.model.training
        self.model.eval()
        told = []
        with many_shapes():
            for rows in torch.split(torch.arange(len(self.plans)), 1024):
                states, lengths = self.plans.states[rows].to(device), self.plans.lengths[rows].to(device)
                told.append(self.model.confidence(states, lengths).cpu())
        self.model.train(training)
        return torch.cat(told)

    def token_rows(self, stage: Stage, draw: torch.Generator) -> PlannerBatch:
        """Views and the classes of the token network."""
        if self.model.knowledge.view != "opened":
            rows = self.mine(torch.randint(len(self.tokens), (stage.batch,), generator=draw))
            states, lengths = self.tokens.states[rows], self.tokens.lengths[rows]
            answers = self.tokens.answers[rows]
        else:
            states, lengths, answers = map(self.mine, self.masked_rows(stage.batch, draw))
        return PlannerBatch(
            "token", self.model.token_view(states, lengths), lengths, as_columns(answers), None, stage.smoothing
        )

    def masked_rows(self, batch: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Demonstrated fillings and, for the rest of the batch, masked tokens of goals."""
        fillings, goals, masks = self.openings.fillings, self.openings.goals, self.openings.masks
        extra = int(batch * self.config.auxiliary) if len(fillings) else batch
        rows = torch.randint(max(len(fillings), 1), (batch - extra,), generator=draw)
        states, lengths, answers = fillings.states[rows], fillings.lengths[rows], fillings.answers[rows]
        place = (states == self.model.mask).long().argmax(1, keepdim=True)
        states = states.scatter(1, place, self.model.query)
        rows = torch.randint(len(goals), (extra,), generator=draw)
        whole, sizes = goals.states[rows], goals.lengths[rows]
        single = torch.rand(extra, generator=draw) < SINGLE
        drawn = masks[torch.randint(len(masks), (extra,), generator=draw)] if len(masks) else torch.ones(extra)
        number = torch.where(single, 1, drawn.long())
        noise = torch.rand(whole.shape, generator=draw).masked_fill(whole == 0, 2.0)
        rank = noise.argsort(1).argsort(1)
        hidden = (rank < number[:, None]) & (whole != 0)
        asked = rank.argmin(1, keepdim=True)
        seen = whole.masked_fill(hidden, self.model.mask).scatter(1, asked, self.model.query)
        answers = as_columns(answers)
        answer = torch.nn.functional.pad(whole.gather(1, asked), (0, answers.shape[1] - 1), value=-1)
        return torch.cat((states, seen)), torch.cat((lengths, sizes)), torch.cat((answers, answer))


def as_columns(answers: Tensor) -> Tensor:
    """Answers (b, k), also where there is one for each."""
    return answers if answers.dim() > 1 else answers[:, None]
