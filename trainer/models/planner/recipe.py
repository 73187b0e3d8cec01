"""How the planner's networks are shaped and trained, for each view: found on validation, listed in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from trainer.models.planner.knowledge import PlannerKnowledge, View
from trainer.models.planner.networks import Shape

Part = Literal["token", "plan"]

WARM_UP = 200
TUNED = 7000  # distinct goals of the data that the recipes were found on
LEAST = 1 / 10  # of them: what less data needs was not measured
STRONGEST = 10.0  # weight decay: with 20 AOR with 1,000 pairs learns little (validation 33.3, and 49.3 with 10)


@dataclass(frozen=True)
class Stage:
    """One network's training: AdamW with warm-up, and a cosine that ends at 0."""

    part: Part
    updates: int
    learning_rate: float
    weight_decay: float
    batch: int
    smoothing: float = 0.0

    def rate(self, update: int, updates: int) -> float:
        """The learning rate of one of ``updates`` updates.

        >>> stage = Stage("token", 0, 1.0, 0.0, 1)
        >>> [round(stage.rate(update, 1000), 3) for update in (0, 100, 500, 999)]
        [0.01, 0.976, 0.5, 0.0]
        """
        warm = min(1.0, (update + 1) / min(WARM_UP, max(updates // 10, 1)))
        return self.learning_rate * warm * (1 + math.cos(math.pi * update / updates)) / 2


@dataclass(frozen=True)
class Recipe:
    """The stages in their order, and the networks' shapes."""

    token: Shape
    plan: Shape
    stages: tuple[Stage, ...]

    @property
    def updates(self) -> int:
        return sum(stage.updates for stage in self.stages)


PLAN = Shape("residual", layers=2, hidden=256, embedding=16)

RECIPES: dict[View, Recipe] = {
    # The knowledge is in the pairs; strong decay keeps 7,000 of them from being learned by heart.
    "scripts": Recipe(Shape("plain", layers=3), PLAN, (Stage("token", 8000, 1.5e-3, 2.0, 128, 0.1),)),
    # Where a span is takes a minute to learn, so it comes first; the rest of the time goes into its value.
    "span": Recipe(
        Shape("normed", layers=2),
        PLAN,
        (Stage("plan", 200, 3e-3, 0.1, 256), Stage("token", 4500, 5e-3, 0.2, 512)),
    ),
    # The plan reads how sure the token network is, so that one comes first.
    "opened": Recipe(
        Shape("residual", layers=3),
        Shape("residual", layers=2, hidden=256, embedding=16, dropout=0.2),
        (Stage("token", 4800, 4e-3, 0.5, 256, 0.1), Stage("plan", 1200, 1.5e-3, 1.0, 256, 0.1)),
    ),
}

# Digits tell a span's value sooner. Trials of the token network alone, seed 0, no rows of the tokens' own, share of the
# validation's spans that are right: AES with N = 200 99.40 after 2,000 updates and 99.37 after 3,000 of 4,500; with
# N = 100 99.89 after 2,000. With rows of their own: N = 200 99.26 after 2,000, N = 100 99.92 after 1,500.
SPELLED: dict[View, Recipe] = {
    "span": Recipe(
        RECIPES["span"].token,
        PLAN,
        (Stage("plan", 200, 3e-3, 0.1, 256), Stage("token", 2000, 5e-3, 0.2, 512)),
    ),
}


def recipe_for(knowledge: PlannerKnowledge) -> Recipe:
    """The recipe: it follows from the view, from whether tokens are spelled, and from how many goals are known.

    With k times as many goals as the recipes were found on it has √k times the updates, and the weight decay divided by
    k: what keeps few examples from being learned by heart keeps many from being learned. Validation of 1,000 pairs
    (k = 0.1), with k and as if it were 1: AOR 49.3 and 18.7, AES 26.7 and 16.7, AEC 39.3 and 3.3.
    """
    spelled = SPELLED if knowledge.tokens == "characters" else {}
    recipe = spelled.get(knowledge.view, RECIPES[knowledge.view])
    times = amount(knowledge)
    stages = (
        replace(
            stage,
            updates=round(stage.updates * math.sqrt(times)),
            weight_decay=min(stage.weight_decay / times, STRONGEST),
        )
        for stage in recipe.stages
    )
    return replace(recipe, stages=tuple(stages))


def amount(knowledge: PlannerKnowledge) -> float:
    """k: how many times as many goals the data have as those that the recipes were found on."""
    return max(knowledge.goals / TUNED, LEAST) if knowledge.goals else 1.0


def practised_decay(knowledge: PlannerKnowledge) -> float:
    """The share of imitation's weight decay that practice has: for scripts of little data it is divided by √k alone.

    In practice all right answers to a source are learned at once, which are less easily learned by heart than one.
    Validation of AOR with 1,000 pairs, 49.3 before practice: 48.0 with a decay of 3.2, 53.3 with 6.3 (by √k), 40.0 with
    20 (by k). For AEC, 39.3 before: 30.7 with 1.5, 40.7 with 5 (by k).
    """
    times = amount(knowledge)
    if knowledge.view != "scripts" or times >= 1:
        return 1.0
    (stage,) = RECIPES["scripts"].stages
    by_root, by_amount = (min(stage.weight_decay / less, STRONGEST) for less in (math.sqrt(times), times))
    return by_root / by_amount
