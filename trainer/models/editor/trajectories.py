"""Trajectories as the editor learns from them: states, each with all edits that are left from there on.

Axes: b batch, m state, e edits that write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.data.contract import OpenContract
from trainer.data.encode import Steps
from trainer.game.environment import Kind, OpenEnvironment
from trainer.models.editor.edits import Edit, EditClasses, remaining

Example = tuple[list[int], list[Edit]]  # a state, and the edits that are left
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

    @classmethod
    def of(cls, classes: EditClasses, examples: list[Example], rank: int = 0, world: int = 1) -> EditorBatch:
        """What to say of some states; of these a rank's part. A rank without any takes the first, with no weight."""
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
        return cls(states, lengths, gaps, tokens, table, torch.tensor(answers, dtype=torch.long))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.states, self.lengths, self.gaps, self.tokens, self.writes, self.answers

    @property
    def actions(self) -> Tensor:
        return self.tokens

    @property
    def smoothing(self) -> float:
        return 0.0

    def right(self, edits: Tensor, writing: Tensor, answers: Tensor) -> Tensor:
        """Which edits (e, 4), that write some words, are to be made."""
        row, place, gap, kind = edits.unbind(1)
        at_token = self.tokens[row, place.clamp(max=self.tokens.shape[1] - 1)]
        words = torch.full((*self.gaps.shape, 2), -1, device=edits.device)
        words[self.writes[:, 0], self.writes[:, 1], self.writes[:, 2]] = self.answers
        said = ~writing | (words[row, place, gap] == answers)
        return said & (torch.where(gap.bool(), self.gaps[row, place], at_token) == kind)

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


class Trajectories:
    """The demonstrations of some steps."""

    def __init__(self, classes: EditClasses, steps: Steps) -> None:
        self.classes, self.steps = classes, steps
        self.edits = read_edits(steps, classes.contract)

    def __len__(self) -> int:
        return self.steps.trajectories

    @property
    def count(self) -> int:
        """The edits of all trajectories."""
        return sum(self.edits[one] is not None for one in self.steps.taken.tolist())

    def trajectory(self, number: int) -> tuple[list[int], list[Edit]]:
        """The steps of a trajectory, and its edits."""
        taken: list[int] = self.steps.taken[self.steps.starts[number] : self.steps.starts[number + 1]].tolist()
        return taken, [edit for one in taken if (edit := self.edits[one])]

    def whole(self) -> Iterator[Example]:
        """The first states of the trajectories whose edits can all be told from there."""
        for number in range(len(self)):
            taken, edits = self.trajectory(number)
            if len(left := remaining(edits)) == len(edits):
                yield self.state(taken[0]), left

    def sources(self, size: int) -> Iterator[list[Example]]:
        """The first states of all trajectories with the edits that can be told from there, the short ones first."""
        found = []
        for number in range(len(self)):
            taken, edits = self.trajectory(number)
            found.append((self.state(taken[0]), remaining(edits)))
        found.sort(key=lambda one: len(one[0]))
        return (found[first : first + size] for first in range(0, len(found), size))

    def state(self, step: int) -> list[int]:
        """The state of a step."""
        row = self.steps.state_of[step]
        ids: list[int] = self.steps.states[row, : self.steps.lengths[row]].tolist()
        return ids


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
