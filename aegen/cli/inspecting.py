"""Commands that read a dataset: show rows, count, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aegen.cli.common import FOLDER, SOURCE, colours, json_option, main, workers_option
from aegen.core.errors import InvalidSpec
from aegen.core.format import SPLITS, join_state

if TYPE_CHECKING:
    from aegen.dataset.dataset import Dataset


@main.command(short_help="Show pairs, or trajectories step by step.")
@click.argument("folder", type=SOURCE)
@click.option("--split", type=click.Choice(SPLITS), default=SPLITS[0], show_default=True, help="Split.")
@click.option(
    "--rows",
    type=click.IntRange(1),
    show_default="5; 100 with --html",
    help="Number of pairs; with --json, of rows or trajectories.",
)
@click.option(
    "--config",
    type=click.Choice(["pairs", "expert", "augmented", "tags", "sources"]),
    help="Default: augmented (train only), expert, sources or pairs, the first that exists.",
)
@click.option("--html", type=FOLDER, help="Write them to a file for a browser instead.")
@json_option
def show(folder: str, split: str, rows: int | None, config: str | None, html: Path | None, as_json: bool) -> None:
    """Show rows of FOLDER: pairs, or trajectories step by step with each edit marked.

    FOLDER can also be hf://org/name[@revision] or a URL.

    \b
    Examples:
      aegen show aor --rows 1
      aegen show aor --html aor.html
    """
    if html and as_json:
        raise InvalidSpec("--html and --json: choose one")
    rows = rows or (100 if html else 5)
    from aegen.dataset.dataset import Dataset
    from aegen.dataset.show import draw_pairs, draw_sources, draw_trajectories, plain
    from aegen.publishing.pull import open_folder

    dataset = Dataset.open(open_folder(folder))
    if config is None:
        wanted = ("augmented", "expert", "sources") if split == "train" else ("expert", "sources")
        config = next((name for name in wanted if name in dataset.configs), "pairs")
    dataset.check_rows(config, split)
    if html:
        from aegen.files.atomic import AtomicFile
        from aegen.pages.browse import browse

        page, shown = browse(dataset, config, split, rows)
        with AtomicFile(html) as partial:
            partial.write_text(page, encoding="utf-8")
        click.echo(f"{shown} -> {html}")
        return
    if as_json:
        for record in islice(_records(dataset, config, split), rows):
            click.echo(json.dumps(record))
        return
    if config == "sources":
        lines = draw_sources(dataset.folder, rows)
    elif config == "pairs":
        lines = draw_pairs(dataset.folder, split, rows)
    else:
        lines = draw_trajectories(dataset.folder, config, split, rows, _paint if colours() else plain)
    for line in lines:
        click.echo(line, file=sys.stdout)  # named, or click would write UTF-8 to a terminal that has ASCII alone


def _records(dataset: Dataset, config: str, split: str) -> Iterator[dict[str, Any]]:
    """Sources, pairs or trajectories as plain objects."""
    if config == "sources":
        yield from ({"id": number, "source": source} for number, source in dataset.sources())
        return
    if config == "pairs":
        for pair, source, target in dataset.pair_rows(split):
            yield {"id": pair, "source": source, "target": target}
        return
    for one in dataset.trajectories(split, config):
        steps = [{"state": join_state(step.state), "action": step.action} for step in one.steps]
        yield {"pair": one.pair, "origin": one.origin, "steps": steps}


def _paint(text: str, kind: str) -> str:
    return (
        click.style(text, fg="red", strikethrough=True) if kind == "old" else click.style(text, fg="green", bold=True)
    )


@main.command(short_help="Print the statistics of a dataset.")
@click.argument("folder", type=SOURCE)
@click.option("--distinct", is_flag=True, help="Also count distinct training steps; reads every row.")
@json_option
def stats(folder: str, distinct: bool, as_json: bool) -> None:
    """Print statistics of FOLDER: sizes, overlap between the splits, and the paper's data table.

    FOLDER can also be hf://org/name[@revision] or a URL.

    \b
    Example: aegen stats aor
    """
    from aegen.dataset.stats import stats as count
    from aegen.publishing.pull import open_folder

    figures = count(open_folder(folder), distinct)
    if as_json:
        click.echo(json.dumps(figures))
        return
    for name, figure in figures.items():
        if name == "spec":
            continue
        click.echo(name)
        for label, number in figure.items() if isinstance(figure, dict) else [("", figure)]:
            numbers = number.items() if isinstance(number, dict) else [("", number)]
            text = "  ".join(
                f"{key} {count:,}".strip() if isinstance(count, int) else str(count) for key, count in numbers
            )
            click.echo(f"  {label:<22}{text}")


@main.command(short_help="Verify a dataset: hashes, schemas, replay.")
@click.argument("folder", type=SOURCE)
@workers_option
@json_option
def verify(folder: str, workers: int | None, as_json: bool) -> None:
    """Verify FOLDER: hashes, schemas, equations, duplicates, leaks between splits; replay every trajectory.

    FOLDER can also be hf://org/name[@revision] or a URL.

    \b
    Example: aegen verify aor
    """
    from aegen.core.progress import bar
    from aegen.dataset.verify import verify as check
    from aegen.engines.start import start
    from aegen.publishing.pull import open_folder

    dataset = open_folder(folder)
    with start(workers=workers, rows=dataset.manifest().total_rows) as engine:
        findings = check(dataset, engine, bar)
    if as_json:
        click.echo(json.dumps(findings))
    else:
        click.echo(f"{folder} verified: " + ", ".join(f"{count:,} {name}" for name, count in findings.items()))
