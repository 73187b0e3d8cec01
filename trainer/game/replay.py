"""Replay demonstrations through the rules."""

from __future__ import annotations

import torch

from trainer.core.errors import BadData
from trainer.data.contract import Contract
from trainer.data.encode import Steps
from trainer.game.environment import Verdict
from trainer.game.rules import rules_of


def check_trajectories(steps: Steps, contract: Contract, where: str) -> None:
    """Refuse trajectories whose actions do not lead from state to state, for models that follow them to the end."""
    last = torch.zeros(len(steps.taken), dtype=torch.bool)
    last[steps.starts[1:] - 1] = True
    follows = (steps.state_of[steps.taken].roll(-1) + 1).masked_fill(last, 0)  # the state after each row, 0 for the end
    rules, count = rules_of(contract), len(steps.states) + 1
    for part in torch.split(torch.unique(steps.taken * count + follows), 1 << 14):  # a number sorts faster than a pair
        batch, ends, state = steps.batch(part // count), part % count == 0, (part % count - 1).clamp(min=0)
        after, lengths, verdicts = rules.step(batch.states, batch.lengths, batch.actions)
        width = min(after.shape[1], steps.states.shape[1])
        same = (lengths == steps.lengths[state]) & (after[:, :width] == steps.states[state, :width]).all(1)
        right = torch.where(ends, verdicts == Verdict.DONE, same & (verdicts == Verdict.APPLIED))
        if not right.all():
            raise BadData(f"{where}: the actions of a trajectory do not lead from state to state and then to DONE")
