"""How an agent is built and trained: one frozen object whose fields declare their type, limits and help text.

>>> Config(width=64).width
64
>>> Config(width=1)
Traceback (most recent call last):
trainer.core.errors.InvalidConfig: field width: expected int >= 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from trainer.core.errors import InvalidConfig
from trainer.core.records import explain, plain

MANY, MOST_UPDATES = 1 << 20, 1 << 40
ROUNDS, SAMPLES = 3, 8  # of practice, unless told otherwise
Times = Annotated[int, Meta(ge=1, le=MANY)]  # rounds of practice, and games from each source in a round
Updates = Annotated[int, Meta(ge=1, le=MOST_UPDATES)]  # of a round
# The zoo by name, for a command line that does not wait for PyTorch; ``trainer.models.zoo`` has the classes.
MODEL_NAMES = (
    "ar", "ar-star", "nar", "nar-star", "linear", "decoder0", "shared-d2", "end2end", "tagging", "recurrence",
    "recurrence-star", "planner", "editor", "tagger",
)  # fmt: skip
# Settings belong together; those that say nothing are about training.
GROUPS = ("Data", "Model", "Training", "Planner only", "Editor and tagger only")
DATA, MODEL, TRAINING, PLANNER, EDITOR = ({"group": name} for name in GROUPS)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a run computes."""

    model: Annotated[str, Meta(extra=MODEL, description="Model to train.")] = "nar-star"
    width: Annotated[
        int,
        Meta(
            extra=MODEL, ge=2, le=1 << 14, multiple_of=2, description="Width of embeddings, encoder and decoders; even."
        ),
    ] = 512
    layers: Annotated[int, Meta(extra=MODEL, ge=0, le=64, description="Encoder layers; 0: the model's own depth.")] = 0
    dropout: Annotated[float, Meta(extra=MODEL, ge=0, le=0.95, description="Dropout after each layer.")] = 0.5
    init: Annotated[
        Literal["scaled", "released"],
        Meta(extra=MODEL, description="Initial weights: scaled by width, or as in the released code."),
    ] = "scaled"
    teacher_forcing: Annotated[
        float, Meta(extra=MODEL, ge=0, le=1, description="Probability that a decoder reads the gold token in training.")
    ] = 0.5
    teacher_draw: Annotated[
        Literal["row", "batch"],
        Meta(
            extra=MODEL,
            description="Draw teacher forcing of an autoregressive decoder for each row, or once for a batch.",
        ),
    ] = "row"
    train_on: Annotated[
        Literal["augmented", "expert", "variants"],
        Meta(
            extra=DATA,
            description="Demonstrations to learn from; variants: the expert's, with more sources of each target.",
        ),
    ] = "augmented"
    epoch: Annotated[
        Literal["steps", "pairs"], Meta(description="One epoch passes over all unique steps, or over trajectories.")
    ] = "steps"
    lengths: Annotated[
        Literal["mixed", "equal"],
        Meta(description="Batch steps of all lengths together, or steps of one length, which is faster on a CPU."),
    ] = "mixed"
    epochs: Annotated[int, Meta(ge=1, le=MANY, description="Maximum number of epochs.")] = 4096
    updates: Annotated[
        int, Meta(ge=0, le=MOST_UPDATES, description="Maximum number of updates; 0: no limit, or the planner's recipe.")
    ] = 0
    batch: Annotated[int, Meta(ge=1, le=MANY, description="Steps in one update.")] = 256
    last_batch: Annotated[
        Literal["keep", "drop"], Meta(description="Whether an epoch keeps its last batch if that is not full.")
    ] = "keep"
    optimizer: Annotated[
        Literal["adamw", "muon"],
        Meta(description="Optimizer; muon: orthogonal updates of matrices between hidden layers, AdamW for the rest."),
    ] = "adamw"
    learning_rate: Annotated[float, Meta(ge=1e-9, le=10, description="Highest learning rate.")] = 1e-3
    weight_decay: Annotated[float, Meta(ge=0, le=100, description="Decoupled weight decay.")] = 0.0
    decay_steps: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 40,
            description="With more unique steps than this, weight decay falls in inverse proportion; 0: never.",
        ),
    ] = 0
    restart: Annotated[
        int, Meta(ge=0, le=MANY, description="Epochs in one cosine cycle; 0: one cycle over all updates.")
    ] = 32
    warm_up: Annotated[int, Meta(ge=0, le=MANY, description="Updates over which the learning rate rises from 0.")] = 0
    schedule: Annotated[Literal["cosine", "constant"], Meta(description="Learning rate schedule.")] = "cosine"
    rate_every: Annotated[
        Literal["update", "epoch"], Meta(description="Set the learning rate at every update, or once an epoch.")
    ] = "update"
    clip: Annotated[float, Meta(ge=1e-9, description="Largest norm of the gradient.")] = 5.0
    adaptive: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="Weight the slots by their error; auto: if an action has more than two."),
    ] = "auto"
    adaptive_scale: Annotated[
        Literal["sum", "mean"],
        Meta(description="Adaptive loss: weighted sum over the slots, or the same divided by their number."),
    ] = "sum"
    select: Annotated[
        Literal["accuracy", "edits", "loss", "released"],
        Meta(
            description="Criterion for the best checkpoint; edits: F0.5 of edits of text by words, else accuracy; "
            "released: token accuracy for span actions, else equation accuracy."
        ),
    ] = "accuracy"
    ties: Annotated[
        Literal["first", "last"], Meta(description="Which of several equally good checkpoints is the best.")
    ] = "first"
    patience: Annotated[
        int, Meta(ge=1, le=MANY, description="Epochs without a better checkpoint before training stops.")
    ] = 512
    validate_every: Annotated[int, Meta(ge=1, le=MANY, description="Epochs between two validations.")] = 1
    validation_pairs: Annotated[
        int, Meta(ge=1, le=MANY, description="Maximum pairs to play in a validation; of more, evenly spaced ones.")
    ] = 5000
    precision: Annotated[
        Literal["fp32", "bf16", "auto"],
        Meta(description="Arithmetic of the forward pass; auto: bf16 on a GPU and on a CPU that supports it."),
    ] = "fp32"
    stream: Annotated[
        bool, Meta(extra=DATA, description="Read row groups as they are needed instead of all at once.")
    ] = False
    stream_rows: Annotated[
        int,
        Meta(
            extra=DATA,
            ge=1,
            le=1 << 28,
            description="With --stream: rows shuffled together, and maximum rows for validation.",
        ),
    ] = 500_000
    view: Annotated[
        Literal["auto", "scripts", "span", "opened"],
        Meta(extra=PLANNER, description="What the planner reads; auto: chosen by the slots and the data."),
    ] = "auto"
    beam: Annotated[
        int,
        Meta(
            extra=PLANNER, ge=1, le=64, description="Scripts that the planner compares; 1: best place, then best token."
        ),
    ] = 8
    auxiliary: Annotated[
        float,
        Meta(extra=PLANNER, ge=0, le=1, description="Share of training rows that mask tokens of goal states."),
    ] = 0.75
    confidence: Annotated[
        bool, Meta(extra=PLANNER, description="Whether the plan network reads how certain the token network is.")
    ] = True
    tokens: Annotated[
        Literal["auto", "whole", "characters"],
        Meta(
            extra=PLANNER,
            description="How tokens are read and written: whole, or through their characters; auto: by the data.",
        ),
    ] = "auto"
    encoder: Annotated[
        str,
        Meta(
            extra=EDITOR,
            max_length=4096,
            description="Pretrained encoder: a folder or a hub id (org/name); none: a small one from scratch.",
        ),
    ] = ""
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="Seed of all random choices.")] = 0

    def __post_init__(self) -> None:
        for setting in settings():
            msgspec.structs.force_setattr(self, setting.name, setting.checked(getattr(self, setting.name)))
        if not self.restart and not self.updates:
            raise InvalidConfig("field restart: 0 (one cycle over all updates) requires a number of updates")
        if self.lengths == "equal" and self.epoch != "steps":
            raise InvalidConfig("field lengths: equal requires epoch steps, whose updates are chosen in advance")

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Config:
        """A config from a JSON object or from options."""
        if unknown := sorted(set(values) - {setting.name for setting in settings()}):
            raise InvalidConfig(f"{where}: unknown setting {unknown[0][:60]!r}")
        try:
            return cls(**values)
        except InvalidConfig as error:
            raise InvalidConfig(f"{where}: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """The values as a plain object that :meth:`parse` reads."""
        values: dict[str, Any] = plain(self)
        return values


@dataclass(frozen=True)
class Setting:
    """One field of the config, for a check and for a command line."""

    name: str
    kind: Any  # its type with all limits
    default: Any
    choices: tuple[str, ...]
    help: str
    group: str

    def checked(self, value: object) -> Any:
        """The value, an int as a float where one is expected."""
        return checked(self.name, value, self.kind, self.choices)


def checked(name: str, value: object, kind: Any, choices: tuple[str, ...] = ()) -> Any:
    """The value of a setting of this type with its limits.

    >>> checked("rounds", 0, Times)
    Traceback (most recent call last):
    trainer.core.errors.InvalidConfig: field rounds: expected int >= 1
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        said = f"expected one of {', '.join(choices)}, got {str(value)[:60]!r}" if choices else explain(error)
        raise InvalidConfig(f"field {name}: {said}") from None


@cache
def settings() -> tuple[Setting, ...]:
    """All fields of the config in their order."""
    found = []
    for field in msgspec.structs.fields(Config):
        bare, meta = get_args(field.type)
        choices = get_args(bare) if get_origin(bare) is Literal else ()
        group = (meta.extra or TRAINING)["group"]
        found.append(Setting(field.name, field.type, field.default, choices, meta.description, group))
    return tuple(found)
