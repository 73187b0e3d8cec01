"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.report.collect import Record, Timing
from trainer.report.figures import Figures
from trainer.report.paper import ABLATION_METRIC, ABLATION_TASK, PAIR, SIZES
from trainer.report.tables import SHORT, Entry, Order, Table, label, orders

SECONDS = ("train_seconds", "seconds", "cpu_seconds")
NOTE = (
    "Mean ± sample standard deviation over seeds, in percent; in brackets the paper's own and the difference to it. "
    "**Bold** is the best of its block, * the best of its column, among what was run. Empty: not run."
)


def ours(entry: Entry) -> str:
    """Our figure, marked.

    >>> ours(Entry((60.0, 62.0), (61.45, 1.61), best=True))
    '**61.00 ± 1.41**'
    """
    if entry.mean is None:
        return ""
    text = f"{entry.mean:.2f}" + (f" ± {entry.std:.2f}" if entry.std is not None else "")
    text = f"**{text}**" if entry.best else text
    return text + (r"\*" if entry.best_of_all else "")


def theirs(entry: Entry) -> str:
    """The paper's figure, and the difference.

    >>> theirs(Entry((60.0,), (61.45, 1.61)))
    '(61.45 ± 1.61, -1.45)'
    """
    if not entry.theirs:
        return ""
    theirs, spread = entry.theirs
    text = f"{theirs:.2f}" + (f" ± {spread:.2f}" if spread is not None else "")
    return f"({text}, {entry.difference:+.2f})" if entry.difference is not None else f"({text})"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table(found: Table) -> str:
    """One table of the paper with our figures."""
    head = [*found.heads, *(f"{task.upper()} {SHORT[measure]}" for task, measure in found.columns)]
    rows = [
        [
            *(part.replace("*", r"\*") for part in row.head),
            *(f"{ours(entry)} {theirs(entry)}".strip() for entry in row.cells.values()),
        ]
        for row in found.rows
    ]
    return grid(head, rows)


def beside(found: Table) -> list[str]:
    """For a terminal: each figure of ours with the paper's own, or else with the best of its column."""
    lines = []
    for row in found.rows:
        for column, entry in row.cells.items():
            if entry.mean is None:
                continue
            spread = "" if entry.std is None else f" ± {entry.std:.2f}"
            rivals = [(r.cells[column].theirs[0], r.head[-1]) for r in found.rows if r.cells[column].theirs]  # type: ignore[index]
            there = ""
            if entry.theirs:
                there = f"the paper's {entry.theirs[0]:.2f} ({entry.difference:+.2f})"
            elif rivals:
                best, name = max(rivals)
                there = f"the best in the paper, {name}: {best:.2f} ({entry.mean - best:+.2f})"
            name = ", ".join(row.head)
            lines.append(f"{column[0].upper()} {column[1]:<9}{name:<24}{entry.mean:6.2f}{spread:<8}  {there}".rstrip())
    return lines


def order_line(order: Order) -> str:
    """Where an order agrees, in a sentence."""
    total = order.agree + len(order.disagree)
    text = f"{order.column[0].upper()}, {order.block}: {order.agree} of {total} pairs are in the paper's order"
    if order.disagree:
        text += "; not here: " + ", ".join(order.disagree)
    return text + "."


def remarks(found: Table, records: Sequence[Record]) -> list[str]:
    """What the figures of a table are the means of, and where its data is not of the paper's size."""
    counts = [len(entry.values) for row in found.rows for entry in row.cells.values() if entry.values]
    if not counts:
        return []
    least, most = min(counts), max(counts)
    lines = [f"Seeds of a figure: {least if least == most else f'{least} to {most}'}."]
    if found.key == "metrics":
        longest: dict[str, int] = {}
        for record in records:
            if record.task == ABLATION_TASK and record.model in PAIR:
                metric = record.metric or ABLATION_METRIC
                longest[metric] = max(longest.get(metric, 0), record.max_steps)
        lines += [f"T_max with {metric} edits: {steps}." for metric, steps in longest.items()]
    for task in dict.fromkeys(task for task, _ in found.columns):
        sizes = [record.size for record in records if record.task == task and record.size]
        others = dict.fromkeys(size_text(size) for size in sizes if size != SIZES.get(task, size))
        lines += [f"{task.upper()} here has {ours}; the paper's has {size_text(SIZES[task])}." for ours in others]
    return lines


