"""What a run is measured on, and by which figure its best checkpoint is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.data.contract import Contract
from trainer.data.encode import Pairs, Steps
from trainer.data.m2 import Annotated
from trainer.game.accuracy import Scores
from trainer.game.play import GameStep, Rollout, pack, score, unpack
from trainer.game.rules import Rules
from trainer.models.policy import Policy
from trainer.scoring.gold import towards
from trainer.scoring.maxmatch import Counts, MaxMatch


@dataclass(frozen=True)
class Validation:
    """The expert's steps, and games from the pairs' sources."""

    steps: Steps
    pairs: Pairs

    @cached_property
    def gold(self) -> Sequence[Annotated]:
        """The edits that lead from the sources to the targets."""
        texts = zip(self.pairs.sources, self.pairs.targets, strict=True)
        return [towards(source, target) for source, target in texts]


class Edits:
    """Watches games of text, and counts their edits."""

    def __init__(self, gold: Sequence[Annotated]) -> None:
        self.gold, self.score = gold, MaxMatch()

    def watch(self, step: GameStep) -> None:
        """Only what comes out counts."""

    def ended(self, rows: range, played: Tensor, rollout: Rollout, results: dict[int, tuple[str, ...]]) -> None:
        for row in rows:
            self.score.add(self.gold[row], results.get(row, self.gold[row].source))


def validate(
    model: Policy, validation: Validation, environment: Rules, contract: Contract, config: Config, runtime: Runtime
) -> tuple[dict[str, Any], float]:
    """Loss on the expert's steps and accuracy of the games, and the figure to select by; each rank plays its part."""
    every = -(-len(validation.pairs) // config.validation_pairs)
    part = slice(runtime.rank * every, None, runtime.world * every)
    edits = Edits(validation.gold) if config.select == "edits" and contract.sentences else None
    model.eval()
    with runtime.autocast(config.precision):
        tuned = model.tune(validation.steps)
        summed = step_loss(model, validation.steps, part, runtime)
        played = score(model, environment, contract, validation.pairs, part, edits)
    total = edits.score.total if edits else Counts()
    counted = torch.tensor([total.correct, total.proposed, total.gold], dtype=torch.float64)
    vector = runtime.total(torch.cat((summed, counted, pack(played))).to(runtime.device)).cpu()
    scores, counts = unpack(vector[6:], contract.arithmetic), Counts(*map(int, vector[3:6].tolist()))
    loss, right, rows = vector[:3].tolist()
    result = scores.to_json() | {
        "loss": loss / max(rows, 1),
        "action_accuracy": 100 * right / max(rows, 1),
        "unreadable_steps": validation.steps.skipped,
    }
    if edits:
        return result | tuned | {"edits": counts.to_json()}, counts.f
    return result | tuned, measure(scores, result["loss"], config, contract)


def measure(scores: Scores, loss: float, config: Config, contract: Contract) -> float:
    """What the best checkpoint has most of."""
    if config.select == "loss":
        return -loss
    # The released code selects by the tokens in its task of spans, AES.
    spans = "left" in contract.slots
    return scores.token / max(scores.pairs, 1) if spans and config.select == "released" else scores.key


@torch.inference_mode()
def step_loss(model: Policy, steps: Steps, part: slice, runtime: Runtime) -> Tensor:
    """Summed loss, right actions and rows of a part of some steps (on the CPU)."""
    result = torch.zeros(3, dtype=torch.float64)
    rows = torch.arange(len(steps))[part]
    rows = rows[steps.lengths[steps.state_of[rows]].argsort(stable=True)]  # of similar length together
    for chunk in torch.split(rows, 512) if len(rows) else ():
        batch = steps.batch(chunk).to(runtime.device)
        losses, right = model.assess(batch)
        rows_here = torch.tensor(len(chunk), device=losses.device)
        result += torch.stack((losses.sum(), right.sum(), rows_here)).double().cpu()
    return result
