"""From finished cells to a report: tables beside the paper's, figures, games to step through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.checkpoint import write
from trainer.errors import BadData, Failed
from trainer.report import html, markdown
from trainer.report.collect import RESULTS, Record, collect, outcomes, read_object, results, split_of
from trainer.report.figures import ARTISTS, KINDS, draw
from trainer.report.tables import tables


def report(
    runs: Path, out: Path, title: str = "Text editing as imitation game", timed: bool = True
) -> tuple[list[Path], list[str]]:
    """Write ``report.html``, ``report.md``, ``results.json`` and ``figures/``; returns the files, and the main result
    in lines for a terminal.

    ``runs`` is the folder of a sweep, or the ``results.json`` of an earlier report, which has no games.
    """
    records = collect(runs)
    timing, skipped = read_timing(runs) if runs.is_file() else {}, list[str]()
    if timed and runs.is_dir():
        from trainer.report.timing import measure

        timing, skipped = measure(runs, records)
    found, figures = tables(records), draw(records, timing)
    games = gallery(runs, records) if runs.is_dir() else []
    files = {
        "report.html": html.page(title, records, found, figures, timing, games).encode(),
        "report.md": markdown.page(title, records, found, figures, timing, games).encode(),
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
    for name in ARTISTS:  # of an earlier report into the same folder
        for kind in KINDS:
            if name not in figures:
                (out / "figures" / f"{name}.{kind}").unlink(missing_ok=True)
    return [out / name for name in files], [*markdown.beside(found[0]), *skipped]


def read_timing(path: Path) -> dict[str, Any]:
    """The inference times of an earlier report."""
    timing = read_object(path).get("timing", {})
    try:
        for found in timing.values():
            for times in (*(found["agents"][name] for name in ("ar-star", "nar-star")), found["ratio"]):
                _ = [float(times[what]) for what in ("action", "text")]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadData(f"{path}: timing: not the times of a report") from error
    return dict(timing)


def gallery(runs: Path, records: list[Record]) -> list[dict[str, Any]]:
    """The games that the evaluations kept, by cell."""
    kept = [
        {"name": record["name"], "games": outcomes(runs / record["name"], split_of(record)).get("games", [])}
        for record in records
    ]
    return [cell for cell in kept if cell["games"]]
