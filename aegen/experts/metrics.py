"""Edit metrics: from a state and its goal to the splices that lead there, left to right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from itertools import chain, pairwise
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from aegen.columns.ragged import Ragged
from aegen.core.edits import Splice
from aegen.core.errors import AegenError, InvalidEdit, InvalidSpec
from aegen.core.types import Tokens
from aegen.experts.scripts import Scripts, forced_scripts

ENTRY_POINTS = "aegen.metrics"
EditOps = Callable[[str, str], list[tuple[str, int, int]]]
FORCED = 64  # texts up to this length are looked at for scripts that are forced


class Metric(Protocol):
    """Finds edit scripts; ``backend`` names the packages, with versions, that decide among equally short ones."""

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> dict[str, str]: ...

    @property
    def shortest(self) -> bool:
        """Whether its scripts are the shortest ones of single tokens, so that they need not be asked for if unique."""
        ...

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """The script of one pair: splices that are applied one after the other."""
        ...

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """The scripts of many pairs, row by row; ids stand for the tokens of ``alphabet``."""
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
        """Where only one script is possible the library need not be asked."""
        if max(states.lengths.max(initial=0), goals.lengths.max(initial=0)) > FORCED:
            return self.ask(states, goals)
        known, scripts = forced_scripts(states, goals)
        (others,) = np.nonzero(np.bincount(known, minlength=len(states)) == 0)
        asked = self.ask(states.rows(others), goals.rows(others))
        return Scripts.merged(len(states), [(known, scripts), (others, asked)])

    def ask(self, states: Ragged, goals: Ragged) -> Scripts:
        """The library's answer for every row."""
        left, right = to_strings(states), to_strings(goals)
        counts: list[int] = []
        start: list[int] = []
        new_start: list[int] = []
        # A few hundred at a time: the tuples are gone before the garbage collector takes an interest in them.
        for at in range(0, len(left), 256):
            found = list(map(self.operations, left[at : at + 256], right[at : at + 256]))
            counts += map(len, found)
            if edits := list(chain.from_iterable(found)):
                _, sources, targets = zip(*edits, strict=True)
                start += sources
                new_start += targets
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.array(counts, dtype=np.int64))])
        begin, new = np.array(start, dtype=np.int64), np.array(new_start, dtype=np.int64)
        # How much longer the goal is than the source up to here: by one more after an insertion, by one less after a
        # deletion.
        ahead = new - begin
        after = np.append(ahead[1:], 0)
        edited = np.diff(offsets) > 0
        after[offsets[1:][edited] - 1] = (goals.lengths - states.lengths)[edited]
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

    shortest = False

    def __init__(
        self, name: str, function: Callable[[Tokens, Tokens], Iterable[Splice]], backend: dict[str, str]
    ) -> None:
        self.name, self.function, self.backend = name, function, backend

    def splices(self, state: Tokens, goal: Tokens) -> list[Splice]:
        """What the function says; an error shows the pair."""
        found, behind, reached = [], 0, state
        pair = f"for {' '.join(state)!r} -> {' '.join(goal)!r}"
        try:
            for splice in self.function(state, goal):
                if not isinstance(splice, Splice) or not isinstance(splice.new, tuple):
                    raise InvalidEdit(f"{splice!r} is no Splice with a tuple of tokens")
                if splice.start < behind:
                    raise InvalidEdit(f"{splice} is not to the right of the edit before it")
                reached = splice.apply(reached)
                behind = splice.start + len(splice.new)
                found.append(splice)
        except Exception as error:  # whatever a stranger's function does, the user wants to know for which pair
            what = str(error) if isinstance(error, AegenError) else f"{type(error).__name__}: {error}"
            raise InvalidEdit(f"metric {self.name}: {what}, {pair}") from None
        if reached != goal:
            raise InvalidEdit(f"metric {self.name}: its edits end at {' '.join(reached)!r}, {pair}")
        return found

    def scripts(self, states: Ragged, goals: Ragged, alphabet: Sequence[str]) -> Scripts:
        """Call the function for each pair."""
        edits: list[tuple[int, int, int, int]] = []
        offsets = [0]
        for state, goal in zip(states.tuples(alphabet), goals.tuples(alphabet), strict=True):
            grown = 0
            for splice in self.splices(state, goal):
                start = splice.start - grown
                edits.append((start, start + splice.stop - splice.start, splice.start, splice.start + len(splice.new)))
                grown += splice.growth
            offsets.append(len(edits))
        columns = np.array(edits, dtype=np.int64).reshape(-1, 4).T
        return Scripts(np.array(offsets, dtype=np.int64), *columns)


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
