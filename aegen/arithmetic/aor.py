"""Arithmetic Operators Restoration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from aegen.arithmetic.equation import EQUALS, OPERATORS
from aegen.arithmetic.texts import Pieces
from aegen.arithmetic.vocabulary import Vocabulary
from aegen.core.actions import Design
from aegen.core.randomness import Draws
from aegen.core.types import Integers


@dataclass(frozen=True)
class Aor:
    """The source is the integers alone: ``3 6 2 9 3`` -> ``- 3 - 6 / 2 + 9 = 3``."""

    n: int
    name: ClassVar[str] = "aor"
    one_target: ClassVar[bool] = False
    one_source: ClassVar[bool] = True

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""
        return Vocabulary.of(self.n)

    def sources(self, cells: Integers, draws: Draws) -> Pieces:
        """Drop sign, operators and ``=``."""
        return Pieces(cells[:, 1::2], self.vocabulary)

    @staticmethod
    def writable(design: Design, tokens: frozenset[str]) -> frozenset[str]:
        """What a source lacks: operators and ``=``."""
        return frozenset((*OPERATORS, EQUALS))
