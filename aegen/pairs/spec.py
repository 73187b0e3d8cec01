"""What a benchmark is: one frozen record, validated once, with one id string."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from aegen.core.errors import AegenError, BadData, InvalidSpec
from aegen.core.format import TASKS
from aegen.core.types import SpecTree

ONE_SOURCE = ("aor",)  # tasks with exactly one source for each target, and so without variants
_LETTERS = {"n": "n", "l": "l", "d": "d", "s": "seed", "e": "errors", "v": "variants", "r": "rows_per_shard"}
_WORDS = {"div": ("division", True), "paper": ("split", "paper")}
MAX_N = 10**6  # the vocabulary is held in memory
MAX_VARIANTS = 10**4
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@dataclass(frozen=True)
class Spec:
    """All that a generated dataset depends on: the same spec gives the same bytes.

    >>> Spec(task="aes", n=100, l=5, d=10_000, division=True).id
    'aes-n100-l5-d10000-s0-div'
    """

    task: str
    n: int
    l: int
    d: int
    seed: int = 0
    split: str = "source"
    division: bool = False
    errors: int = 3
    variants: int = 0
    rows_per_shard: int = 250_000

    def __post_init__(self) -> None:
        for field in fields(self):
            wanted = {"str": str, "int": int, "bool": bool}[str(field.type)]
            if type(getattr(self, field.name)) is not wanted:
                raise InvalidSpec(f"{field.name}={getattr(self, field.name)!r}: expected {field.type}")
        if self.task not in TASKS:
            raise InvalidSpec(f"task={self.task}: expected one of {', '.join(TASKS)}")
        for name, least in (("n", 2), ("l", 3), ("d", 1), ("seed", 0), ("errors", 0), ("variants", 0)):
            self._at_least(name, least)
        self._at_least("rows_per_shard", 1)
        if self.split not in ("source", "paper"):
            raise InvalidSpec(f"split={self.split}: expected source or paper")
        if self.seed >= 2**63:
            raise InvalidSpec(f"seed={self.seed}: expected less than 2^63")
        if self.errors > 2 * self.l - 2:
            raise InvalidSpec(f"errors={self.errors}: the shortest equation of l={self.l} has {2 * self.l - 2} places")
        for name, task in (("division", "aes"), ("errors", "aec")):
            if self.task != task and getattr(self, name) != getattr(type(self), name):
                raise InvalidSpec(f"{name} is an option of {task}, not of {self.task}")
        if self.variants and self.task in ONE_SOURCE:
            raise InvalidSpec(f"variants: {self.task} has one source for each target; expected aes or aec")
        for name, most in (("n", MAX_N), ("variants", MAX_VARIANTS)):
            if getattr(self, name) > most:
                raise InvalidSpec(f"{name}={getattr(self, name)}: expected at most {most:,}")
        bits = math.log2(2 * self.n - 1) + (self.l - 2) * math.log2(4 * self.n)
        if bits >= 63:
            raise InvalidSpec(f"n={self.n}, l={self.l}: {bits:,.0f} bits to number the left sides, beyond 63 bits")

    def _at_least(self, name: str, least: int) -> None:
        if getattr(self, name) < least:
            raise InvalidSpec(f"{name}={getattr(self, name)}: expected at least {least}")

    @property
    def candidates(self) -> int:
        """How many left sides there are, valid or not."""
        return int((2 * self.n - 1) * (4 * self.n) ** (self.l - 2))

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
        """Read an id string; ``d10k`` and ``d2m`` are understood too.

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
                raise InvalidSpec(f"{text}: cannot read {part!r}; expected for example aor-n10-l5-d10k-s0")
            if name in settings:
                raise InvalidSpec(f"{text}: {name} is there twice")
            settings[name] = setting
        if missing := {"n", "l", "d"} - set(settings):
            raise InvalidSpec(f"{text}: lacks {', '.join(sorted(missing))}; expected for example aor-n10-l5-d10k-s0")
        return cls(**settings)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for the manifest and the shards' metadata."""
        return asdict(self)


def spec_tree(spec: Spec) -> SpecTree:
    """The spec as manifests and shards record it."""
    return {"pairs": {"made": "generated", **spec.as_dict()}}


def read_spec(tree: SpecTree, where: object) -> Spec | None:
    """The spec that a manifest records; None where the pairs were not generated."""
    settings = dict(tree.get("pairs", {}))
    if settings.pop("made", None) != "generated":
        return None
    try:
        return Spec(**settings)
    except (TypeError, AegenError) as error:
        raise BadData(f"{where}: the manifest's spec is none: {error}") from None
