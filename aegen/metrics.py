"""Edit metrics: from a state and its goal to the splices that lead there, left to right.

A metric works on whole columns: states and goals as strings with one character a token, out come ``Scripts``.
Because every edit leaves the goal's own tokens behind it, the state before an edit is always a prefix of the goal
and a suffix of the source; so a script is four integers an edit, and no state needs to be built to find it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from aegen.edits import Splice
from aegen.equation import Tokens
from aegen.errors import AegenError, InvalidEdit, InvalidSpec

ENTRY_POINTS = "aegen.metrics"
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scripts:
    """Edit scripts of many pairs. Edit k turns ``source[start:stop]`` into ``goal[new_start:new_stop]``.

    The edits of pair i are those from ``offsets[i]`` to ``offsets[i + 1]``, left to right.
    """

    offsets: Offsets
    start: Offsets
    stop: Offsets
    new_start: Offsets
    new_stop: Offsets

    @property
    def counts(self) -> Offsets:
        """Edits of each pair."""
        return np.diff(self.offsets)

    def splices(self, pair: int, goal: Tokens) -> list[Splice]:
        """The script of one pair as splices that are applied one after the other."""
        edits = range(self.offsets[pair], self.offsets[pair + 1])
        return [
            Splice(begin, begin + int(self.stop[k] - self.start[k]), goal[begin : int(self.new_stop[k])])
            for k in edits
            for begin in [int(self.new_start[k])]
        ]


class Metric(Protocol):
    """Finds edit scripts; ``backend`` names the packages, with versions, that decide among equally short ones."""

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> dict[str, str]: ...

    def scripts(self, states: Sequence[str], goals: Sequence[str], alphabet: Sequence[str]) -> Scripts:
        """The scripts of many pairs; character i stands for the token ``alphabet[i]``."""
        ...


def character(index: int) -> str:
    """The character that stands for token number ``index``: surrogates are no characters, so they are left out.

    >>> character(65), ord(character(0xD800)) == 0xE000
    ('A', True)
    """
    return chr(index if index < 0xD800 else index + 0x800)


def to_strings(values: npt.NDArray[np.int32], offsets: Offsets) -> list[str]:
    """Rows of token numbers as strings, one character a token."""
    points = np.where(values < 0xD800, values, values + 0x800).astype("<u4")
    text = points.tobytes().decode("utf-32-le")
    return [text[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def interned(pairs: Iterable[tuple[Tokens, Tokens]]) -> tuple[list[str], list[str], list[str]]:
    """Token pairs as strings (states, goals) and their alphabet: the form that metrics take."""
    numbers: dict[str, int] = {}
    columns: tuple[list[str], list[str]] = ([], [])
    for pair in pairs:
        for column, tokens in zip(columns, pair, strict=True):
            column.append("".join(character(numbers.setdefault(token, len(numbers))) for token in tokens))
    return *columns, list(numbers)


def splices(metric: Metric, state: Tokens, goal: Tokens) -> list[Splice]:
    """The script of one pair.

    >>> splices(load_metric("levenshtein"), ("1", "1", "2"), ("1", "+", "1", "=", "2"))
    [Splice(start=1, stop=1, new=('+',)), Splice(start=3, stop=3, new=('=',))]
    """
    return metric.scripts(*interned([(state, goal)])).splices(0, goal)


EditOps = Callable[[str, str], list[tuple[str, int, int]]]


@dataclass(frozen=True)
class EditOperations:
    """The fewest single-token edits as a C library finds them (``editops``: tag, source index, goal index)."""

    name: str
    backend: dict[str, str]
    operations: EditOps

    def scripts(self, states: Sequence[str], goals: Sequence[str], alphabet: Sequence[str]) -> Scripts:
        """Executed from left to right, an edit lies at its goal index."""
        counts: list[int] = []
        start: list[int] = []
        new_start: list[int] = []
        # A few hundred at a time: the tuples are gone before the garbage collector takes an interest in them.
        for at in range(0, len(states), 256):
            found = list(map(self.operations, states[at : at + 256], goals[at : at + 256]))
            counts += map(len, found)
            if edits := list(chain.from_iterable(found)):
                _, sources, targets = zip(*edits, strict=True)
                start += sources
                new_start += targets
        offsets = np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))])
        begin, new = np.array(start, dtype=np.int64), np.array(new_start, dtype=np.int64)
        # How much longer the goal is up to here than the source: +1 after an insertion, -1 after a deletion.
        ahead = new - begin
        after = np.append(ahead[1:], 0)
        ends = offsets[1:][np.diff(offsets) > 0] - 1
        lengths = [np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) for texts in (states, goals)]
        after[ends] = (lengths[1] - lengths[0])[np.diff(offsets) > 0]
        grown = after[: len(ahead)] - ahead
        return Scripts(offsets, begin, begin + (grown <= 0), new, new + (grown >= 0))


def _levenshtein() -> Metric:
    from Levenshtein import editops

    return EditOperations("levenshtein", _versions("python-Levenshtein", "rapidfuzz"), editops)


def _lcs() -> Metric:
    """Insert and delete only: what stays is a longest common subsequence."""
    from rapidfuzz.distance import Indel

    def operations(state: str, goal: str) -> list[tuple[str, int, int]]:
        return Indel.editops(state, goal).as_list()  # type: ignore[return-value]

    return EditOperations("lcs", _versions("rapidfuzz"), operations)


class Custom:
    """A metric made of a plain function (state, goal) -> splices, checked on every pair that it is given."""

    def __init__(
        self, name: str, function: Callable[[Tokens, Tokens], Iterable[Splice]], backend: dict[str, str]
    ) -> None:
        self.name, self.function, self.backend = name, function, backend

    def scripts(self, states: Sequence[str], goals: Sequence[str], alphabet: Sequence[str]) -> Scripts:
        """Call the function for each pair; an error shows the pair."""
        tokens = {character(index): token for index, token in enumerate(alphabet)}
        edits: list[tuple[int, int, int, int]] = []
        offsets = [0]
        for state, goal in zip(states, goals, strict=True):
            edits += self._edits(tuple(map(tokens.__getitem__, state)), tuple(map(tokens.__getitem__, goal)))
            offsets.append(len(edits))
        columns = np.array(edits, dtype=np.int64).reshape(-1, 4).T
        return Scripts(np.array(offsets, dtype=np.int64), *columns)

    def _edits(self, state: Tokens, goal: Tokens) -> list[tuple[int, int, int, int]]:
        edits, grown, behind, reached = [], 0, 0, state
        try:
            for splice in self.function(state, goal):
                if splice.start < behind:
                    raise InvalidEdit(f"{splice} is not to the right of the edit before it")
                reached = splice.apply(reached)
                behind = splice.start + len(splice.new)
                begin = splice.start - grown
                edits.append((begin, begin + splice.stop - splice.start, splice.start, behind))
                grown += splice.growth
        except AegenError as error:
            raise InvalidEdit(f"metric {self.name}: {error}, for {' '.join(state)!r} -> {' '.join(goal)!r}") from None
        if reached != goal:
            pair = f"{' '.join(state)!r} into {' '.join(reached)!r}, not {' '.join(goal)!r}"
            raise InvalidEdit(f"metric {self.name}: its edits turn {pair}")
        return edits


def span(state: Tokens, goal: Tokens) -> list[Splice]:
    """The paper's SELF: from left to right, each parenthesis becomes the goal's token at its place.

    >>> span(("(", "2", "+", "2", ")", "=", "4"), ("4", "=", "4"))
    [Splice(start=0, stop=5, new=('4',))]
    """
    found = []
    while "(" in state:
        start = state.index("(")
        if ")" not in state[start:] or start >= len(goal):
            raise InvalidEdit("a parenthesis that is not closed or has no token in the goal")
        splice = Splice(start, state.index(")", start) + 1, (goal[start],))
        found.append(splice)
        state = splice.apply(state)
    return found


def _versions(*packages: str) -> dict[str, str]:
    return {package: version(package) for package in packages}


METRICS: dict[str, Callable[[], Metric]] = {
    "levenshtein": _levenshtein,
    "lcs": _lcs,
    "span": lambda: Custom("span", span, {}),
}


def load_metric(name: str) -> Metric:
    """A metric by its name, by an entry point of the group ``aegen.metrics``, or as ``package.module:function``.

    >>> load_metric("lcs").name
    'lcs'
    """
    if name in METRICS:
        return METRICS[name]()
    for found in entry_points(group=ENTRY_POINTS, name=name):
        return Custom(name, found.load(), _backend(found.value))
    module, _, function = name.partition(":")
    if not function:
        raise InvalidSpec(f"metric={name}: expected one of {', '.join(METRICS)}, or package.module:function")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # a module beside the user, as `python -m` would find it
    try:
        return Custom(name, getattr(import_module(module), function), _backend(module))
    except (ImportError, AttributeError) as error:
        raise InvalidSpec(f"metric={name}: {error}") from None


def _backend(module: str) -> dict[str, str]:
    """The version of the package that a user's metric comes from, where it has one."""
    package = module.partition(":")[0].partition(".")[0]
    try:
        return _versions(package)
    except PackageNotFoundError:
        return {package: "unknown"}
