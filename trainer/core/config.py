"""How an agent is built and trained: one frozen object, checked once, with its help on the fields.

A preset is a named set of values; ``paper`` is the paper's, ``cpu`` a narrower one for machines without
a GPU, ``fast`` the planner with its recipe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trainer.core.errors import InvalidConfig


def option(default: Any, text: str, choices: tuple[str, ...] = (), least: float = 0, most: float = math.inf) -> Any:
    """A field with its help text and limits."""
    return field(default=default, metadata={"help": text, "choices": choices, "least": least, "most": most})


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run computes."""

    model: str = option("nar-star", "Agent of the zoo.")
    width: int = option(512, "Width of embeddings, encoder and decoders.", least=2, most=1 << 14)
    layers: int = option(0, "Encoder layers; 0 is the model's own depth.", most=64)
    dropout: float = option(0.5, "Dropout after each layer.", most=0.95)
    init: str = option("scaled", "First weights: scaled by width, or as released.", ("scaled", "released"))
    teacher_forcing: float = option(0.5, "Rate of gold tokens that a decoder reads in training.", most=1)
    teacher_draw: str = option("row", "Teacher forcing is drawn for each row or for a batch.", ("row", "batch"))
    train_on: str = option("augmented", "Demonstrations to learn from.", ("augmented", "expert"))
    epoch: str = option("steps", "One epoch passes over all unique steps, or over trajectories.", ("steps", "pairs"))
    epochs: int = option(4096, "Epochs at most.", least=1, most=1 << 20)
    updates: int = option(0, "Updates at most; 0 is no limit.", most=1 << 40)
    batch: int = option(256, "Steps of one update.", least=1, most=1 << 20)
    learning_rate: float = option(1e-3, "Highest learning rate.", least=1e-9, most=10)
    weight_decay: float = option(0.0, "Decoupled weight decay.", most=100)
    restart: int = option(32, "Epochs of one cosine cycle; 0 is one cycle over all updates.", most=1 << 20)
    schedule: str = option("cosine", "How the learning rate goes on.", ("cosine", "constant"))
    clip: float = option(5.0, "Largest norm of the gradient.", least=1e-9)
    adaptive: str = option(
        "auto",
        "Weight the slots by their error; auto: where an action has more than two.",
        ("auto", "on", "off"),
    )
    select: str = option("accuracy", "What makes a checkpoint the best.", ("accuracy", "loss"))
    patience: int = option(512, "Epochs without a better checkpoint before the end.", least=1, most=1 << 20)
    validate_every: int = option(1, "Epochs between two validations.", least=1, most=1 << 20)
    precision: str = option("fp32", "Arithmetic of the forward pass.", ("fp32", "bf16"))
    stream: bool = option(False, "Read row groups as they are needed instead of all at once.")
    stream_rows: int = option(
        500_000, "Rows that a streaming reader shuffles together, and validates on at most.", least=1, most=1 << 28
    )
    view: str = option(
        "auto", "What the planner reads; auto: by the slots and the data.", ("auto", "scripts", "span", "opened")
    )
    beam: int = option(8, "Scripts that the planner compares; 1: best place, then best token.", least=1, most=64)
    auxiliary: float = option(0.75, "The planner's share of rows that mask tokens of goal states.", most=1)
    confidence: bool = option(True, "Whether the planner's plan reads how sure its token network is.")
    seed: int = option(0, "All random choices derive from it.", most=(1 << 63) - 1)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, rules = getattr(self, one.name), dict(one.metadata)
            kind = type(one.default)
            accepted = (int, float) if kind is float else kind
            if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
                raise InvalidConfig(f"{one.name}: {kind.__name__} is needed, found {str(value)[:60]!r}")
            if rules["choices"] and value not in rules["choices"]:
                raise InvalidConfig(
                    f"{one.name}: one of {', '.join(rules['choices'])} is needed, found {str(value)[:60]!r}"
                )
            if isinstance(value, int | float) and not rules["least"] <= value <= rules["most"]:
                raise InvalidConfig(f"{one.name}: from {rules['least']} to {rules['most']} is allowed, found {value}")
        if not self.restart and not self.updates:
            raise InvalidConfig("restart: one cycle over all updates (0) needs a number of updates")
        if self.width % 2:
            raise InvalidConfig(f"width: an even number is needed (two directions), found {self.width}")

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Config:
        """A config from an untrusted JSON object."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InvalidConfig(f"{where}: unknown setting {unknown[0][:60]!r}")
        try:
            return cls(**values)
        except InvalidConfig as error:
            raise InvalidConfig(f"{where}: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """The same values as a plain object that :meth:`parse` reads."""
        return asdict(self)


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"epoch": "pairs"},
    "fast": {"model": "planner", "clip": 1.0, "validate_every": 2},
    # Three and a half minutes of one core for NAR* + TA on AOR. Two runs decided the batch, one seed each and not quite
    # equally long: 38.1 % of the validation's equations with 2,500 of 128 (209 s), 31.1 % with 1,500 of 256 (179 s).
    "cpu": {
        "width": 64,
        "dropout": 0.1,
        "batch": 128,
        "learning_rate": 4e-3,
        "updates": 2500,
        "restart": 0,
        "clip": 1.0,
        "validate_every": 2,  # a validation plays all games of a split
    },
}


# How the paper's baselines were trained: without what its own framework adds, the schedule and the adaptive loss.
METHODS: dict[str, dict[str, Any]] = {
    "end2end": {"adaptive": "off"},
    "tagging": {"adaptive": "off"},
    "recurrence": {"adaptive": "off", "schedule": "constant"},
    "recurrence-star": {"adaptive": "off", "schedule": "constant"},
}


def preset(name: str, /, **changes: Any) -> Config:
    """The config of a preset, with what belongs to the chosen model and some values changed."""
    if name not in PRESETS:
        raise InvalidConfig(f"no preset {name!r}: there are {', '.join(PRESETS)}")
    method = METHODS.get(str(changes.get("model")), {})
    return Config.parse(PRESETS[name] | method | changes, f"preset {name}")
