"""The part of cards/experiments.md that follows from the results; ``python -m tests.experiments`` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainer.report.claims import claims
from trainer.report.collect import Record, read_results
from trainer.report.notes import order_line
from trainer.report.pages import MARKDOWN
from trainer.report.paper import LENIENT
from trainer.report.tables import label, orders, tables

CARDS = Path(__file__).parents[1] / "cards"
PAGE = CARDS / "experiments.md"
BEGIN, END = "<!-- the results begin -->\n", "<!-- the results end -->\n"
in_markdown = MARKDOWN.get_template("tables.md").module  # its macros


def records(name: str) -> list[Record]:
    return [*read_results(CARDS / "results" / name / "results.json").cells]


def block() -> str:
    """Tables in which something was run, what it cost, and what speaks for and against the paper's claims."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    main = records("main")
    planner = [cell for cell in records("practice") if cell.model == "planner" and not cell.label]
    timing = read_results(CARDS / "results" / "main" / "results.json").timing
    for table in tables([*main, *planner]):
        ours = {column for row in table.rows for column, entry in row.cells.items() if entry.values}
        if len({row.head for row in table.rows for entry in row.cells.values() if entry.values}) > 1:
            yield f"## {table.title}\n\n{in_markdown.table(table).strip()}\n"
            yield from (f"- {order_line(order)}" for order in orders(table) if order.column in ours)
            yield ""
    yield f"{LENIENT}\n"
    yield "## What a cell cost\n\n| cell | seed | updates | minutes of one core |\n| --- | ---: | ---: | ---: |"
    for cell in main:
        name = f"{cell.task.upper()}, {label(cell.model, cell.ta)}, {cell.metric}, {cell.design}"
        yield f"| {name} | {cell.seed} | {cell.updates:,} | {cell.cpu_seconds / 60:.0f} |".replace("*", r"\*")
    yield "\n## What the paper claims\n"
    for claim in claims(main, timing):
        text, *details = (line.replace("*", r"\*") for line in (claim.text, *claim.details))
        yield f"- **{text}**: {claim.verdict}."
        yield from (f"    - {line}" for line in details)
    if not claims(main, timing):
        yield "No claim can be judged yet: each compares two agents, and one was run."
    if timing:
        yield f"\n## Inference time\n\n{in_markdown.timing(timing).strip()}"
    yield ""


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + block() + END + rest.partition(END)[2])
