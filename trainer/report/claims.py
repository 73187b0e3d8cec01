"""What the paper claims of its agents, and whether it holds among the cells that were run.

A claim is a list of comparisons; each says of two figures which one the paper has ahead. A comparison whose cells were
not run has no figures and counts as open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from trainer.report.collect import Record, Timing
from trainer.report.paper import (
    ABLATION_METRIC,
    ABLATION_TASK,
    AGENTS,
    DESIGN_HEADS,
    METRIC_DESIGNS,
    METRIC_HEADS,
    PAIR,
    REPLACE_MODEL,
    REPLACE_TASK,
    RIVALS,
    TASKS,
)
from trainer.report.tables import label


@dataclass(frozen=True)
class Comparison:
    """Two figures, the first of which should be larger; None: not run."""

    name: str
    ahead: float | None
    behind: float | None
    unit: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether it is as the paper says."""
        return None if self.ahead is None or self.behind is None else self.ahead > self.behind

    def __str__(self) -> str:
        if self.ahead is None or self.behind is None:
            return self.name.rstrip(":")
        return f"{self.name} {self.ahead:.2f} against {self.behind:.2f}{self.unit}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what speaks for and against it here."""

    text: str
    comparisons: tuple[Comparison, ...]

    @property
    def verdict(self) -> str:
        """In how many of the comparisons that were run it holds.

        >>> Claim("TA helps", (Comparison("AOR, AR:", 2.0, 1.0), Comparison("AES, AR:", None, None))).verdict
        '1 of 1, 1 not run'
        """
        found = [one.holds for one in self.comparisons]
        left = found.count(None)
        return f"{found.count(True)} of {len(found) - left}" + (f", {left} not run" if left else "")

    @property
    def details(self) -> list[str]:
        """Its figures: those as in the paper, the others, and what was not run.

        >>> Claim("TA helps", (Comparison("AOR, AR:", 2.0, 1.0), Comparison("AES, AR:", None, None))).details
        ['As in the paper: AOR, AR: 2.00 against 1.00.', 'Not run: AES, AR.']
        """
        kinds = {True: "As in the paper", False: "Not so here", None: "Not run"}
        found = {words: [str(one) for one in self.comparisons if one.holds is holds] for holds, words in kinds.items()}
        return [f"{words}: {'; '.join(several)}." for words, several in found.items() if several]


class Accuracies:
    """Mean equation accuracy in test of the cells that were run."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = [one for one in records if one.split == "test" and not one.label]

    def of(self, task: str, model: str, ta: bool, metric: str = "", design: str = "") -> float | None:
        """The figure of a row; without a metric and a design, those that are usual for the task."""
        found = [
            one.scores["equation"]
            for one in self.records
            if (one.task, one.model, one.ta) == (task, model, ta)
            and ((one.metric, one.design) == (metric, design) if metric else one.usual)
            and "equation" in one.scores
        ]
        return mean(found) if found else None

    def by_replace(self, metric: str, ta: bool, group: str) -> float | None:
        """Of the games whose expert replaces, or does not, the share that is right."""
        found = [
            one.by_replace[group]
            for one in self.records
            if (one.task, one.model, one.ta, one.metric) == (REPLACE_TASK, REPLACE_MODEL, ta, metric)
            and group in one.by_replace
        ]
        return mean(100 * right / games for right, games in found) if found else None


def claims(records: Sequence[Record], timing: Timing) -> list[Claim]:
    """The paper's claims in its order."""
    figures = Accuracies(records)
    made = (
        Claim("D2 (NAR*) is the best of the agents", tuple(_best(figures))),
        Claim("TA helps every agent", tuple(_helped(figures))),
        Claim("On AES a deeper encoder takes AR* far ahead of AR", tuple(_deeper(figures))),
        Claim("D2 is ahead of the other decoders", tuple(_decoders(figures))),
        Claim("Another order of the action's tokens costs AR* more than NAR*", tuple(_designs(figures))),
        Claim("On AES spans are far ahead of single tokens", tuple(_metrics(figures))),
        Claim(
            "On AEC LCS is ahead where nothing is replaced, Levenshtein where something is", tuple(_replace(figures))
        ),
        Claim("NAR* needs less time than AR*", tuple(_times(timing))),
    )
    return [claim for claim in made if any(one.holds is not None for one in claim.comparisons)]


def _best(figures: Accuracies) -> Iterator[Comparison]:
    for task in TASKS:
        for ta in (False, True):
            ours = figures.of(task, PAIR[1], ta)
            for model in AGENTS:
                if model != PAIR[1]:
                    name = f"{task.upper()}, {label(PAIR[1], ta)} and {label(model, ta)}:"
                    yield Comparison(name, ours, figures.of(task, model, ta))


def _helped(figures: Accuracies) -> Iterator[Comparison]:
    for task in TASKS:
        for model in AGENTS:
            name = f"{task.upper()}, {label(model)}:"
            yield Comparison(name, figures.of(task, model, True), figures.of(task, model, False))


def _deeper(figures: Accuracies) -> Iterator[Comparison]:
    for ta in (False, True):
        name = f"{label(PAIR[0], ta)} and {label('ar', ta)}:"
        yield Comparison(name, figures.of(ABLATION_TASK, PAIR[0], ta), figures.of(ABLATION_TASK, "ar", ta))


def _decoders(figures: Accuracies) -> Iterator[Comparison]:
    for task in TASKS:
        for model in RIVALS:
            name = f"{task.upper()}, {label(PAIR[1], True)} and {label(model, True)}:"
            yield Comparison(name, figures.of(task, PAIR[1], True), figures.of(task, model, True))


def _designs(figures: Accuracies) -> Iterator[Comparison]:
    first, *others = DESIGN_HEADS
    for design in others:
        for ta in (False, True):
            losses = []
            for model in PAIR:
                usual, here = (figures.of(ABLATION_TASK, model, ta, ABLATION_METRIC, one) for one in (first, design))
                losses.append(None if usual is None or here is None else usual - here)
            name = f"{DESIGN_HEADS[design].split()[0]}, {label(PAIR[0], ta)} and {label(PAIR[1], ta)} lose"
            yield Comparison(name, losses[0], losses[1], " points")


def _metrics(figures: Accuracies) -> Iterator[Comparison]:
    for model in PAIR:
        pairs = zip(METRIC_HEADS, METRIC_DESIGNS, strict=True)
        spans, tokens = (figures.of(ABLATION_TASK, model, False, *one) for one in pairs)
        yield Comparison(f"{label(model)}:", spans, tokens)


def _replace(figures: Accuracies) -> Iterator[Comparison]:
    for ta in (False, True):
        for group, ahead, behind in (("without", "lcs", "levenshtein"), ("with", "levenshtein", "lcs")):
            name = f"{label(REPLACE_MODEL, ta)}, {group} REPLACE:"
            yield Comparison(name, figures.by_replace(ahead, ta, group), figures.by_replace(behind, ta, group))


def _times(timing: Timing) -> Iterator[Comparison]:
    for task, times in sorted(timing.items()):
        slow, fast = (times.agents[name] for name in PAIR)
        yield Comparison(f"{task.upper()}, an action:", slow.action, fast.action, " µs")
        yield Comparison(f"{task.upper()}, a text:", slow.text, fast.text, " µs")
