"""The three arithmetic benchmarks: how a source is made from an equation."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Protocol

from aegen.equation import Integers
from aegen.errors import InvalidSpec
from aegen.pieces import Pieces, Vocabulary
from aegen.sampling import Draws
from aegen.spec import Spec
from aegen.tasks.aec import Aec
from aegen.tasks.aes import Aes
from aegen.tasks.aor import Aor


class Task(Protocol):
    """From cells of equations to sources, whole columns at a time."""

    name: ClassVar[str]
    one_target: ClassVar[bool]  # whether a source can belong to one target only

    @property
    def vocabulary(self) -> Vocabulary:
        """The pieces that sources are made of: the tokens first."""
        ...

    def sources(self, cells: Integers, draws: Draws) -> Pieces:
        """One source for each equation, drawn by the rows' own randomness."""
        ...


@lru_cache(maxsize=4)
def task_of(spec: Spec) -> Task:
    """The task that a spec describes; cached because a task may hold tables."""
    match spec.task:
        case Aor.name:
            return Aor(spec.n)
        case Aes.name:
            return Aes(spec.n, spec.division)
        case Aec.name:
            return Aec(spec.n, spec.errors)
    raise InvalidSpec(f"task={spec.task}: no such task")


__all__ = ["Aec", "Aes", "Aor", "Task", "task_of"]
