"""What the loop and the game ask of an agent, whatever it is made of.

Axes: b batch, m state, n action, d width, v action vocabulary.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from trainer.core.config import Config
from trainer.data.contract import Contract
from trainer.data.encode import Steps


class Policy(nn.Module):
    """A module that learns from batches and decides in games."""

    about: ClassVar[str]
    game: ClassVar[str] = "edits"  # what an action is: one edit, a round of tags, or the whole text
    group: ClassVar[int] = 256  # games of similar length that are asked about at once
    augmentable: ClassVar[bool] = True  # whether it can learn from augmented trajectories
    learns_from: ClassVar[str] = ""  # the config of a dataset; empty: what the settings say
    # Whether its updates are batches of steps. If not, :mod:`trainer.training.fit` makes its lessons.
    learns_from_steps: ClassVar[bool] = True

    def decide(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Scores (b, n, v) of the action tokens for states (b, m): the choice is the best of each slot."""
        scores: Tensor = self(states, lengths)
        return scores

    @property
    def targets(self) -> int:
        """Answers for each row of a batch."""
        raise NotImplementedError

    @property
    def has_unused(self) -> bool:
        """Whether an update may leave some parameters out."""
        return False

    def groups(self, config: Config) -> list[dict[str, Any]]:
        """The optimizer's groups of parameters."""
        return [{"params": [*self.parameters()], "weight_decay": config.weight_decay}]

    @classmethod
    def survey(cls, steps: Steps, contract: Contract, config: Config) -> Any:
        """What it must know of the data besides the contract, to be built; None for nothing."""
        return None

    @classmethod
    def parse_knowledge(cls, values: object, contract: Contract, where: str) -> Any:
        """The knowledge that was kept with the weights."""
        return None

    @classmethod
    def complete(cls, config: Config, knowledge: Any) -> dict[str, Any]:
        """Settings that follow from the data where the config leaves them open."""
        return {}
