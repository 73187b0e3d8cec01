"""The editor's updates: states of trajectories, each with all edits that are left from there on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, cos, pi
from typing import Any

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.seeding import generator
from trainer.data.batches import InvalidPosition, Update
from trainer.data.contract import OpenContract
from trainer.data.encode import Steps
from trainer.game.environment import Kind, OpenEnvironment
from trainer.models.editor.edits import Edit, EditClasses, made, remaining

Example = tuple[list[int], list[Edit]]  # a state, and the edits that are left

EPOCH = 500  # updates between two validations
POOL = 32  # batches that are sorted by length together
SOURCES = 0.5  # share of trajectories that are seen from their beginning; the others with some edits made
WARM_UP = 0.05  # of the updates
IGNORED = -1  # behind the end of a text


@dataclass(frozen=True)
class EditorBatch:
    """States, and what to do at each of their places."""

    states: Tensor  # (b, m)
    lengths: Tensor  # (b)
    gaps: Tensor  # (b, m + 1) whether a token is inserted
    tokens: Tensor  # (b, m) class of each token's edit
    writes: Tensor  # (e, 4) row, place, whether it is a gap, class of the edit
    answers: Tensor  # (e) the class of the word

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.states, self.lengths, self.gaps, self.tokens, self.writes, self.answers

    @property
    def actions(self) -> Tensor:
        return self.tokens

    @property
    def smoothing(self) -> float:
        return 0.0

    def to(self, device: torch.device) -> EditorBatch:
        """The same batch on a device."""
        return EditorBatch(*(tensor.to(device, non_blocking=True) for tensor in self.inputs))


def read_edits(steps: Steps, contract: OpenContract) -> list[Edit | None]:
    """The edit of every step; None for DONE."""
    return decode_edits(steps.actions.long(), steps.lengths[steps.state_of].long(), contract)


def decode_edits(actions: Tensor, lengths: Tensor, contract: OpenContract) -> list[Edit | None]:
    """The edits that actions (b, n) make; None for DONE."""
    rules = OpenEnvironment(contract, actions.device)
    kinds, values, _ = rules.read(actions)
    splices = rules.decode(kinds, values, lengths.to(actions.device))[0]
    done = (kinds == Kind.DONE).all(1)
    columns = (splices.start, splices.stop, splices.new, splices.writes, done)
    return [
        None if ends else Edit(start, stop, new if writes else None)
        for start, stop, new, writes, ends in zip(*(column.tolist() for column in columns), strict=True)
    ]


class EditorSampler:
    """The updates of an editor: every one a pure function of (seed, its number)."""

    def __init__(self, classes: EditClasses, steps: Steps, config: Config, runtime: Runtime) -> None:
        self.classes, self.steps, self.config, self.runtime = classes, steps, config, runtime
        self.edits = read_edits(steps, classes.contract)
        self.sizes = steps.lengths[steps.state_of[steps.taken[steps.starts[:-1]]]]  # of the first states
        self.batches = ceil(steps.trajectories / config.batch)  # of one pass over all trajectories
        self.passed: tuple[int, list[Tensor]] = (-1, [])

    @property
    def about(self) -> str:
        return f"{self.steps.trajectories:,} trajectories"

    def ready(self, updates: int) -> bool:
        return True

    def updates(self, epoch: int, window: int = 0, index: int = 0) -> Iterator[Update]:
        """The updates of an epoch from a position on; an epoch is one window."""
        first = epoch * EPOCH
        count = min(EPOCH, self.config.updates - first)
        if window or count <= 0 or index > count:
            raise InvalidPosition(epoch, window, index)
        rank, world = self.runtime.rank, self.runtime.world
        for at in range(index, count):
            number = first + at
            rows = self.order(number // self.batches)[number % self.batches]
            draw = generator(self.config.seed, "states", number)
            late = torch.rand(len(rows), generator=draw).tolist()
            seen = [self.example(row, how, draw) for row, how in zip(rows.tolist(), late, strict=True)]
            batch = self.batch(seen, rank, world)
            share = len(batch.states) * world / len(rows) if rank < len(rows) else 0.0
            yield Update(batch, 0, at, at / count, share, self.rate(number))

    def rate(self, update: int) -> float:
        """Warm-up, then a cosine that ends at 0, or stays where it is."""
        total = self.config.updates
        warm = min(1.0, (update + 1) / max(total * WARM_UP, 1))
        falls = (1 + cos(pi * update / total)) / 2 if self.config.schedule == "cosine" else 1.0
        return self.config.learning_rate * warm * falls

    def order(self, number: int) -> list[Tensor]:
        """The trajectories of each batch of one pass: shuffled, those of similar length together."""
        if self.passed[0] != number:
            size, draw = self.config.batch, generator(self.config.seed, "pass", number)
            pools = torch.split(torch.randperm(self.steps.trajectories, generator=draw), size * POOL)
            sorted_pools = [pool[self.sizes[pool].argsort(stable=True)] for pool in pools]
            batches = [batch for pool in sorted_pools for batch in torch.split(pool, size)]
            self.passed = number, [batches[i] for i in torch.randperm(len(batches), generator=draw).tolist()]
        return self.passed[1]

    def example(self, trajectory: int, late: float, draw: torch.Generator) -> Example:
        """A state of a trajectory, and the edits that are left: its first one, or one with some edits made.

        Where all edits can be told from the beginning, any of them may be made, which is trajectory augmentation;
        else the state is one of the trajectory's own.
        """
        steps = self.steps
        taken = steps.taken[steps.starts[trajectory] : steps.starts[trajectory + 1]].tolist()
        edits = [edit for one in taken if (edit := self.edits[one])]
        left = remaining(edits)
        if late >= SOURCES and edits:
            if len(left) == len(edits):
                chosen = torch.rand(len(left), generator=draw) < torch.rand(1, generator=draw)
                return made(self.state(taken[0]), left, chosen.tolist())
            at = int(torch.randint(len(edits) + 1, (1,), generator=draw))
            return self.state(taken[min(at, len(taken) - 1)]), remaining(edits[at:])
        return self.state(taken[0]), left

    def state(self, step: int) -> list[int]:
        """The state of a step."""
        row = self.steps.state_of[step]
        ids: list[int] = self.steps.states[row, : self.steps.lengths[row]].tolist()
        return ids

    def batch(self, examples: list[Example], rank: int = 0, world: int = 1) -> EditorBatch:
        """What to say of some states; of these a rank's part. A rank without any takes the first, with no weight."""
        classes = self.classes
        mine = examples[rank::world] or examples[:1]
        lengths = torch.tensor([len(state) for state, _ in mine])
        width = max(int(lengths.max()), 1)
        states = torch.zeros(len(mine), width, dtype=torch.long)
        place = torch.arange(width + 1)
        gaps = torch.zeros(len(mine), width + 1, dtype=torch.long).masked_fill(place > lengths[:, None], IGNORED)
        tokens = torch.zeros_like(states).masked_fill(place[:-1] >= lengths[:, None], IGNORED)
        writes: list[tuple[int, int, int, int]] = []
        answers: list[int] = []
        for row, (state, edits) in enumerate(mine):
            states[row, : len(state)] = torch.tensor(state, dtype=torch.long)
            for edit in edits:
                kind, gap = classes.kind(edit) or 0, edit.start == edit.stop  # training's own edits have a class
                (gaps if gap else tokens)[row, edit.start] = kind
                if edit.new is not None and (answer := classes.answer(edit, state)) >= 0:
                    writes.append((row, edit.start, gap, kind))
                    answers.append(answer)
        table = torch.tensor(writes, dtype=torch.long).view(-1, 4)
        return EditorBatch(states, lengths, gaps, tokens, table, torch.tensor(answers, dtype=torch.long))


def written_words(
    steps: Steps, contract: OpenContract, edits: list[Edit | None]
) -> Iterator[tuple[str, str, str, str]]:
    """The token that each step replaces, its neighbours, and the token that it writes."""
    names: Any = contract.names
    for edit, state in zip(edits, steps.state_of.tolist(), strict=True):
        if edit is None or edit.new is None:
            continue
        length = int(steps.lengths[state])
        near = [edit.start if edit.stop - edit.start == 1 else -1, edit.start - 1, edit.stop]
        word, left, right = (names[int(steps.states[state, at])] if 0 <= at < length else "" for at in near)
        yield word, left, right, names[edit.new]
