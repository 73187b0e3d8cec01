"""Write a report: collect the finished cells, make tables and figures, render the pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from trainer.core.errors import BadData, Failed
from trainer.core.files import write
from trainer.core.records import plain
from trainer.pages.games import recorded
from trainer.report.collect import (
    RESULTS,
    Cells,
    Record,
    Timing,
    check_comparable,
    collect,
    read_results,
    write_results,
)
from trainer.report.figures import ARTISTS, KINDS, draw
from trainer.report.notes import summary
from trainer.report.pages import Page, html_page, markdown_page
from trainer.report.paper import TITLE
from trainer.report.runs import not_evaluated
from trainer.report.tables import tables


def report(
    runs: Path | Sequence[Path], out: Path, title: str = TITLE, timed: bool = True
) -> tuple[list[Path], list[str]]:
    """Write ``report.html``, ``report.md``, ``results.json`` and ``figures/``; returns the files, and a summary
    for a terminal, line by line.

    ``runs`` are folders of sweeps, or the ``results.json`` of earlier reports, which have no games. A cell that is in
    several of them is taken from the first, so new runs can be added to kept results.
    """
    places = chosen([runs] if isinstance(runs, Path) else runs)
    found = chain.from_iterable(cells.records for cells in places.values())
    records = check_comparable(sorted(found, key=lambda record: record.name.split("/")))
    timing, skipped, games = Timing(), list[str](), list[dict[str, Any]]()
    for place, cells in places.items():
        times: Timing = read_results(place).timing if place.is_file() else {}
        if timed and place.is_dir():
            from trainer.report.timing import measure

            times, remarks = measure(place, cells.records)
            skipped += remarks
        timing = times | timing
        arithmetic = {record.name: "equation" in record.scores for record in cells.records}
        for name, kept in cells.games.items():
            games.append({"name": name, "games": plain([recorded(game, arithmetic[name]) for game in kept])})
    page = Page(title, records, tables(records), draw(records, timing), timing, games)
    files = {
        "report.html": html_page(page).encode(),
        "report.md": markdown_page(page).encode(),
        RESULTS: write_results(records, timing).encode(),
    }
    for name, (_, pictures) in page.figures.items():
        files |= {f"figures/{name}.{kind}": content for kind, content in pictures.items()}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{out}: cannot create the folder: {error.strerror}") from error
    for name, content in files.items():
        write(out / name, content)
    for name in ARTISTS:  # left by an earlier report in the same folder
        for kind in KINDS:
            if name not in page.figures:
                (out / "figures" / f"{name}.{kind}").unlink(missing_ok=True)
    shown = [table for table in page.tables if table.key == "main" or table.key.startswith("other")]
    lines = [line for table in shown for line in summary(table, records)]
    left = [run for cells in places.values() for run in cells.left]
    return [out / name for name in files], [*lines, *skipped, *not_evaluated(left)]


def chosen(places: Sequence[Path]) -> dict[Path, Cells]:
    """The cells of each place, without those of an earlier place."""
    seen: dict[str, Record] = {}
    found = {}
    for place in places:
        cells = collect(place)
        for record in cells.records if place.is_dir() else ():  # kept results may be of earlier settings
            if identity(seen.get(record.name, record)) != identity(record):
                raise BadData(f"{place}: another run is also named {record.name}; report the folder above both")
        new = {record.name: record for record in cells.records if record.name not in seen}
        games = {name: games for name, games in cells.games.items() if name in new}
        found[place] = Cells([*new.values()], games, cells.left)
        seen |= new
    return found


def identity(record: Record) -> tuple[object, ...]:
    """What was asked for: the same if a cell was run twice."""
    data = (record.task, record.metric, record.design, record.size)
    return *data, record.model, record.ta, record.seed, record.split, record.preset, record.settings, record.practice
