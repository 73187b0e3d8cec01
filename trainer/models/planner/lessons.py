"""What the planner learns from: the rows of the shards, read as plans and as tokens to fill in.

A trajectory, expert or shifted, says which edits turn its states into a goal. From every state on it, the edits
that are left are *opened* one after the other: what they remove goes, what they write becomes MASK. So the rows
of TG and TA give, without anything else,

- plans: (state with the first edits opened → the place of the next one, or END), and
- fillings: (state with all edits opened → the token at its first MASK).

A third kind of row asks for masked tokens of the goal states themselves: these are states of the demonstrations
too, and they show how the tokens of a finished text belong together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from trainer.core.config import Config
from trainer.core.device import Runtime, many_shapes
from trainer.core.seeding import generator
from trainer.data.batches import Turn
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.game.environment import splice
from trainer.models.planner.knowledge import whole_scripts
from trainer.models.planner.model import Planner
from trainer.models.planner.moves import END, Moves
from trainer.models.planner.recipe import Part, Stage

EPOCH = 500  # updates between two looks at the validation games
MAX_TRAJECTORIES = 1 << 18  # more than that are sampled
MAX_QUESTIONS = 1 << 21  # to the token network, for what the plan reads of it
SINGLE = 0.75  # share of the auxiliary rows with one mask; the others have as many as a script


@dataclass(frozen=True)
class Lesson:
    """One update's rows: a part of the planner, what it sees, and what it should say."""

    part: Part
    states: Tensor  # (b, m), for the token part a view (b, 2 r)
    lengths: Tensor  # (b)
    actions: Tensor  # (b, 1) the right classes
    features: Tensor | None = None
    smoothing: float = 0.0

    @property
    def inputs(self) -> tuple[Part, Tensor, Tensor, Tensor | None]:
        """What the model is called with."""
        return self.part, self.states, self.lengths, self.features

    def to(self, device: torch.device) -> Lesson:
        """The same lesson on a device."""
        features = None if self.features is None else self.features.to(device)
        states, lengths, actions = (tensor.to(device) for tensor in (self.states, self.lengths, self.actions))
        return Lesson(self.part, states, lengths, actions, features, self.smoothing)


@dataclass(frozen=True)
class Rows:
    """States with an answer each."""

    states: Tensor  # (rows, m)
    lengths: Tensor  # (rows)
    answers: Tensor  # (rows)

    def __len__(self) -> int:
        return len(self.answers)

    def unique(self) -> Rows:
        """Without repetitions, in a fixed order."""
        joined = torch.unique(torch.cat((self.states, self.lengths[:, None], self.answers[:, None]), 1), dim=0)
        return Rows(joined[:, :-2], joined[:, -2], joined[:, -1])

    @classmethod
    def join(cls, parts: list[Rows]) -> Rows:
        """Several as one, padded to the widest."""
        width = max(part.states.shape[1] for part in parts)
        states = [functional.pad(part.states, (0, width - part.states.shape[1])) for part in parts]
        return cls(
            torch.cat(states), torch.cat([part.lengths for part in parts]), torch.cat([part.answers for part in parts])
        )


@dataclass(frozen=True)
class Openings:
    """All that the view ``opened`` learns from."""

    plans: Rows
    fillings: Rows  # states with masks; the answer belongs to the first of them
    goals: Rows  # finished states
    masks: Tensor  # how many tokens the scripts write, to draw from


def chosen_trajectories(steps: Steps, seed: int) -> Tensor:
    """The trajectories to learn from: all, or a seeded sample of too many."""
    if steps.trajectories <= MAX_TRAJECTORIES:
        return torch.arange(steps.trajectories)
    order = torch.randperm(steps.trajectories, generator=generator(seed, "trajectories"))
    return order[:MAX_TRAJECTORIES].sort().values


def open_trajectories(steps: Steps, moves: Moves, contract: Contract, mask: int, seed: int) -> Openings:
    """Open the edits that are left at every state of every trajectory."""
    chosen = chosen_trajectories(steps, seed)
    first, last = steps.starts[chosen], steps.starts[chosen + 1] - 1  # the last row is DONE
    counts = last - first + 1
    row = torch.arange(int(counts.sum())) + torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    final = torch.repeat_interleave(last, counts)
    # A state on the way and the goal it goes to, once each, however many trajectories pass.
    pairs = torch.stack((steps.taken[row], steps.state_of[steps.taken[final]]), 1)
    _, back = torch.unique(pairs, dim=0, return_inverse=True)
    keep = torch.full((int(back.max()) + 1,), len(row)).scatter_reduce_(0, back, torch.arange(len(row)), "amin")
    at, end = row[keep], final[keep]
    all_classes, tokens = moves.classes(steps.actions.long())
    state = steps.states[steps.state_of[steps.taken[at]]].long()
    length = steps.lengths[steps.state_of[steps.taken[at]]].long()
    goal = steps.state_of[steps.taken[end]]
    plans, fillings = [], []
    while len(at):
        answer = all_classes[steps.taken[at]]
        plans.append(Rows(state, length, answer))
        over = answer == END
        masked = (state[over] == mask).any(1)
        asked, target = state[over][masked], steps.states[goal[over][masked]].long()
        place = (asked == mask).long().argmax(1, keepdim=True)
        fillings.append(Rows(asked, length[over][masked], target.gather(1, place)[:, 0]))
        at, end, goal, answer = (tensor[~over] for tensor in (at, end, goal, answer))
        edits = moves.splices(answer, torch.full_like(answer, mask))
        state, length = splice(state[~over], length[~over], edits, contract.max_state)
        state = functional.pad(state, (0, contract.max_state - state.shape[1]))
        at = at + 1
    goals = torch.unique(steps.state_of[steps.taken[last]])
    written = torch.zeros(len(steps), dtype=torch.long).masked_fill(tokens > 0, 1)[steps.taken]
    summed = torch.cat((torch.zeros(1, dtype=torch.long), written.cumsum(0)))
    masks = summed[last + 1] - summed[first]
    return Openings(
        Rows.join(plans).unique(),
        Rows.join(fillings).unique(),
        Rows(steps.states[goals].long(), steps.lengths[goals].long(), goals),
        masks[masks > 0],
    )


