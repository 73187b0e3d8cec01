"""Sentences of a report: below its tables, and for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from trainer.report.collect import Record
from trainer.report.paper import ABLATION_METRIC, ABLATION_TASK, LENIENT, PAIR, SIZES, Column
from trainer.report.tables import Entry, Order, Table, method_of, standard

SAME = ("task", "metric", "design", "model", "ta", "split")  # before practice and after


def with_spread(mean: float, spread: float | None, width: int = 0) -> str:
    """A mean with its standard deviation, if there is one; the mean is moved to the right of ``width``.

    >>> with_spread(61.0, 1.414), with_spread(61.0, None, 6)
    ('61.00 ± 1.41', ' 61.00')
    """
    return f"{mean:{width}.2f}" + ("" if spread is None else f" ± {spread:.2f}")


def summary(table: Table, records: Sequence[Record]) -> list[str]:
    """For a terminal: each figure of ours beside the paper's, or beside the best in the paper's column.

    Data of another size than the paper's has no difference from it, but a line that says so.
    """
    lines, compared = [], [record for record in records if standard(record)]
    sizes = {task: other_sizes(compared, task) for task, _ in table.columns}
    for row in table.rows:
        for column, entry in row.cells.items():
            if entry.mean is None:
                continue
            beside = ""
            if rival := rival_of(entry, column, table) or before_practice(row.head[-1], column, records):
                name, theirs = rival
                beside = f"{name}: {theirs:.2f}" + ("" if sizes[column[0]] else f" ({entry.mean - theirs:+.2f})")
            ours = with_spread(entry.mean, entry.std, 6)
            lines.append(f"{column[0].upper()} {column[1]:<9}{', '.join(row.head):<23} {ours:<14}  {beside}".rstrip())
    return lines + [line for task, others in sizes.items() for line in size_lines(task, others)]


def rival_of(entry: Entry, column: Column, table: Table) -> tuple[str, float] | None:
    """What an entry is held against: the paper's own figure or, without one, the best of its column."""
    if entry.theirs:
        return "paper", entry.theirs[0]
    found = [(theirs[0], other.head[-1]) for other in table.rows if (theirs := other.cells[column].theirs)]
    return (f"best in the paper, {max(found)[1]}", max(found)[0]) if found else None


def before_practice(method: str, column: Column, records: Sequence[Record]) -> tuple[str, float] | None:
    """What agents that have practised are held against: the same ones before, on the split that they were tested on."""
    task, measure = column
    for one in records:
        if not one.practice or one.task != task or ", ".join(method_of(one)) != method:
            continue
        begun = [
            record
            for record in records
            if all(getattr(record, name) == getattr(one, name) for name in SAME)
            and not record.practice and one.label.startswith(record.label) and measure in record.scores
        ]  # fmt: skip
        size = max((record.label for record in begun), key=len, default="")  # "n200" before "n200 practised"
        scores = [record.scores[measure] for record in begun if record.label == size]
        return ("before practice", mean(scores)) if scores else None
    return None


def order_line(order: Order) -> str:
    """How many pairs of methods are in the paper's order, and which are not."""
    total = order.agree + len(order.disagree)
    text = f"{order.column[0].upper()}, {order.block}: {order.agree} of {total} pairs are in the paper's order"
    if order.disagree:
        text += "; not here: " + ", ".join(order.disagree)
    return text + "."


def remarks(found: Table, records: Sequence[Record]) -> list[str]:
    """How many seeds the figures of a table average, and where its data has another size than the paper's."""
    counts = [len(entry.values) for row in found.rows for entry in row.cells.values() if entry.values]
    if not counts:
        return []
    least, most = min(counts), max(counts)
    lines = [f"Seeds of a figure: {least if least == most else f'{least} to {most}'}."]
    if any(entry.theirs for row in found.rows for entry in row.cells.values()):
        lines.append(LENIENT)
    if found.key == "metrics":
        longest: dict[str, int] = {}
        for record in records:
            if record.task == ABLATION_TASK and record.model in PAIR:
                metric = record.metric or ABLATION_METRIC
                longest[metric] = max(longest.get(metric, 0), record.max_steps)
        lines += [f"T_max with {metric} edits: {steps}." for metric, steps in longest.items()]
    for task in dict.fromkeys(task for task, _ in found.columns):
        lines += size_lines(task, other_sizes(records, task))
    return lines


def other_sizes(records: Sequence[Record], task: str) -> list[str]:
    """The sizes of a task's data that are not the paper's."""
    sizes = [record.size for record in records if record.task == task and record.size]
    return [*dict.fromkeys(size_text(size) for size in sizes if size != SIZES.get(task, size))]


def size_lines(task: str, sizes: Sequence[str]) -> list[str]:
    """A sentence for each of these sizes."""
    return [f"{task.upper()} here has {size}; the paper's has {size_text(SIZES[task])}." for size in sizes]


def size_text(size: dict[str, int]) -> str:
    """The size of a dataset.

    >>> size_text({"n": 10, "l": 5, "d": 10_000})
    'N = 10, L = 5, D = 10,000'
    """
    return ", ".join(f"{name.upper()} = {number:,}" for name, number in size.items())