def size_text(size: dict[str, int]) -> str:
    """The size of a dataset.

    >>> size_text({"n": 10, "l": 5, "d": 10_000})
    'N = 10, L = 5, D = 10,000'
    """
    return ", ".join(f"{name.upper()} = {number:,}" for name, number in size.items())


def costs(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """What each cell took."""
    head = ["Cell", "Parameters", "Updates", "Epoch kept", "Training, s", "All, s", "CPU, s", "Device", "Threads"]
    rows = [
        [
            record.name,
            f"{record.parameters:,}",
            f"{record.updates:,}",
            f"{record.best_epoch} (0 to {record.epochs - 1})",
            *(f"{getattr(record, key):.0f}" for key in SECONDS),
            str(record.device),
            str(record.threads),
        ]
        for record in records
    ]
    return head, rows


def timing_rows(timing: Timing) -> tuple[list[str], list[list[str]]]:
    """Inference times and their ratio."""
    head = ["Task", "AR*, µs an action", "NAR*", "ratio", "AR*, µs a text", "NAR*", "ratio"]
    rows = [
        [task.upper()]
        + [
            cell
            for what in ("action", "text")
            for cell in (
                *(f"{getattr(found.agents[name], what):.1f}" for name in PAIR),
                f"{getattr(found.ratio, what):.2f}",
            )
        ]
        for task, found in timing.items()
    ]
    return head, rows


def shown_game(game: dict[str, Any]) -> str:
    """A game as it was played, a step a line."""
    lines = [f"{move['state']}    {' '.join(move['action'])}  -> {move['verdict']}" for move in game["moves"]]
    verdict = "right" if game["right"] else f"wrong: {game['failure']}; wanted: {game['target']}"
    return "\n".join([*lines, f"{game['predicted']}    {verdict}"])


def page(
    title: str,
    records: Sequence[Record],
    found: Sequence[Table],
    figures: Figures,
    timing: Timing,
    games: Sequence[dict[str, Any]] = (),
) -> str:
    """The whole report."""
    parts = [f"# {title}", NOTE]
    for one in found:
        parts += [f"## {one.title}", table(one), *remarks(one, records)]
        if lines := [f"- {order_line(order)}".replace("*", r"\*") for order in orders(one)]:
            parts += ["Order of the methods by equation accuracy:", "\n".join(lines)]
    for name, (caption, _) in figures.items():
        parts += [f"![{caption}](figures/{name}.png)", caption]
    if timing:
        head, rows = timing_rows(timing)
        parts += ["## Inference time", grid([cell.replace("*", r"\*") for cell in head], rows)]
    if games:
        parts += ["## Games", "One right and one wrong game of each cell; the page has more, to step through."]
    for cell in games:
        first = {bool(game["right"]): game for game in reversed(cell["games"])}
        played = "\n\n".join(shown_game(first[right]) for right in (True, False) if right in first)
        parts += [f"### Games of {cell['name']}", f"```text\n{played}\n```"]
    parts += ["## Cells", grid(*costs(records))]
    parts += ["## Commands and data"]
    for record in records:
        hashes = "\n".join(f"{digest}  {file}" for file, digest in sorted(record.data.items()))
        commands = "\n".join([*([record.build] if record.build else []), *record.commands])
        name = label(record.model, record.ta).replace("*", r"\*")
        parts += [
            f"### {record.name}",
            f"{name}, seed {record.seed}, preset {record.preset}.",
            f"```sh\n{commands}\n```",
            f"```text\n{hashes}\n```",
        ]
    return "\n\n".join(parts) + "\n"
