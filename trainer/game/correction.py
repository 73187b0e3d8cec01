"""The expert's answer to any state on the way to a known target (DAgger): the first edit of a shortest script.

Axes: b batch, i place in the state, j place in the target. Which edits there are follows from the contract's slots:
insertions; insertions, deletions and replacements; or spans that become one token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.core.format import DELETE, DONE, INSERT, REPLACE
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.data.sources import Sources
from trainer.game.environment import Verdict
from trainer.game.play import GameStep, Player, play
from trainer.game.practice import Games, distinct, numbered
from trainer.game.rules import Rules

NEVER = 1 << 20  # edits: there is no script


@dataclass(frozen=True)
class Scripts:
    """The fewest edits from the rest of a state to the rest of a target, for every pair of places."""

    contract: Contract
    states: Tensor
    lengths: Tensor
    goals: Tensor
    goal_lengths: Tensor
    left: Tensor  # (j, b, i) edits that are left

    @classmethod
    def find(cls, contract: Contract, states: Tensor, lengths: Tensor, goals: Tensor, goal_lengths: Tensor) -> Scripts:
        """From the end of both to their beginning."""
        place = torch.arange(states.shape[1] + 1)
        inside = place < lengths[:, None]
        operations = contract.operations if "operation" in contract.slots else (INSERT,)
        end = torch.where(place == lengths[:, None], 0, NEVER)  # nothing is left of either
        if DELETE in operations:
            end = (lengths[:, None] - place).masked_fill(place > lengths[:, None], NEVER)
        lines = [end]
        padded = torch.nn.functional.pad(states, (0, 1))
        for at in reversed(range(goals.shape[1])):
            after = lines[-1]
            moved = torch.nn.functional.pad(after[:, 1:], (0, 1), value=NEVER)
            best = moved.masked_fill(~inside | (padded != goals[:, at : at + 1]), NEVER)  # the token is there
            if "left" in contract.slots:
                farther = moved.flip(1).cummin(1).values.flip(1)
                best = torch.minimum(best, (farther + 1).masked_fill(~inside, NEVER))
            else:
                best = torch.minimum(best, after + 1) if INSERT in operations else best
                best = torch.minimum(best, (moved + 1).masked_fill(~inside, NEVER)) if REPLACE in operations else best
            if DELETE in operations:
                best = ((best + place).flip(1).cummin(1).values.flip(1) - place).masked_fill(
                    place > lengths[:, None], NEVER
                )
            line = torch.where(at >= goal_lengths[:, None], end, best).clamp(max=NEVER)
            lines.append(line)
        return cls(contract, states, lengths, goals, goal_lengths, torch.stack(lines[::-1]))

    def first_actions(self) -> tuple[Tensor, Tensor]:
        """The action (b, n) of the leftmost edit, DONE if there is none, and how many edits it takes (b)."""
        rows = torch.arange(len(self.states))
        states, goals = (torch.nn.functional.pad(part, (0, 2)) for part in (self.states, self.goals))
        left = torch.nn.functional.pad(self.left, (0, 1, 0, 0, 0, 1), value=NEVER)
        at, to = torch.zeros_like(self.lengths), torch.zeros_like(self.lengths)
        for _ in range(min(self.states.shape[1], self.goals.shape[1])):
            same = (at < self.lengths) & (to < self.goal_lengths) & (states[rows, at] == goals[rows, to])
            same &= left[to + 1, rows, at + 1] == left[to, rows, at]
            at, to = at + same, to + same
        now, contract = left[to, rows, at], self.contract
        base, ids = contract.action_ids["POS_0"], contract.action_ids
        token = self._written()[goals[rows, to]]
        parts = {"position": base + at, "left": base + at, "token": token}
        writes = torch.ones_like(at, dtype=torch.bool)
        if "left" in contract.slots:
            place = torch.arange(left.shape[2])
            fits = (place > at[:, None]) & (left[to + 1, rows] + 1 == now[:, None])
            parts["right"] = base + fits.int().argmax(1) - 1
        if "operation" in contract.slots:
            operations = contract.operations
            removes = (at < self.lengths) & (left[to, rows, at + 1] + 1 == now) & (DELETE in operations)
            swaps = (at < self.lengths) & (to < self.goal_lengths) & (left[to + 1, rows, at + 1] + 1 == now)
            swaps &= REPLACE in operations
            kind = torch.where(swaps, ids.get(REPLACE, 0), ids.get(INSERT, 0))
            parts["operation"] = torch.where(removes, ids.get(DELETE, 0), kind)
            parts["token"] = torch.where(removes, base + at, token)
            writes = ~removes
        actions = torch.stack([parts[name] for name in contract.slots], 1)
        done = (now == 0)[:, None]
        needed = left[0, rows, torch.zeros_like(at)]
        impossible = (now > 0) & writes & (parts["token"] < 0)
        return torch.where(done, ids[DONE], actions), torch.where(impossible, NEVER, needed)

    def _written(self) -> Tensor:
        """State id to the action token that writes it, -1 where there is none."""
        allowed, ids = set(self.contract.writable), self.contract.action_ids
        names = ("", *self.contract.state_tokens)
        return torch.tensor([ids[name] if name in allowed and name in ids else -1 for name in names])


@torch.inference_mode()
def corrections(policy: Player, rules: Rules, contract: Contract, pairs: Sources, known: Steps) -> Games:
    """The expert's way from states that the agent itself came to, and no demonstration shows, to their targets.

    The agent plays greedily, as it will. A state from which no allowed script leads to the target, or only one that is
    longer than a game, has no answer.
    """
    if contract.game != "edits" or not pairs.targets:
        return Games.none(contract)
    visited, games = [], []

    def watch(step: GameStep) -> None:
        visited.append(torch.nn.functional.pad(step.states, (0, contract.max_state - step.states.shape[1])))
        games.append(step.games)

    play(policy, rules, pairs.states, pairs.lengths, max_steps=contract.max_steps, watch=watch)
    states, rows = torch.cat(visited), torch.cat(games)
    shown = len(known.states)
    number, _ = numbered(torch.cat((known.states.long(), states)))
    fresh = (~torch.isin(number[shown:], number[:shown])).nonzero()[:, 0]
    return expert_games(contract, rules, states[fresh], [pairs.targets[row] for row in rows[fresh].tolist()])


def expert_games(contract: Contract, rules: Rules, states: Tensor, targets: list[tuple[str, ...]]) -> Games:
    """Games that the expert plays from some states to their targets; without those that it cannot finish."""
    width, ids = max(map(len, targets), default=0), contract.state_ids
    goals = torch.zeros(len(targets), width, dtype=torch.long)
    for row, target in enumerate(targets):
        goals[row, : len(target)] = torch.tensor([ids.get(token, -1) for token in target], dtype=torch.long)
    sizes, lengths = torch.tensor([len(target) for target in targets], dtype=torch.long), (states > 0).sum(1)
    sayable = (goals >= 0).all(1)
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    live, ended = sayable.nonzero()[:, 0], torch.zeros(len(states), dtype=torch.bool)
    for _ in range(contract.max_steps):
        if not len(live):
            break
        actions, needed = Scripts.find(contract, states[live], lengths[live], goals[live], sizes[live]).first_actions()
        good = needed < contract.max_steps
        live, actions = live[good], actions[good]
        parts.append((live, states[live].int(), lengths[live], actions.int()))
        after, new, verdicts = rules.step(
            states[live].to(rules.device), lengths[live].to(rules.device), actions.to(rules.device)
        )
        after, new, verdicts = after.cpu(), new.cpu(), verdicts.cpu()
        ended[live[verdicts == int(Verdict.DONE)]] = True
        going = verdicts == int(Verdict.APPLIED)
        live, after = live[going], after[going]
        states[live] = torch.nn.functional.pad(after, (0, states.shape[1] - after.shape[1]))
        lengths[live] = new[going]
    if not parts:
        return Games.none(contract)
    game, rows, sizes, actions = (torch.cat(column) for column in zip(*parts, strict=True))
    order = game.argsort(stable=True)
    counts = torch.bincount(game, minlength=len(targets))
    starts = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0)))
    return distinct(Games(starts, rows[order], sizes[order], actions[order]).pick(ended.nonzero()[:, 0]))
