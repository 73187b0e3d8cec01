"""Arithmetic Operators Restoration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aegen.equation import Integers
from aegen.sampling import Draws


@dataclass(frozen=True)
class Aor:
    """The source is the integers alone: ``3 6 2 9 3`` -> ``- 3 - 6 / 2 + 9 = 3``."""

    name: ClassVar[str] = "aor"
    one_target: ClassVar[bool] = False

    def sources(self, cells: Integers, draws: Draws) -> Integers:
        """Drop sign, operators and ``=``."""
        return cells[:, 1::2]
