"""The three arithmetic benchmarks: how a source is made from an equation."""

from __future__ import annotations

from typing import ClassVar, Protocol

from aegen.arithmetic.aec import Aec
from aegen.arithmetic.aes import Aes
from aegen.arithmetic.aor import Aor
from aegen.arithmetic.texts import Pieces
from aegen.arithmetic.vocabulary import Vocabulary
from aegen.core.actions import Design
from aegen.core.randomness import Draws
from aegen.core.types import Integers


class Task(Protocol):
    """From cells of equations to sources, whole columns at a time."""

    name: ClassVar[str]
    one_target: ClassVar[bool]  # whether a source can belong to one target only
    one_source: ClassVar[bool]  # whether a target has one source only, so that there are no variants

    @property
    def vocabulary(self) -> Vocabulary:
        """The pieces that sources are made of: the tokens first."""
        ...

    def sources(self, cells: Integers, draws: Draws) -> Pieces:
        """One source for each equation, drawn by the rows' own randomness."""
        ...

    @staticmethod
    def writable(design: Design, tokens: frozenset[str]) -> frozenset[str]:
        """Which tokens an agent may write; ``tokens`` are those that occur in states."""
        ...


TASKS: dict[str, type[Aor] | type[Aes] | type[Aec]] = {task.name: task for task in (Aor, Aes, Aec)}


def writable_tokens(task: str, design: Design, tokens: frozenset[str]) -> frozenset[str]:
    """Which tokens a task lets an agent write; in texts, all that occur."""
    return TASKS[task].writable(design, tokens) if task in TASKS else tokens