class Lessons:
    """The updates of a planner: every one a pure function of (seed, its number) and of the weights so far."""

    def __init__(self, model: Planner, steps: Steps, config: Config, contract: Contract, runtime: Runtime) -> None:
        self.model, self.config, self.runtime = model, config, runtime
        self.stages = model.recipe.stages
        self.shares = model.updates(config)
        self.total = sum(self.shares)
        view, moves = model.knowledge.view, model.moves
        if view == "scripts":
            sources, scripts, _ = whole_scripts(steps, contract)
            numbers = {script: number for number, script in enumerate(model.knowledge.scripts)}
            answers = torch.tensor([numbers[script] for script in scripts])
            self.tokens = Rows(sources, (sources > 0).sum(1), answers)
        elif view == "span":
            classes, tokens = moves.classes(steps.actions.long())
            states, lengths = steps.states[steps.state_of].long(), steps.lengths[steps.state_of].long()
            self.plans = Rows(states, lengths, classes)
            edits = classes != END
            spans, widths = model.spans(states[edits], classes[edits])
            self.tokens = Rows(spans, widths, tokens[edits]).unique()
        else:
            self.openings = open_trajectories(steps, moves, contract, model.mask, config.seed)
            self.plans = self.openings.plans
        self.told: Tensor | None = None

    @property
    def about(self) -> str:
        """In a few words."""
        return f"view {self.model.knowledge.view}"

    def playable(self, updates: int) -> bool:
        """Whether all parts have begun to learn, so that a game means something."""
        return updates > sum(self.shares[:-1])

    def turns(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Turn]:
        """The updates of an epoch from a position on."""
        first = epoch * EPOCH
        count = min(EPOCH, self.total - first)
        for at in range(index, count):
            stage, number, updates = self.find(first + at)
            draw = generator(self.config.seed, "lesson", first + at)
            lesson = self.plan_rows(stage, draw) if stage.part == "plan" else self.token_rows(stage, draw)
            share = len(lesson.actions) * self.runtime.world / stage.batch
            yield Turn(lesson, 0, at, at / count, share, stage.rate(number, updates))

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

    def plan_rows(self, stage: Stage, draw: torch.Generator) -> Lesson:
        """States and the places of their next edits."""
        if self.told is None and self.model.confident:
            self.told = self.tell(draw)
        rows = self.mine(torch.randint(len(self.plans), (stage.batch,), generator=draw))
        states, lengths = self.plans.states[rows], self.plans.lengths[rows]
        features = None if self.told is None else self.told[rows]
        return Lesson("plan", states, lengths, self.plans.answers[rows, None], features, stage.smoothing)

    def tell(self, draw: torch.Generator) -> Tensor:
        """What the token network says of every place of the plans' states; too many states are sampled."""
        questions = int(2 * self.plans.lengths.sum()) + len(self.plans)
        if questions > MAX_QUESTIONS:
            order = torch.randperm(len(self.plans), generator=generator(self.config.seed, "plans"))
            kept = order[: max(len(order) * MAX_QUESTIONS // questions, 1)].sort().values
            self.plans = Rows(self.plans.states[kept], self.plans.lengths[kept], self.plans.answers[kept])
        width = max(int(self.plans.lengths.max()), 1)
        self.plans = Rows(self.plans.states[:, :width], self.plans.lengths, self.plans.answers)
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

    def token_rows(self, stage: Stage, draw: torch.Generator) -> Lesson:
        """Views and the classes of the token network."""
        if self.model.knowledge.view != "opened":
            rows = self.mine(torch.randint(len(self.tokens), (stage.batch,), generator=draw))
            states, lengths = self.tokens.states[rows], self.tokens.lengths[rows]
            answers = self.tokens.answers[rows]
        else:
            states, lengths, answers = map(self.mine, self.masked_rows(stage.batch, draw))
        return Lesson("token", self.model.token_view(states, lengths), lengths, answers[:, None], None, stage.smoothing)

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
        answer = whole.gather(1, asked)[:, 0]
        return torch.cat((states, seen)), torch.cat((lengths, sizes)), torch.cat((answers, answer))
