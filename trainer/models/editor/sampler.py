"""The editor's updates: states of trajectories, each with all edits that are left from there on."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, cos, pi
from random import Random

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.seeding import generator
from trainer.data.batches import InvalidPosition, Update
from trainer.data.encode import Steps
from trainer.models.editor.edits import EditClasses, made, remaining
from trainer.models.editor.errors import Errors
from trainer.models.editor.trajectories import EditorBatch, Example, Trajectories

EPOCH = 500  # updates between two validations
POOL = 32  # batches that are sorted by length together
# Shares of trajectories: errors are made in their goals; some of their edits are made; else seen from their beginning.
MADE, LATER = 0.2, 0.2
WARM_UP = 0.05  # of the updates


class EditorSampler:
    """The updates of an editor: every one a pure function of (seed, its number)."""

    def __init__(self, classes: EditClasses, steps: Steps, config: Config, runtime: Runtime) -> None:
        self.config, self.runtime = config, runtime
        self.shown = Trajectories(classes, steps)
        self.sizes = steps.lengths[steps.state_of[steps.taken[steps.starts[:-1]]]]  # of the first states
        self.batches = ceil(steps.trajectories / config.batch)  # of one pass over all trajectories
        self.passed: tuple[int, list[Tensor]] = (-1, [])
        self.errors = Errors(self.shown.whole())

    @property
    def about(self) -> str:
        return f"{len(self.shown):,} trajectories"

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
            batch = EditorBatch.of(self.shown.classes, seen, rank, world)
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
            pools = torch.split(torch.randperm(len(self.shown), generator=draw), size * POOL)
            sorted_pools = [pool[self.sizes[pool].argsort(stable=True)] for pool in pools]
            batches = [batch for pool in sorted_pools for batch in torch.split(pool, size)]
            self.passed = number, [batches[i] for i in torch.randperm(len(batches), generator=draw).tolist()]
        return self.passed[1]

    def example(self, trajectory: int, late: float, draw: torch.Generator) -> Example:
        """A state, and the edits that are left: a trajectory's first one, or another.

        Where all edits can be told from the beginning, the other is the goal with errors made in it, or one with any
        of the edits made, which is trajectory augmentation; else it is one of the trajectory's own.
        """
        taken, edits = self.shown.trajectory(trajectory)
        left = remaining(edits)
        whole = len(left) == len(edits)
        if late < MADE and whole:
            goal, _ = made(self.shown.state(taken[0]), left, [True] * len(left))
            return self.errors.make(goal, Random(int(torch.randint(1 << 62, (1,), generator=draw))))
        if late > 1 - LATER and edits:
            if whole:
                chosen = torch.rand(len(left), generator=draw) < torch.rand(1, generator=draw)
                return made(self.shown.state(taken[0]), left, chosen.tolist())
            at = int(torch.randint(len(edits) + 1, (1,), generator=draw))
            return self.shown.state(taken[min(at, len(taken) - 1)]), remaining(edits[at:])
        return self.shown.state(taken[0]), left
