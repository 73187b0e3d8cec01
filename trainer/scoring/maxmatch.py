"""MaxMatch (Dahlmeier and Ng, 2012): precision, recall and F0.5 of corrected sentences against annotators' edits.

How a system came from the source to its output is unknown, so it is read in the way that is best for it. All shortest
alignments of the two, with a replacement that costs as much as one insertion or as two, form a lattice; a phrase edit
is a path through it with a change and at most two unchanged words. Of all ways to read the output as such edits and
unchanged words we take one with the most edits in common with the annotator, and among these with the fewest edits.
Each sentence counts against the annotator with whom the F0.5 of all sentences so far is highest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainer.data.m2 import Annotated, Edit, Words

UNCHANGED = 2  # words that a phrase edit may leave as they are
KEEP, REPLACE, DELETE, INSERT = 1, 2, 4, 8  # arcs of the lattice, as bits
STEPS = ((KEEP, 1, 1), (REPLACE, 1, 1), (DELETE, 1, 0), (INSERT, 0, 1))
OUTSIDE = 0  # of all edits; 1 + k is inside one with k unchanged words so far

Cell = tuple[int, int]  # words read of the source and of the output
Lattice = dict[Cell, int]  # the arcs that leave each cell


class Match(NamedTuple):
    """An output, read as edits of its source."""

    correct: tuple[Edit, ...]  # of the annotator
    proposed: tuple[Edit, ...]


def lattice(source: Words, output: Words) -> Lattice:
    """All shortest alignments: with replacements that cost one, and with replacements that cost two."""
    arcs: Lattice = {(len(source), len(output)): 0}
    for price in (1, 2):
        _add_shortest(arcs, source, output, price)
    return arcs


def _add_shortest(arcs: Lattice, source: Words, output: Words, price: int) -> None:
    """Add the arcs of all shortest alignments, found from their end; a cell that is not on one costs nothing."""
    band, rows = max(1, abs(len(source) - len(output))), [[0]]
    while True:
        rows = _distances(source, output, price, band)
        end = rows[-1][len(output) - len(source) + band]
        if end <= band:  # a path that leaves the band is longer than this
            break
        band *= 2
    todo = [(len(source), len(output))]
    seen = set(todo)
    while todo:
        i, j = todo.pop()
        cost = rows[i][j - i + band]
        same = i and j and source[i - 1] == output[j - 1]
        for arc, down, right in STEPS:
            before = (i - down, j - right)
            if before[0] < 0 or before[1] < 0 or (arc == KEEP and not same) or (arc == REPLACE and same):
                continue
            offset = before[1] - before[0] + band
            more = 0 if arc == KEEP else price if arc == REPLACE else 1
            if not 0 <= offset <= 2 * band or rows[before[0]][offset] + more != cost:
                continue
            arcs[before] = arcs.get(before, 0) | arc
            if before not in seen:
                seen.add(before)
                todo.append(before)


def _distances(source: Words, output: Words, price: int, band: int) -> list[list[int]]:
    """Edit distances of prefixes: row i holds those of i source words and i - band … i + band words of the output."""
    far = len(source) + len(output) + 1
    width = 2 * band + 1
    above = [offset - band if band <= offset <= band + len(output) else far for offset in range(width)]
    rows = [above]
    for i, word in enumerate(source, 1):
        row = [far] * width
        left = far
        for offset in range(max(0, band - i), min(width, len(output) - i + band + 1)):
            j = i + offset - band
            best = left + 1
            if offset + 1 < width and above[offset + 1] + 1 < best:
                best = above[offset + 1] + 1
            if j:
                diagonal = above[offset] if output[j - 1] == word else above[offset] + price
                best = min(best, diagonal)
            row[offset] = left = best
        rows.append(row)
        above = row
    return rows


def match(source: Words, output: Words, gold: Sequence[Edit] = (), unchanged: int = UNCHANGED) -> Match:
    """The output as edits of the source: as many of ``gold`` as can be, then as few as can be.

    >>> gold = [Edit(1, 2, (("like",),)), Edit(3, 3, (("very", "much"),))]
    >>> match(tuple("I likes it .".split()), tuple("I like it much .".split()), gold).correct
    (Edit(start=1, stop=2, corrections=(('like',),), type=''),)
    """
    if source == output:
        return Match((), ())
    arcs = lattice(source, output)
    return _Search(source, output, arcs, sorted(set(gold)), unchanged).best()


def edits_between(source: Words, target: Words) -> tuple[Edit, ...]:
    """What an annotator would have marked who wrote the target: neighbouring changes are one edit.

    >>> [(edit.start, edit.stop, *edit.corrections) for edit in edits_between(tuple("abcd"), tuple("xycdz"))]
    [(0, 2, ('x', 'y')), (4, 4, ('z',))]
    """
    return match(source, target, unchanged=0).proposed


def _cheapest(arcs: Lattice, begin: Cell, end: Cell, limit: int) -> bool:
    """Whether a path through the lattice has at most so many unchanged words."""
    kept = {begin: 0}
    for i in range(begin[0], end[0] + 1):
        for j in range(begin[1], end[1] + 1):
            here = kept.get((i, j))
            if here is None:
                continue
            there = arcs.get((i, j), 0)
            for arc, down, right in STEPS:
                after = (i + down, j + right)
                cost = here + (arc == KEEP)
                if there & arc and cost <= kept.get(after, limit):
                    kept[after] = cost
    return end in kept


class _Way(NamedTuple):
    """The best way to a state of the search."""

    score: int
    cell: Cell  # before
    state: int  # before
    gold: Edit | None = None


class _Search:
    """The best path, cell by cell: a state is where we are (in an edit or not) and which insertions were used here.

    One insertion of the annotator may stand at a place where the output has the same words twice; it counts once.
    """

    def __init__(self, source: Words, output: Words, arcs: Lattice, gold: Sequence[Edit], unchanged: int) -> None:
        self.source, self.output, self.arcs = source, output, arcs
        self.modes = unchanged + 2
        self.unit = len(source) + len(output) + 1  # what a match is worth: more than all edits cost
        self.gold: dict[int, list[Edit]] = defaultdict(list)
        for edit in gold:
            self.gold[edit.start].append(edit)
        self.ways: dict[Cell, dict[int, _Way]] = defaultdict(dict)
        self.unchanged = unchanged

    def best(self) -> Match:
        start, end = (0, 0), (len(self.source), len(self.output))
        self.ways[start][OUTSIDE] = _Way(0, start, OUTSIDE)
        for cell in sorted(self.arcs):
            self._leave_edits(cell)
            if cell != end:
                self._follow_gold(cell)
                self._follow_arcs(cell)
        state = max((s for s in self.ways[end] if s % self.modes == OUTSIDE), key=lambda s: self.ways[end][s].score)
        return self._read(end, state)

    def _reach(self, cell: Cell, state: int, way: _Way) -> None:
        ways = self.ways[cell]
        if state not in ways or way.score > ways[state].score:
            ways[state] = way

    def _leave_edits(self, cell: Cell) -> None:
        """An edit may end in every cell."""
        for state, way in list(self.ways[cell].items()):
            if state % self.modes != OUTSIDE:
                self._reach(cell, state - state % self.modes, _Way(way.score, cell, state))

    def _follow_gold(self, cell: Cell) -> None:
        i, j = cell
        for number, edit in enumerate(self.gold.get(i, ())):
            for words in edit.corrections:
                after = (edit.stop, j + len(words))
                if self.output[j : after[1]] != words or after not in self.arcs:
                    continue
                if self.source[i : edit.stop] == words or not _cheapest(self.arcs, cell, after, self.unchanged):
                    continue
                for state, way in list(self.ways[cell].items()):
                    used = state // self.modes
                    if state % self.modes != OUTSIDE or (edit.stop == i and used > number):
                        continue
                    reached = (number + 1) * self.modes if edit.stop == i else OUTSIDE
                    self._reach(after, reached, _Way(way.score + self.unit - 1, cell, state, edit))

    def _follow_arcs(self, cell: Cell) -> None:
        arcs = self.arcs[cell]
        for state, (score, *_) in list(self.ways[cell].items()):
            mode = state % self.modes
            used = state - mode
            for arc, down, right in STEPS:
                if not arcs & arc:
                    continue
                reached = 0 if down else used
                cost = 0
                if arc != KEEP:
                    reached += mode or 1
                    cost = mode == OUTSIDE
                elif mode != OUTSIDE:
                    if mode + 1 == self.modes:
                        continue
                    reached += mode + 1
                self._reach((cell[0] + down, cell[1] + right), reached, _Way(score - cost, cell, state))

    def _read(self, cell: Cell, state: int) -> Match:
        """Go back from the end."""
        correct: list[Edit] = []
        proposed: list[Edit] = []
        ended: Cell | None = None
        while cell != (0, 0) or state != OUTSIDE:
            way = self.ways[cell][state]
            mode, before = state % self.modes, way.state % self.modes
            if way.gold:
                correct.append(way.gold)
                proposed.append(self._edit(way.cell, cell))
            elif way.cell == cell:
                ended = cell
            elif mode != OUTSIDE and before == OUTSIDE:
                assert ended is not None
                proposed.append(self._edit(way.cell, ended))
            cell, state = way.cell, way.state
        return Match(tuple(correct[::-1]), tuple(proposed[::-1]))

    def _edit(self, begin: Cell, end: Cell) -> Edit:
        return Edit(begin[0], end[0], (self.output[begin[1] : end[1]],))


@dataclass(frozen=True)
class Counts:
    """Edits that are in both, in the output, and in the annotation."""

    correct: int = 0
    proposed: int = 0
    gold: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.correct + other.correct, self.proposed + other.proposed, self.gold + other.gold)

    @property
    def precision(self) -> float:
        """The share of proposed edits that are correct; 1 if there are none."""
        return self.correct / self.proposed if self.proposed else 1.0

    @property
    def recall(self) -> float:
        """The share of gold edits that were found; 1 if there are none."""
        return self.correct / self.gold if self.gold else 1.0

    @property
    def f(self) -> float:
        """F0.5, in which precision counts twice as much as recall; 1 if there is nothing to find and nothing found.

        >>> Counts(1, 2, 4).f
        0.4166666666666667
        """
        all_edits = self.gold + 4 * self.proposed
        return 5 * self.correct / all_edits if all_edits else 1.0

    def to_json(self) -> dict[str, Any]:
        """In percent."""
        shares = {"precision": self.precision, "recall": self.recall, "f0.5": self.f}
        return {name: round(100 * share, 2) for name, share in shares.items()} | {
            "correct": self.correct,
            "proposed": self.proposed,
            "gold": self.gold,
        }


@dataclass
class MaxMatch:
    """The score of sentences that are added one by one.

    >>> score = MaxMatch()
    >>> score.add(Annotated(("I", "likes", "it"), ((Edit(1, 2, (("like",),)),),)), ("I", "like", "it"))
    >>> score.total.f
    1.0
    """

    sentences: int = 0
    total: Counts = Counts()
    kinds: dict[str, Counts] = field(default_factory=dict)  # of edits: insert, delete, replace
    found: Counter[str] = field(default_factory=Counter)  # correct edits by the annotator's type
    types: Counter[str] = field(default_factory=Counter)  # gold edits by the annotator's type

    def add(self, annotated: Annotated, output: Words) -> None:
        """Count one sentence against the annotator with whom the score of all so far is highest."""
        options = []
        for marked in annotated.annotators:
            gold = sorted({edit for edit in marked if changes(annotated.source, edit)})
            matched = match(annotated.source, output, gold)
            counts = Counts(len(matched.correct), len(matched.proposed), len(gold))
            # What comes after F0.5 decides between equals, so that the order of annotators does not.
            rank = ((self.total + counts).f, counts.correct, -counts.proposed, -counts.gold, gold)
            options.append((rank, counts, matched))
        (*_, gold), counts, matched = max(options, key=lambda option: option[0])
        self.sentences += 1
        self.total += counts
        for edits, which in ((matched.correct, 0), (matched.proposed, 1), (gold, 2)):
            for edit in edits:
                one = [0, 0, 0]
                one[which] = 1
                self.kinds[edit.kind] = self.kinds.get(edit.kind, Counts()) + Counts(*one)
        self.found.update(edit.type for edit in matched.correct if edit.type)
        self.types.update(edit.type for edit in gold if edit.type)

    def to_json(self) -> dict[str, Any]:
        """All figures, in percent; an output has no types, so that of these there is the recall alone."""
        types = {
            name: {"recall": round(100 * self.found[name] / number, 2), "correct": self.found[name], "gold": number}
            for name, number in sorted(self.types.items(), key=lambda entry: (-entry[1], entry[0]))
        }
        kinds = {name: self.kinds[name].to_json() for name in sorted(self.kinds)}
        return {"sentences": self.sentences, **self.total.to_json(), "kinds": kinds, "types": types}


def changes(source: Words, edit: Edit) -> bool:
    """Whether an edit changes anything; annotators also mark what they cannot correct."""
    return any(words != source[edit.start : edit.stop] for words in edit.corrections)
