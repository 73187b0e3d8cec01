"""From finished cells to a report: tables beside the paper's, figures, games to step through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.checkpoint import write
from trainer.errors import Failed
from trainer.report import html, markdown
from trainer.report.collect import RESULTS, Record, collect, outcomes, read_object, results
from trainer.report.figures import draw
from trainer.report.tables import tables


def report(
    runs: Path, out: Path, title: str = "Text editing as imitation game", timed: bool = True
) -> tuple[list[Path], list[str]]:
    """Write ``report.html``, ``report.md``, ``results.json`` and ``figures/``; returns the files, and the main result
    in lines for a terminal.

    ``runs`` is the folder of a sweep, or the ``results.json`` of an earlier report, which has no games.
    """
    records = collect(runs)
    timing = read_object(runs).get("timing", {}) if runs.is_file() else {}
    if timed and runs.is_dir():
        from trainer.report.timing import measure

        timing = measure(runs, records)
    found, figures = tables(records), draw(records, timing)
    games = gallery(runs, records) if runs.is_dir() else []
    files = {
        "report.html": html.page(title, records, found, figures, timing, games).encode(),
        "report.md": markdown.page(title, records, found, figures, timing).encode(),
        RESULTS: results(records, timing).encode(),
    }
    for name, (_, pictures) in figures.items():
        files |= {f"figures/{name}.{kind}": content for kind, content in pictures.items()}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{out}: cannot be made: {error.strerror}") from error
    for name, content in files.items():
        write(out / name, content)
    return [out / name for name in files], markdown.beside(found[0])


def gallery(runs: Path, records: list[Record]) -> list[dict[str, Any]]:
    """The games that the evaluations kept, by cell."""
    kept = ({"name": record["name"], "games": outcomes(runs / record["name"]).get("games", [])} for record in records)
    return [cell for cell in kept if cell["games"]]
