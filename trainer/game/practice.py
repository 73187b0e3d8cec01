"""Games for practice: sampled from an agent's probabilities, kept if they win, each distinct end once.

Axes: b batch, m state, n action. Which games win is the environment's reward; it is looked at here, in training, and
never while an agent is measured or used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.data.contract import Contract
from trainer.data.encode import Steps, number_steps
from trainer.data.sources import Sources
from trainer.game.environment import Verdict
from trainer.game.play import Draw, GameStep, Player, play
from trainer.game.reward import Reward
from trainer.game.rules import Rules

AT_ONCE = 1 << 14  # games whose steps are held until it is known which win
AGAIN = 160  # times as many games from a source that was lost, at most
CURIOSITY = 0.1  # in these games: the agent is too certain of what it gets wrong


@dataclass(frozen=True)
class Games:
    """Whole games, one after the other: rows of states and actions, the last action of each game DONE."""

    starts: Tensor  # (games + 1) where each begins
    states: Tensor  # (rows, m)
    lengths: Tensor  # (rows)
    actions: Tensor  # (rows, n)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def none(cls, contract: Contract) -> Games:
        """No games yet."""
        sizes = (contract.max_state, contract.action_length)
        states, actions = (torch.zeros(0, size, dtype=torch.int32) for size in sizes)
        return cls(torch.zeros(1, dtype=torch.long), states, torch.zeros(0, dtype=torch.long), actions)

    @classmethod
    def join(cls, parts: list[Games]) -> Games:
        """Several as one."""
        rows = torch.tensor([0, *(len(part.states) for part in parts)]).cumsum(0)[:-1]
        starts = [part.starts[:-1] + first for part, first in zip(parts, rows.tolist(), strict=True)]
        last = torch.tensor([sum(len(part.states) for part in parts)])
        names = ("states", "lengths", "actions")
        joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(torch.cat([*starts, last]), **joined)

    def pick(self, games: Tensor) -> Games:
        """Some of them."""
        counts = self.starts[games + 1] - self.starts[games]
        starts = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0)))
        rows = torch.arange(int(starts[-1])) + torch.repeat_interleave(self.starts[games] - starts[:-1], counts)
        return Games(starts, self.states[rows], self.lengths[rows], self.actions[rows])

    @property
    def idle(self) -> Tensor:
        """Which of them have an action that changed nothing (games): whoever learns it never comes to an end."""
        same = (self.states[1:] == self.states[:-1]).all(1)
        counted = torch.cat((torch.zeros(2, dtype=torch.long), same.long().cumsum(0)))
        return counted[self.starts[1:]] > counted[self.starts[:-1] + 1]

    @property
    def sources(self) -> Tensor:
        """The state that each began with (games, m)."""
        return self.states[self.starts[:-1]]

    @property
    def ends(self) -> Tensor:
        """The state that each ended in (games, m)."""
        return self.states[self.starts[1:] - 1]


@dataclass(frozen=True)
class Won:
    """What came of playing some sources."""

    games: Games  # one for each distinct winning end of each source: the shortest
    played: int
    won: int
    sources: int  # with at least one win
    share: float | None = None  # of their targets that the games reached on average; None where equations win


def practise(
    policy: Player, rules: Rules, contract: Contract, sources: Sources, samples: int, draw: torch.Generator
) -> Won:
    """Play every source some times, each action sampled, and keep the games that win.

    What no game wins shows most when it is won after all. So where there is no target to learn from, and a win can
    only be the meant one, sources that were lost are played again, with curiosity, in at most as many games as all of
    them were.

    Where a target is unknown and a win need not be the meant one (``keeps`` edits), only the end that most games of a
    source agree on is kept.
    """
    reward = Reward(sources.goal, contract, rules.device)
    free = sources.targets is None
    agreed = free and sources.goal.keeps == "edits"
    kept, played, won, near = [Games.none(contract)], 0, 0, 0.0
    each = max(AT_ONCE // samples, 1)
    for first in range(0, len(sources), each):
        rows, times = torch.arange(first, min(first + each, len(sources))), samples
        most = len(rows) * samples
        for curiosity in (0.0, CURIOSITY) if free and not agreed else (0.0,):
            repeated, drawn = rows.repeat_interleave(times), Draw(draw, curiosity)
            games, wins, share = _judge(policy, rules, contract, sources, repeated, reward, drawn)
            kept.append(distinct(games.pick(wins.nonzero()[:, 0]), agreed))
            played, won, near = played + len(wins), won + int(wins.sum()), near + share
            rows = rows[~wins.view(-1, times).any(1)]
            if not len(rows):
                break
            times = min(most // len(rows), AGAIN * samples)
    found = distinct(Games.join(kept))  # a source may occur more than once
    average = near / max(played, 1) if sources.goal.wins == "target" else None
    return Won(found, played, won, len(torch.unique(found.sources, dim=0)), average)


def _judge(
    policy: Player,
    rules: Rules,
    contract: Contract,
    sources: Sources,
    rows: Tensor,
    reward: Reward,
    draw: Draw,
) -> tuple[Games, Tensor, float]:
    """A sampled game from each of these sources, which of the games win, and the sum of the targets' shares."""
    games, final, lengths, verdicts = _record(policy, rules, contract, sources, rows, draw)
    once, number = torch.unique(rows, return_inverse=True)
    texts = [sources.texts[row] for row in once.tolist()]
    targets = [sources.targets[row] for row in once.tolist()] if sources.targets else None
    final, lengths = final.to(rules.device), lengths.to(rules.device)
    wanted = reward.wanted(texts, targets).pick(number.to(rules.device))
    wins = reward(final, lengths, wanted).cpu() & (verdicts == int(Verdict.DONE)) & ~games.idle
    share = float(reward.share(final, lengths, wanted).sum()) if sources.goal.wins == "target" else 0.0
    return games, wins, share


