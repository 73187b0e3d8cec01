"""Errors to learn from beyond those that are shown: what training's edits undo, done again to other right texts.

How often a word of a right text stood where another was wrong, was missing, or had a needless one before it is counted;
errors are drawn at these rates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from trainer.models.editor.edits import Edit, made

MISSING = -1  # an error that leaves a word out; others are ids of wrong words


class Errors:
    """The rates of errors, by the word of the right text at which they are made."""

    def __init__(self, shown: Iterable[tuple[Sequence[int], Sequence[Edit]]]) -> None:
        """From states and all edits that are left from there on."""
        seen: Counter[int] = Counter()
        wrong: dict[int, Counter[int]] = {}
        needless: dict[int, Counter[int]] = {}
        for state, edits in shown:
            goal, _ = made(state, edits, [True] * len(edits))
            seen.update(goal)
            for edit in edits:
                if edit.new is None and edit.stop - edit.start == 1:
                    if edit.stop < len(state):
                        needless.setdefault(state[edit.stop], Counter())[state[edit.start]] += 1
                elif edit.new is not None and edit.stop - edit.start < 2:
                    old = MISSING if edit.start == edit.stop else state[edit.start]
                    wrong.setdefault(edit.new, Counter())[old] += 1
        self.wrong = {word: choices(counts, seen[word]) for word, counts in wrong.items() if seen[word]}
        self.needless = {word: choices(counts, seen[word]) for word, counts in needless.items() if seen[word]}

    def make(self, goal: Sequence[int], draw: Random) -> tuple[list[int], list[Edit]]:
        """A right text with errors, and the edits that undo them.

        >>> errors = Errors([([4, 6], [Edit(1, 1, 5)])])  # 5 is missing
        >>> errors.make([4, 5, 6], Random(0))
        ([4, 6], [Edit(start=1, stop=1, new=5)])
        """
        state: list[int] = []
        edits: list[Edit] = []
        gap = False  # whether a word is missing here already
        for word in goal:
            extra = chosen(self.needless.get(word), draw.random())
            if extra is not None and not gap:
                edits.append(Edit(len(state), len(state) + 1, None))
                state.append(extra)
            old = chosen(self.wrong.get(word), draw.random())
            at = len(state)
            if old is None or (old == MISSING and gap):
                state.append(word)
                gap = False
            elif old == MISSING:
                edits.append(Edit(at, at, word))
                gap = True
            else:
                edits.append(Edit(at, at + 1, word))
                state.append(old)
                gap = False
        return state, edits


def choices(counts: Counter[int], seen: int) -> list[tuple[float, int]]:
    """What may happen, with the sum of the chances up to it."""
    total, found = 0.0, []
    for which, count in counts.items():
        total += count / seen
        found.append((total, which))
    return found


def chosen(options: list[tuple[float, int]] | None, at: float) -> int | None:
    """Which of them a number from 0 to 1 stands for."""
    return next((which for total, which in options or () if at < total), None)
