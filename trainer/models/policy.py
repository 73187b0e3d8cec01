"""The one interface between an agent and everything else.

An agent of the zoo is a :class:`Policy`. Class attributes say what it plays and learns from; ``study`` and ``sampler``
say what it needs of its data; the loop trains it through ``forward``, ``judge`` and ``parameter_groups``; a game
asks it to ``decide``. Nobody asks which class it is.

Axes: b batch, m state, n action, d width, v action vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import torch
from torch import Tensor, nn

from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import InvalidConfig
from trainer.core.records import convert
from trainer.data.batches import MemorySampler, Sampler, TrainingBatch
from trainer.data.contract import Contract
from trainer.data.demonstrations import Demonstrations, Shards
from trainer.data.encode import Batch, Steps
from trainer.data.stream import StreamSampler
from trainer.game.play import Decision, Draw

PLANNING = frozenset(("view", "beam", "auxiliary", "confidence", "tokens"))  # settings that are the planner's alone

EDITING = frozenset(("encoder",))  # and those of the agents for text
BETAS = (0.9, 0.98)  # of AdamW for the planner, and beside Muon


class Knowledge(msgspec.Struct, frozen=True):
    """What a model must know of its data besides the contract to be built; kept in ``config.json``."""

    def check(self, contract: Contract, where: str) -> None:
        """Refuse knowledge that does not belong to this contract; types and limits are checked already."""


class Policy(nn.Module):
    """A module that learns from batches and decides in games.

    ``forward`` takes the inputs of its sampler's batches and returns scores (b, targets, classes).
    """

    about: ClassVar[str]  # one line for lists and cards
    game: ClassVar[str] = "edits"  # what an action is: one edit, a round of tags (tags), or the whole text (text)
    learns_from: ClassVar[Shards | None] = None  # None: the shards that ``train_on`` of the config names
    augmentable: ClassVar[bool] = True  # whether augmented demonstrations (TA) make sense for it
    streamable: ClassVar[bool] = True  # whether it can learn from row groups one after the other
    settings: ClassVar[Mapping[str, Any]] = {}  # its own values of the config, which replace a preset's
    gpu_settings: ClassVar[Mapping[str, Any]] = {}  # and those that a GPU adds
    unread: ClassVar[frozenset[str]] = PLANNING | EDITING  # settings that change nothing for it
    knowledge_type: ClassVar[type[Knowledge] | None] = None  # what ``study`` finds out
    group: ClassVar[int] = 256  # games of similar length that are decided at once
    practises: ClassVar[bool] = True  # whether it can sample its actions, and learn from games that it won
    several: ClassVar[bool] = False  # whether it can decide on several edits of a state at once
    contract_type: ClassVar[type[Contract]] = Contract  # an open one for states of any words and any length

    # What it needs of its data

    @classmethod
    def shards(cls, config: Config) -> Shards:
        """The training rows that it learns from."""
        return cls.learns_from or config.train_on

    @classmethod
    def read_settings(cls, config: Config) -> dict[str, Any]:
        """The settings that decide what a run computes, without those that this model does not read."""
        unread = cls.unread | ({"train_on"} if cls.learns_from else set())
        return {name: value for name, value in config.to_json().items() if name not in unread}

    @classmethod
    def study(
        cls, data: Demonstrations, config: Config, known: Knowledge | None = None
    ) -> tuple[Config, Knowledge | None]:
        """Before it is built: the config with the settings that the data decides, and what it must know of the data.

        A run that is resumed has ``known`` some of it already.
        """
        if config.stream and not cls.streamable:
            raise InvalidConfig(f"{config.model} reads its training data into memory; use it without --stream")
        return config, None

    @classmethod
    def read_knowledge(cls, values: object, contract: Contract, where: str) -> Knowledge | None:
        """The knowledge in a ``config.json``."""
        if cls.knowledge_type is None:
            return None
        knowledge = convert(values, cls.knowledge_type, f"{where}: knowledge")
        knowledge.check(contract, f"{where}: knowledge")
        return knowledge

    def sampler(self, data: Demonstrations, config: Config, runtime: Runtime) -> Sampler:
        """The updates to learn from; by default batches of steps."""
        if config.stream:
            return StreamSampler(data.dataset, data.footers, data.contract, config, runtime)
        return MemorySampler(data.steps, config, runtime)

    # What the loop asks

    @property
    def targets(self) -> int:
        """Labels for each row of a batch."""
        raise NotImplementedError

    @property
    def has_unused(self) -> bool:
        """Whether an update may leave some parameters without a gradient."""
        return False

    def parameter_groups(self, config: Config) -> list[dict[str, Any]]:
        """The optimizer's groups of parameters."""
        decay = {"weight_decay": config.weight_decay}
        if config.optimizer == "adamw":
            return [{"params": [*self.parameters()]} | decay]
        hidden = self.hidden_matrices()
        chosen = {id(matrix) for matrix in hidden}
        rest = [parameter for parameter in self.parameters() if id(parameter) not in chosen]
        return [{"params": rest, "betas": BETAS} | decay, {"params": hidden, "orthogonal": True} | decay]

    @property
    def practised_decay(self) -> float:
        """The share of its weight decay that practice has, where that has as few sources as imitation."""
        return 1.0

    def hidden_matrices(self) -> list[Tensor]:
        """The matrices that lead from hidden values to hidden values: Muon makes their updates orthogonal."""
        raise NotImplementedError

    def initialise(self, config: Config) -> None:
        """Replace the initial weights that PyTorch gave the layers, where the config asks for it."""

    def judge(self, scores: Tensor, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """From what ``forward`` says of a batch, the loss of every label (b, targets), and whether it was right."""
        return negative_log_likelihood(scores, batch.actions, batch.smoothing), scores.argmax(-1) == batch.actions

    def tune(self, steps: Steps) -> dict[str, float]:
        """Before a validation: set what held-out demonstrations decide, not updates; returns it for the log."""
        return {}

    def assess(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """As it would play, the loss (b) of an expert's actions, and whether it would choose them (b)."""
        scores = self.scores(batch.states, batch.lengths)
        return negative_log_likelihood(scores, batch.actions).mean(1), (scores.argmax(-1) == batch.actions).all(1)

    # What a game asks

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Scores (b, n, v) of the action tokens for states (b, m), for an agent that has a vocabulary of actions."""
        scores: Tensor = self(states, lengths)
        return scores

    def decide(self, states: Tensor, lengths: Tensor, edits: int = 1) -> Decision:
        """What to play next: one action, or for an agent that can up to ``edits`` at once."""
        return Decision.best(self.scores(states, lengths))

    def sample(self, states: Tensor, lengths: Tensor, draw: Draw) -> Decision:
        """One action for each state, drawn from the agent's own probabilities."""
        return Decision.drawn(perturbed(self.scores(states, lengths), draw).argmax(-1))


def negative_log_likelihood(scores: Tensor, actions: Tensor, smoothing: float = 0.0) -> Tensor:
    """Minus the score of each gold token (b, n); with smoothing, mixed with the mean over all possible tokens."""
    gold = -scores.gather(-1, actions[..., None])[..., 0]
    if not smoothing:
        return gold
    possible = scores > -torch.inf
    others = -scores.masked_fill(~possible, 0).sum(-1) / possible.sum(-1)
    return (1 - smoothing) * gold + smoothing * others


def perturbed(scores: Tensor, draw: Draw) -> Tensor:
    """Scores with Gumbel noise: the best of them is a draw from their softmax, or with curiosity from any.

    >>> draw = Draw(torch.Generator().manual_seed(0))
    >>> found = perturbed(torch.tensor([0.75, 0.25]).log().expand(10_000, 2), draw).argmax(-1)
    >>> round(float((found == 0).float().mean()), 1)
    0.8
    """
    # Drawn on the CPU: the same on any device.
    noise = torch.empty(scores.shape).exponential_(generator=draw.generator).log()
    if draw.curiosity:
        possible = scores > -torch.inf
        any_of_them = possible / possible.sum(-1, keepdim=True)
        scores = ((1 - draw.curiosity) * scores.softmax(-1) + draw.curiosity * any_of_them).log()
    return scores - noise.to(scores.device)
