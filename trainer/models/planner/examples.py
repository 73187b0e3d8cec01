"""The planner's training examples: the rows of the shards, read as plans and as tokens to fill in.

A trajectory, expert or shifted, says which edits turn its states into a goal. From every state on it, the edits
that are left are *opened* one after the other: what they remove goes, what they write becomes MASK. So the rows
of TG and TA give, without anything else,

- plans: (state with the first edits opened → the place of the next one, or END), and
- fillings: (state with all edits opened → the token at its first MASK).

A third kind of row asks for masked tokens of the goal states themselves: these are states of the demonstrations
too, and they show how the tokens of a finished text belong together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from trainer.core.seeding import generator
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.game.environment import splice
from trainer.models.planner.edit_classes import END, EditClasses

MAX_TRAJECTORIES = 1 << 18  # more than that are sampled


@dataclass(frozen=True)
class States:
    """States as rows of ids."""

    states: Tensor  # (rows, m)
    lengths: Tensor  # (rows)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class Examples(States):
    """States with an answer each."""

    answers: Tensor  # (rows), or (rows, k) where a state has several: -1 behind the last

    def unique(self) -> Examples:
        """Without repetitions, in a fixed order."""
        joined = torch.unique(torch.cat((self.states, self.lengths[:, None], self.answers[:, None]), 1), dim=0)
        return Examples(joined[:, :-2], joined[:, -2], joined[:, -1])

    def grouped(self) -> Examples:
        """Every distinct state once, with all its distinct answers.

        >>> one = torch.tensor([[1, 2], [3, 0], [1, 2]])
        >>> Examples(one, torch.tensor([2, 1, 2]), torch.tensor([8, 9, 7])).grouped().answers.tolist()
        [[7, 8], [9, -1]]
        """
        rows = self.unique()
        keys = torch.cat((rows.states, rows.lengths[:, None]), 1)
        states, which, counts = torch.unique(keys, dim=0, return_inverse=True, return_counts=True)
        answers = torch.full((len(states), int(counts.max()) if len(counts) else 1), -1)
        place = torch.arange(len(which)) - (counts.cumsum(0) - counts)[which]  # rows are in the order of their states
        answers[which, place] = rows.answers
        return Examples(states[:, :-1], states[:, -1], answers)

    @classmethod
    def join(cls, parts: list[Examples]) -> Examples:
        """Several as one, padded to the widest."""
        width = max(part.states.shape[1] for part in parts)
        states = [functional.pad(part.states, (0, width - part.states.shape[1])) for part in parts]
        return cls(
            torch.cat(states), torch.cat([part.lengths for part in parts]), torch.cat([part.answers for part in parts])
        )


@dataclass(frozen=True)
class Openings:
    """All that the view ``opened`` learns from."""

    plans: Examples
    fillings: Examples  # states with masks; the answer belongs to the first of them
    goals: States  # finished ones
    masks: Tensor  # how many tokens the scripts write, to draw from


def chosen_trajectories(steps: Steps, seed: int) -> Tensor:
    """The trajectories to learn from: all, or a seeded sample of too many."""
    if steps.trajectories <= MAX_TRAJECTORIES:
        return torch.arange(steps.trajectories)
    order = torch.randperm(steps.trajectories, generator=generator(seed, "trajectories"))
    return order[:MAX_TRAJECTORIES].sort().values


def open_trajectories(steps: Steps, edits: EditClasses, contract: Contract, mask: int, seed: int) -> Openings:
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
    at, goal = row[keep], pairs[keep, 1]
    all_classes, tokens = edits.classes(steps.actions.long())
    state = steps.states[steps.state_of[steps.taken[at]]].long()
    length = steps.lengths[steps.state_of[steps.taken[at]]].long()
    plans, fillings = [], []
    while len(at):
        answer = all_classes[steps.taken[at]]
        plans.append(Examples(state, length, answer))
        over = answer == END
        masked = (state[over] == mask).any(1)
        asked, target = state[over][masked], steps.states[goal[over][masked]].long()
        place = (asked == mask).long().argmax(1, keepdim=True)
        fillings.append(Examples(asked, length[over][masked], target.gather(1, place)[:, 0]))
        at, goal, answer = at[~over], goal[~over], answer[~over]
        opened = edits.splices(answer, torch.full_like(answer, mask))
        state, length = splice(state[~over], length[~over], opened, contract.max_state)
        state = functional.pad(state, (0, contract.max_state - state.shape[1]))
        at = at + 1
    goals = torch.unique(steps.state_of[steps.taken[last]])
    written = (tokens > 0).long()[steps.taken]
    summed = torch.cat((torch.zeros(1, dtype=torch.long), written.cumsum(0)))
    masks = summed[last + 1] - summed[first]
    return Openings(
        Examples.join(plans).unique(),
        Examples.join(fillings).unique(),
        States(steps.states[goals].long(), steps.lengths[goals].long()),
        masks[masks > 0],
    )
