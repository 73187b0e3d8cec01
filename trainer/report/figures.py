"""The pictures of a report, as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import isnan
from statistics import mean, stdev
from typing import Any, Literal

from trainer.core.errors import MissingExtra
from trainer.game.outcomes import FAILURES, UNREADABLE
from trainer.report import paper
from trainer.report.collect import Record, Share, Timing
from trainer.report.drawing import (
    BLACK,
    BLUE,
    DARK,
    GREEN,
    HATCHES,
    MARKS,
    ORANGE,
    RED,
    STYLES,
    panels,
    share_legend,
    style_of,
)
from trainer.report.notes import other_sizes
from trainer.report.paper import PAIR
from trainer.report.tables import ORDER, OURS, TA, label

KINDS = ("png", "svg")

Figures = dict[str, tuple[str, dict[str, bytes]]]  # name -> (what one sees, {kind: file})


def draw(records: Sequence[Record], timing: Timing) -> Figures:
    """All figures for which there is something to draw."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtra("matplotlib", "report") from error
    settings = {
        "backend": "agg", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
        "grid.alpha": 0.3, "svg.fonttype": "none", "svg.hashsalt": "aegen", "figure.constrained_layout.use": True,
        "hatch.linewidth": 0.6, "text.parse_math": False,  # a task's name is not a formula
        "legend.frameon": False, "axes.facecolor": "none",
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), BLACK),
    }  # fmt: skip
    found: Figures = {}
    with mpl.rc_context(settings):
        for name, (caption, artist) in ARTISTS.items():
            figure = artist(records, timing)
            if figure is not None:
                found[name] = (caption, {kind: save(figure, kind) for kind in KINDS})
    return found


def comparable(records: Sequence[Record]) -> list[Record]:
    """What can be compared in one picture: cells without a label, of one split, the test split if there."""
    unlabelled = [record for record in records if not record.label]
    splits = {record.split for record in unlabelled}
    return [record for record in unlabelled if record.split == ("test" if "test" in splits else "validation")]


def save(figure: Any, kind: str) -> bytes:
    """A figure as the bytes of a file, the same every time."""
    file, vector = io.BytesIO(), kind == "svg"
    metadata = {"Date": None} if vector else {"Software": None}
    figure.savefig(file, format=kind, dpi=160, facecolor="none" if vector else "white", metadata=metadata)
    drawn = file.getvalue()
    return drawn.replace(b"</svg>", DARK.encode() + b"</svg>") if vector else drawn


def in_order(tasks: Iterable[str]) -> list[str]:
    """The tasks in the paper's order, then others."""
    found = set(tasks)
    return [task for task in paper.TASKS if task in found] + sorted(found - {*paper.TASKS})


def tasks_of(records: Sequence[Record]) -> list[str]:
    """The tasks of some cells."""
    return in_order(record.task for record in records)


def methods_of(records: Sequence[Record]) -> list[tuple[str, bool]]:
    """The methods that were run, in the order of the tables."""
    there = {(record.model, record.ta) for record in records}
    return sorted(there, key=lambda m: (m[1], ORDER.index(m[0]) if m[0] in ORDER else len(ORDER), m[0]))


def minutes(records: Sequence[Record]) -> Any:
    """One panel for each task that a model of ours was run on, with what else was run on it."""
    usable = [r for r in records if r.usual and sum(epoch.minutes is not None for epoch in r.curve) > 1]
    tasks = tasks_of([record for record in usable if (record.model, record.ta) in OURS])
    if not tasks:
        return None
    usable = [record for record in usable if record.task in tasks]
    figure, axes = panels(1, len(tasks), 3.4, 3.0)
    for here, task in zip(axes[0], tasks, strict=True):
        for number, (model, ta) in enumerate(methods_of(usable)):
            runs = [r for r in usable if (r.task, r.model, r.ta) == (task, model, ta)]
            for place, run in enumerate(sorted(runs, key=lambda r: r.seed)):
                points = [
                    (epoch.minutes, epoch.texts) for epoch in run.curve if None not in (epoch.minutes, epoch.texts)
                ]
                x, y = zip(*points, strict=True) if points else ((), ())
                name = label(model, ta) if not place else None
                here.plot(x, y, label=name, linewidth=1, markersize=3, **style_of(number))
        best = max((row[task, "equation"][0] for row in paper.MAIN.values() if (task, "equation") in row), default=None)
        if best is not None and not other_sizes(usable, task):
            here.axhline(best, color=BLACK, linestyle=":", linewidth=1)
        here.set_title(task.upper())
        here.set_xlabel("minutes of training")
        here.set_xlim(left=0)
    axes[0][0].set_ylabel("right in validation, %")
    share_legend(figure, axes)
    return figure


