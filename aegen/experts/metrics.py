"""Edit metrics: from a state and its goal to the splices that lead there, left to right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from aegen.columns.ragged import Ragged
from aegen.core.edits import Splice
from aegen.core.errors import InvalidSpec
from aegen.core.types import Tokens
from aegen.experts.custom import Custom
from aegen.experts.scripts import Scripts, unambiguous_insertions
from aegen.experts.span import Span

ENTRY_POINTS = "aegen.metrics"
EditOps = Callable[[str, str], list[tuple[str, int, int]]]
_INDICES = itemgetter(1), itemgetter(2)


class Metric(Protocol):
    """Finds edit scripts; ``backend`` names the packages, with versions, that decide among equally short ones."""

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> dict[str, str]: ...

    @property
    def shortest(self) -> bool:
        """Whether no script has fewer edits. Then those that are left of a script are the fewest from there too: with
        fewer, there would be fewer from the beginning."""
        ...

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """The script of one pair: splices that are applied one after the other."""
        ...

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """The scripts of many pairs, row by row; ids stand for the tokens of ``alphabet``."""
        ...

    def independent(self, goals: Ragged, scripts: Scripts) -> bool:
        """Whether every subset of a pair's edits is known to lead to another state, from which the metric's script is
        the other edits. Then TA need not look at these states; see :mod:`aegen.experts.subsets`."""
        ...


def character(index: int) -> str:
    """The character that stands for token number ``index``: surrogates are no characters, so they are left out.

    >>> character(65), ord(character(0xD800)) == 0xE000
    ('A', True)
    """
    return chr(index if index < 0xD800 else index + 0x800)


def to_strings(column: Ragged) -> list[str]:
    """Rows of token numbers as strings, one character a token."""
    points = np.where(column.values < 0xD800, column.values, column.values + 0x800).astype("<u4")
    text, offsets = points.tobytes().decode("utf-32-le"), column.offsets.tolist()
    return [text[a:b] for a, b in pairwise(offsets)]


@dataclass(frozen=True)
class EditOperations:
    """The fewest single-token edits as a C library finds them (``editops``: tag, source index, goal index)."""

    name: str
    backend: dict[str, str]
    operations: EditOps
    shortest: ClassVar[bool] = True

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """Executed from left to right, an edit lies at its goal index.

        >>> load_metric("levenshtein").splices(("1", "1", "2"), ("1", "+", "1", "=", "2"))
        [Splice(start=1, stop=1, new=('+',)), Splice(start=3, stop=3, new=('=',))]
        """
        numbers: dict[str, int] = {}
        texts = ["".join(character(numbers.setdefault(t, len(numbers))) for t in side) for side in (state, goal)]
        return [
            Splice(at, at + (tag != "insert"), () if tag == "delete" else (goal[at],))
            for tag, _, at in self.operations(*texts)
        ]

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """The library's answer for every row."""
        left, right = to_strings(states), to_strings(goals)
        counts: list[int] = []
        columns = [np.zeros((2, 0), dtype=np.int64)]  # source indices, goal indices
        # A few hundred at a time: the tuples are freed before the garbage collector looks at them.
        for at in range(0, len(left), 256):
            found = list(map(self.operations, left[at : at + 256], right[at : at + 256]))
            counts += map(len, found)
            edits = list(chain.from_iterable(found))
            columns.append(np.array([np.fromiter(map(get, edits), np.int64, len(edits)) for get in _INDICES]))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.array(counts, dtype=np.int64))])
        begin, new = np.concatenate(columns, axis=1)
        # How much longer the goal is than the source up to here: by one more after an insertion, by one less after a
        # deletion.
        ahead = new - begin
        after = np.append(ahead[1:], 0)
        edited = np.diff(offsets) > 0
        after[offsets[1:][edited] - 1] = (goals.lengths - states.lengths)[edited]
        grown = after[: len(ahead)] - ahead
        return Scripts(offsets, begin, begin + (grown <= 0), new, new + (grown >= 0))

    def independent(self, goals: Ragged, scripts: Scripts) -> bool:
        """If all edits are insertions that can be nowhere else, so that no other script is as short."""
        return unambiguous_insertions(goals, scripts)


def _levenshtein() -> Metric:
    from Levenshtein import editops

    return EditOperations("levenshtein", _versions("python-Levenshtein", "rapidfuzz"), editops)


def _lcs() -> Metric:
    """Insert and delete only: what stays is a longest common subsequence."""
    from rapidfuzz.distance import Indel

    def operations(state: str, goal: str) -> list[tuple[str, int, int]]:
        return Indel.editops(state, goal).as_list()  # type: ignore[return-value]

    return EditOperations("lcs", _versions("rapidfuzz"), operations)


def _versions(*packages: str) -> dict[str, str]:
    return {package: version(package) for package in packages}


METRICS: dict[str, Callable[[], Metric]] = {
    "levenshtein": _levenshtein,
    "lcs": _lcs,
    "span": Span,
}


def load_metric(name: str) -> Metric:
    """A metric by its name, by an entry point of the group ``aegen.metrics``, or as ``package.module:function``.

    >>> load_metric("lcs").name
    'lcs'
    """
    if name in METRICS:
        return METRICS[name]()
    for point in entry_points(group=ENTRY_POINTS, name=name):
        return Custom(name, point.load(), _backend(point.value))
    module, _, function = name.partition(":")
    if not function:
        raise InvalidSpec(f"metric={name}: expected one of {', '.join(METRICS)}, or package.module:function")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # a module beside the user, as `python -m` would find it
    try:
        found = getattr(import_module(module), function)
    except Exception as error:  # importing a stranger's module can do anything
        raise InvalidSpec(f"metric={name}: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise InvalidSpec(f"metric={name}: {function} is not a function")
    return Custom(name, found, _backend(module))


def _backend(module: str) -> dict[str, str]:
    """The version of the package that a user's metric comes from, where it has one."""
    package = module.partition(":")[0].partition(".")[0]
    try:
        return _versions(package)
    except PackageNotFoundError:
        return {package: "unknown"}