def _record(
    policy: Player, rules: Rules, contract: Contract, sources: Sources, rows: Tensor, draw: Draw
) -> tuple[Games, Tensor, Tensor, Tensor]:
    """Sampled games from some sources with all their steps, and how they ended."""
    numbers, states, lengths, actions = [], [], [], []

    def watch(step: GameStep) -> None:
        numbers.append(step.games)
        states.append(torch.nn.functional.pad(step.states, (0, contract.max_state - step.states.shape[1])).int())
        lengths.append(step.lengths)
        actions.append(step.actions.int())

    rollout = play(
        policy, rules, sources.states[rows], sources.lengths[rows], max_steps=contract.max_steps, watch=watch, draw=draw
    )
    game = torch.cat(numbers)
    order = game.argsort(stable=True)  # the steps of each game stay in their order
    starts = torch.cat((torch.zeros(1, dtype=torch.long), rollout.steps.cumsum(0)))
    games = Games(starts, torch.cat(states)[order], torch.cat(lengths)[order], torch.cat(actions)[order])
    return games, rollout.states, rollout.lengths, rollout.verdicts


def distinct(games: Games, agreed: bool = False) -> Games:
    """One game for each distinct end of each source, the shortest; with ``agreed`` only for the most frequent end."""
    if not len(games):
        return games
    end, counts = numbered(torch.cat((games.sources, games.ends), 1))
    steps = games.starts[1:] - games.starts[:-1]
    order = steps.argsort(stable=True)
    order = order[end[order].argsort(stable=True)]  # by end, the shortest first
    key = end
    if agreed:  # by source, the most frequent end first
        key, _ = numbered(games.sources)
        order = order[(-counts[end[order]]).argsort(stable=True)]
        order = order[key[order].argsort(stable=True)]
    first = torch.ones(len(order), dtype=torch.bool)
    first[1:] = key[order][1:] != key[order][:-1]
    return games.pick(order[first])


def new_games(games: Games, steps: Steps) -> Games:
    """The games whose source and end no demonstration has."""
    if not len(games):
        return games
    begin, stop = (steps.state_of[steps.taken[at]] for at in (steps.starts[:-1], steps.starts[1:] - 1))
    theirs = torch.cat((steps.states[begin], steps.states[stop]), 1)
    number, _ = numbered(torch.cat((theirs, torch.cat((games.sources, games.ends), 1))))
    return games.pick((~torch.isin(number[len(theirs) :], number[: len(theirs)])).nonzero()[:, 0])


def numbered(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The number of each row among the distinct ones, and how often each of these occurs."""
    packed = np.ascontiguousarray(rows.int().numpy())
    items = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))).reshape(-1)
    _, number, counts = np.unique(items, return_inverse=True, return_counts=True)
    return torch.from_numpy(number.reshape(-1)), torch.from_numpy(counts)


def with_games(steps: Steps, games: Games, contract: Contract) -> Steps:
    """Demonstrations and games together: every distinct step once, and all trajectories."""
    if not len(games):
        return steps
    states = torch.cat((steps.states.int(), games.states))
    number, counts = numbered(states)
    table = torch.zeros(len(counts), states.shape[1], dtype=torch.int32)
    table[number] = states
    known = len(steps.states)
    row_states = torch.cat((number[:known][steps.state_of[steps.taken]], number[known:]))
    row_actions = torch.cat((steps.actions.long()[steps.taken], games.actions.long()))
    first, taken = number_steps(row_states.numpy(), row_actions.numpy(), len(contract.actions) + 1)
    chosen = torch.from_numpy(first)
    return Steps(
        states=table.to(steps.states.dtype),
        lengths=(table > 0).sum(1).to(steps.lengths.dtype),
        actions=row_actions[chosen].to(steps.actions.dtype),
        state_of=row_states[chosen],
        taken=torch.from_numpy(taken),
        starts=torch.cat((steps.starts, games.starts[1:] + steps.starts[-1])),
        skipped=steps.skipped,
        games=steps.games + len(games),
    )