def curves(records: Sequence[Record]) -> Any:
    """One panel for each task and model: AR* and NAR* where they were run, as in the paper."""
    usable = [record for record in records if record.usual and len(record.curve) > 1]  # a point is no curve
    models = [m for m in PAIR if any(r.model == m for r in usable)]
    models = models or list(dict.fromkeys(record.model for record in usable))[:2]
    tasks = tasks_of([record for record in usable if record.model in models])
    if not tasks:
        return None
    figure, axes = panels(len(tasks), len(models), 3.4, 2.2)
    for row, task in enumerate(tasks):
        for column, model in enumerate(models):
            here = axes[row][column]
            runs = [r for r in usable if (r.task, r.model) == (task, model)]
            if not runs:
                here.set_axis_off()
                continue
            run = min(runs, key=lambda r: (r.ta, r.seed))
            series = {
                "actions, training": [epoch.trained for epoch in run.curve],
                "actions, validation": [epoch.actions for epoch in run.curve],
                "texts, validation": [epoch.texts for epoch in run.curve],
            }
            for number, ((name, values), colour) in enumerate(zip(series.items(), (RED, BLUE, ORANGE), strict=True)):
                points = [(epoch, value) for epoch, value in enumerate(values) if value is not None]
                x, y = zip(*points, strict=True) if points else ((), ())
                here.plot(x, y, STYLES[number], color=colour, label=name, marker=MARKS[number], markersize=3)
            kept = run.best_epoch >= 0  # else practice has made nothing better
            if kept:
                here.axvline(run.best_epoch, color=GREEN, linestyle=(0, (4, 3)), label="best epoch")
            keeps = f"epoch {run.best_epoch}" if kept else "what it began with"
            here.set(title=f"{task.upper()}, {label(model, run.ta)}, keeps {keeps}")
            here.set(ylim=(0, 101), xlim=(-0.3, max(len(run.curve) - 0.7, 1)), xlabel="epoch", ylabel="accuracy, %")
            here.xaxis.get_major_locator().set_params(integer=True)
    share_legend(figure, axes, columns=2)
    return figure


def times(timing: Timing) -> Any:
    """Bars for both agents, with the ratio above."""
    if not timing:
        return None
    figure, axes = panels(1, 2, 3.6, 2.8)
    tasks = in_order(timing)
    for here, what, title in zip(axes[0], ("action", "text"), ("per action", "per returned text"), strict=True):
        highest = 0.0
        for number, (model, colour) in enumerate(zip(PAIR, (ORANGE, BLUE), strict=True)):
            heights = [getattr(timing[task].agents[model], what) for task in tasks]
            places = [index + (number - 0.5) * 0.38 for index in range(len(tasks))]
            here.bar(places, heights, 0.36, color=colour, hatch=HATCHES[number], edgecolor="white", label=label(model))
            highest = max(highest, *heights)
        for index, task in enumerate(tasks):
            top = max(getattr(found, what) for found in timing[task].agents.values())
            here.annotate(
                f"{getattr(timing[task].ratio, what):.2f}×",
                (index, top),
                textcoords="offset points",
                xytext=(0, 3),
                ha="center",
            )
        here.set(title=title, ylabel="µs", ylim=(0, 1.18 * highest))
        here.set_xticks(range(len(tasks)), [task.upper() for task in tasks])
        here.legend(fontsize=7)
    return figure


