"""Where pairs come from, as one frozen record, validated once: a benchmark's spec, or what was imported."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta

from aegen.arithmetic.tasks import TASKS
from aegen.core.errors import InvalidSpec
from aegen.core.format import MAX_TEXT
from aegen.core.records import wrong_field

_LETTERS = {"n": "n", "l": "l", "d": "d", "s": "seed", "e": "errors", "v": "variants", "r": "rows_per_shard"}
_WORDS = {"div": ("division", True), "paper": ("split", "paper")}
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
EXAMPLE = "aor-n10-l5-d10k-s0"
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Rows = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Kind = Literal["words", "chars"]  # of tokens
SplitBy = Literal["source", "target", "pair"]
MaxTokens = Annotated[int, Meta(ge=1, le=MAX_TEXT)]
Annotator = Annotated[int, Meta(ge=0, le=2**63 - 1)]


def check_fields(record: object) -> None:
    """Refuse a record with a field beyond its declared type and limits, as every reader of the dataset would."""
    for name, kind in get_type_hints(type(record)).items():
        allowed, asked = get_args(kind) if get_origin(kind) is Literal else (), getattr(record, name)
        if allowed and asked not in allowed:
            raise InvalidSpec(f"{name}={str(asked)[:60]}: expected one of {', '.join(allowed)}")
    if wrong := wrong_field(record):
        raise InvalidSpec(wrong)


@dataclass(frozen=True)
class Spec:
    """All that a generated dataset depends on: the same spec gives the same bytes.

    >>> Spec(task="aes", n=100, l=5, d=10_000, division=True).id
    'aes-n100-l5-d10000-s0-div'
    """

    task: str
    n: Annotated[int, Meta(ge=2, le=10**6)]  # the vocabulary is held in memory
    l: Annotated[int, Meta(ge=3)]
    d: Rows
    seed: Seed = 0
    split: Literal["source", "paper"] = "source"
    division: bool = False
    errors: Annotated[int, Meta(ge=0)] = 3
    variants: Annotated[int, Meta(ge=0, le=10**4)] = 0
    rows_per_shard: Rows = 250_000

    def __post_init__(self) -> None:
        check_fields(self)
        if self.task not in TASKS:
            raise InvalidSpec(f"task={self.task}: expected one of {', '.join(TASKS)}")
        if self.errors > 2 * self.l - 2:
            raise InvalidSpec(f"errors={self.errors}: expected at most {2 * self.l - 2} for l={self.l}")
        for name, task in (("division", "aes"), ("errors", "aec")):
            if self.task != task and getattr(self, name) != getattr(type(self), name):
                raise InvalidSpec(f"{name} is an option of {task}, not of {self.task}")
        if self.variants and TASKS[self.task].one_source:
            raise InvalidSpec(f"variants: {self.task} has one source for each target; expected aes or aec")
        bits = math.log2(2 * self.n - 1) + (self.l - 2) * math.log2(4 * self.n)
        if bits >= 63:
            raise InvalidSpec(
                f"n={self.n}, l={self.l}: numbering the left sides takes {bits:,.0f} bits, the limit is 63 bits"
            )

    @property
    def quotas(self) -> dict[str, int]:
        """Rows of each split: 15 % validation, 15 % test (rounded down), the rest train."""
        part = self.d * 15 // 100
        return {"train": self.d - 2 * part, "validation": part, "test": part}

    @property
    def id(self) -> str:
        """One string that names the spec and nothing else; options at their default are left out."""
        parts = [self.task, f"n{self.n}", f"l{self.l}", f"d{self.d}", f"s{self.seed}"]
        for letter, name in _LETTERS.items():
            if letter in "evr" and getattr(self, name) != getattr(type(self), name):
                parts.append(f"{letter}{getattr(self, name)}")
        parts += [word for word, (name, setting) in _WORDS.items() if getattr(self, name) == setting]
        return "-".join(parts)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read an id; ``d10k`` and ``d2m`` are accepted too.

        >>> Spec.parse("aec-n10-l5-d10k-e5").errors
        5
        """
        task, *parts = text.split("-")
        settings: dict[str, Any] = {"task": task}
        for part in parts:
            match = re.fullmatch(r"([a-z])(\d{1,19})([kmg]?)", part)
            if part in _WORDS:
                name, setting = _WORDS[part]
            elif match and match[1] in _LETTERS:
                name, setting = _LETTERS[match[1]], int(match[2]) * _SCALES[match[3]]
            else:
                raise InvalidSpec(f"{text}: cannot read {part!r}, expected for example {EXAMPLE}")
            if name in settings:
                raise InvalidSpec(f"{text}: duplicate field: {name}")
            settings[name] = setting
        if missing := {"n", "l", "d"} - set(settings):
            raise InvalidSpec(f"{text}: missing {', '.join(sorted(missing))}, expected for example {EXAMPLE}")
        return cls(**settings)


@dataclass(frozen=True)
class InputFile:
    """A file that pairs were imported from, or a dataset that the package ``datasets`` loads."""

    name: str
    sha256: str  # of ``datasets`` its fingerprint, which that package makes in its own way
    split: str | None = None  # to which all of its pairs go

    @property
    def argument(self) -> str:
        """The file as a command names it."""
        return f"{self.split}={self.name}" if self.split else self.name


@dataclass(frozen=True)
class SourcesOnly:
    """A dataset of sources without targets, and the held-out pairs whose sources are left out."""

    apart_from: str | None = None  # the name of their dataset
    held_out: tuple[InputFile, ...] = ()  # its shards of validation and test


@dataclass(frozen=True)
class Imported:
    """All that imported pairs depend on: the inputs by content, and the settings they were read with."""

    kind: str
    inputs: tuple[InputFile, ...]
    task: str = "text"
    tokens: Kind = "words"
    split: str | None = None
    split_by: SplitBy = "source"
    seed: Seed = 0
    max_tokens: MaxTokens = 1024
    rows_per_shard: Rows = Spec.rows_per_shard
    skip_bad: bool = False
    source_column: str | None = None
    target_column: str | None = None
    annotator: Annotator | None = None

    def __post_init__(self) -> None:
        check_fields(self)
