"""Write a report: collect the finished cells, make tables and figures, render the pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from trainer.core.errors import Failed
from trainer.report.collect import (
    RESULTS,
    Record,
    Timing,
    check_comparable,
    collect,
    games_of,
    read_results,
    write_results,
)
from trainer.report.figures import ARTISTS, KINDS, draw
from trainer.report.notes import summary
from trainer.report.pages import Page, html_page, markdown_page
from trainer.report.tables import tables
from trainer.training.checkpoint import write


def report(
    runs: Path | Sequence[Path], out: Path, title: str = "Text editing as imitation game", timed: bool = True
) -> tuple[list[Path], list[str]]:
    """Write ``report.html``, ``report.md``, ``results.json`` and ``figures/``; returns the files, and a summary
    for a terminal, line by line.

    ``runs`` are folders of sweeps, or the ``results.json`` of earlier reports, which have no games. A cell that is in
    several of them is taken from the first, so new runs can be added to kept results.
    """
    places = chosen([runs] if isinstance(runs, Path) else runs)
    records = check_comparable(sorted(chain(*places.values()), key=lambda record: record.name.split("/")))
    timing, skipped, games = Timing(), list[str](), list[dict[str, Any]]()
    for place, cells in places.items():
        times: Timing = read_results(place).timing if place.is_file() else {}
        if timed and place.is_dir():
            from trainer.report.timing import measure

            times, remarks = measure(place, cells)
            skipped += remarks
        timing = times | timing
        games += gallery(place, cells) if place.is_dir() else []
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
    return [out / name for name in files], [*summary(page.tables[0]), *skipped]


def chosen(places: Sequence[Path]) -> dict[Path, list[Record]]:
    """The cells of each place, without those of an earlier place."""
    seen: set[str] = set()
    found = {}
    for place in places:
        found[place] = [record for record in collect(place) if record.name not in seen]
        seen |= {record.name for record in found[place]}
    return found


def gallery(runs: Path, records: list[Record]) -> list[dict[str, Any]]:
    """The games that the evaluations kept, by cell."""
    kept = [{"name": record.name, "games": games_of(runs / record.name, record.split)} for record in records]
    return [cell for cell in kept if cell["games"]]