def replacements(records: Sequence[Record]) -> Any:
    """Bars in two groups: games whose expert replaces, and the others."""
    cells = [r for r in records if (r.task, r.model) == (paper.REPLACE_TASK, paper.REPLACE_MODEL) and r.by_replace]
    if not {record.metric for record in cells} >= paper.REPLACE_METRICS.keys():
        return None
    figure, axes = panels(1, 1, 5.2, 3.0)
    here = axes[0][0]
    groups: tuple[Literal["with", "without"], ...] = ("without", "with")
    colours = dict(zip(paper.REPLACE_METRICS, (ORANGE, BLUE), strict=True))
    for number, (ta, metric) in enumerate(product((False, True), paper.REPLACE_METRICS)):
        runs = [record.by_replace for record in cells if (record.metric, record.ta) == (metric, ta)]
        for index, group in enumerate(groups):
            values = [100 * run[group][0] / run[group][1] for run in runs if group in run]
            if not values:
                continue
            name = paper.REPLACE_METRICS[metric] + (TA if ta else "")
            place = index + (number - 1.5) * 0.2
            spread = stdev(values) if len(values) > 1 else 0
            here.bar(
                place, mean(values), 0.18, yerr=spread or None, color=colours[metric],
                hatch="//" if ta else "", edgecolor="white", label=name if index == 0 else None, capsize=2,
            )  # fmt: skip
            here.annotate(
                f"{mean(values):.1f}",
                (place, mean(values)),
                textcoords="offset points",
                xytext=(0, 3),
                ha="center",
                fontsize=7,
            )
    here.set_xticks(range(2), ["w/o REPLACE", "w/ REPLACE"])
    here.set(ylabel="equation accuracy, %")
    here.margins(y=0.12)
    share_legend(figure, axes)
    return figure


def lengths(records: Sequence[Record]) -> Any:
    """A line for each method, a panel for each task."""
    usable = [record for record in records if record.usual and record.by_length]
    if not usable:
        return None
    tasks, methods = tasks_of(usable), methods_of(usable)
    figure, axes = panels(1, len(tasks), 3.4, 3.2)
    for here, task in zip(axes[0], tasks, strict=True):
        for number, method in enumerate(methods):
            runs = [r.by_length for r in usable if r.task == task and (r.model, r.ta) == method]
            points = sorted({length for run in runs for length in run})
            if not points:
                continue
            found = [[run[x][0] / run[x][1] for run in runs if x in run] for x in points]
            means = [100 * mean(values) for values in found]
            here.plot(points, means, markersize=4, label=label(*method), **style_of(number))
        games = games_by_length([r.by_length for r in usable if r.task == task])
        here.set_xticks([*games], [f"{length}\n({count:,})" for length, count in games.items()])
        here.set(title=task.upper(), xlabel="steps of the expert (games)", ylabel="right, %", ylim=(0, 101))
    share_legend(figure, axes, columns=6)
    return figure


def games_by_length(found: Sequence[dict[int, Share]]) -> dict[int, int]:
    """How many games a cell has of each length."""
    lengths_there = sorted({length for run in found for length in run})
    return {length: max(run[length][1] for run in found if length in run) for length in lengths_there}


def failures(records: Sequence[Record]) -> Any:
    """For each task, methods by what went wrong, as a table of shades with the numbers written in."""
    usable = [record for record in records if record.usual and record.games]
    if not usable:
        return None
    tasks, methods = tasks_of(usable), methods_of(usable)
    if not any(record.failures for record in usable):
        return None
    kinds = [kind for kind in FAILURES if kind != UNREADABLE or any(kind in record.failures for record in usable)]
    figure, axes = panels(1, len(tasks), 1.2 + 0.62 * len(kinds), 1.2 + 0.26 * len(methods))
    for column, (here, task) in enumerate(zip(axes[0], tasks, strict=True)):
        grid = []
        for method in methods:
            runs = [r for r in usable if r.task == task and (r.model, r.ta) == method]
            shares = [[100 * r.failures.get(kind, 0) / r.games for r in runs] for kind in kinds]
            grid.append([mean(values) if values else float("nan") for values in shares])
        shades = here.imshow(grid, cmap="cividis", vmin=0, vmax=60, aspect="auto")
        for y, line in enumerate(grid):
            for x, share in enumerate(line):
                if not isnan(share):  # nothing was run there
                    here.text(
                        x,
                        y,
                        f"{share:.1f}",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="black" if share > 35 else "white",
                    )
        here.set_xticks(range(len(kinds)), kinds, rotation=35, ha="right", fontsize=7)
        here.set_yticks(
            range(len(methods)), [label(*m) for m in methods] if not column else [""] * len(methods), fontsize=7
        )
        here.set_title(task.upper())
        here.grid(visible=False)
    figure.colorbar(shades, ax=axes[0][-1], extend="max", label="% of all games")
    return figure


def amounts(records: Sequence[Record]) -> Any:
    """One panel for each task that was run with several numbers of pairs, else of one size; one line for each
    method."""
    usable = [r for r in records if r.usual and r.split == "test" and "equation" in r.scores]
    sized = [record for record in usable if {*record.size} >= {"n", "l", "d"}]
    groups: dict[str, dict[str, list[Record]]] = {}  # panel, method but for its label
    for record in sorted(sized, key=lambda record: tasks_of(sized).index(record.task)):
        here = groups.setdefault(f"{record.task.upper()}, N = {record.size['n']}, L = {record.size['l']}", {})
        method = label(record.model, record.ta) + (", practised" if record.practice else "")
        here.setdefault(method, []).append(record)
    grown: dict[str, dict[str, dict[int, list[float]]]] = {}  # panel, method, number of pairs
    for panel, methods in groups.items():
        if len({record.size["d"] for method in methods.values() for record in method}) > 1:
            for method, alike in methods.items():
                for record in alike:
                    line = grown.setdefault(panel, {}).setdefault(method + further(record, alike), {})
                    line.setdefault(record.size["d"], []).append(record.scores["equation"])
    if not grown:
        return None
    figure, axes = panels(1, len(grown), 3.4, 3.0)
    names = list(dict.fromkeys(name for lines in grown.values() for name in lines))
    for here, (task, lines) in zip(axes[0], grown.items(), strict=True):
        for name, found in lines.items():
            points = sorted((pairs, mean(scores)) for pairs, scores in found.items())
            here.plot(*zip(*points, strict=True), label=name, linewidth=1, markersize=4, **style_of(names.index(name)))
        here.set_xscale("log")
        numbers = sorted({pairs for found in lines.values() for pairs in found})
        here.set_xticks(numbers, [f"{number:,}" for number in numbers])  # not as formulas
        here.minorticks_off()
        here.set_title(task)
        here.set_xlabel("pairs (D)")
    axes[0][0].set_ylabel("equations right in test, %")
    share_legend(figure, axes)
    return figure


def further(record: Record, others: Sequence[Record]) -> str:
    """What tells a record from those of its method with as many pairs: the words of its label that are no size.

    Nothing, if no number of pairs has two labels: then labels name the numbers.
    """
    if len({(one.label, one.size["d"]) for one in others}) == len({one.size["d"] for one in others}):
        return ""
    sizes = {f"{name}{number}" for name, number in record.size.items()} | ({"practised"} if record.practice else set())
    rest = " ".join(word for word in record.label.split() if word not in sizes)
    return f", {rest}" if rest else ""


# The figures of a report in order: caption, and function that draws it.
ARTISTS: dict[str, tuple[str, Callable[[Sequence[Record], Timing], Any]]] = {
    "learning-curves": (
        "Learning curves: action accuracy in training and validation, accuracy of returned texts in validation; "
        "the dashed line marks the epoch that early stopping keeps.",
        lambda records, timing: curves(comparable(records)),
    ),
    "minutes": (
        "Accuracy in validation against minutes of training; the dotted line is the paper's best "
        "with data of the same size.",
        lambda records, timing: minutes(comparable(records)),
    ),
    "amount-of-data": (
        "Accuracy on the test split against the number of pairs (D), after imitation and after practice.",
        lambda records, timing: amounts(records),
    ),
    "inference-time": (
        "Inference time of AR* and NAR*, measured in turns in one run on a CPU: for an action and for a returned text; "
        "above the bars, how many times longer AR* takes.",
        lambda records, timing: times(timing),
    ),
    f"metrics-{paper.REPLACE_TASK}": (
        f"{label(paper.REPLACE_MODEL)} on {paper.REPLACE_TASK.upper()}, trained with "
        f"{' and '.join(paper.REPLACE_METRICS.values())} edits, by whether the task's own expert replaces.",
        lambda records, timing: replacements(comparable(records)),
    ),
    "by-length": (
        "Accuracy by the length of the expert's trajectory (DONE included).",
        lambda records, timing: lengths(comparable(records)),
    ),
    "failures": (
        "The first mistake of each wrong game, in percent of all games.",
        lambda records, timing: failures(comparable(records)),
    ),
}
