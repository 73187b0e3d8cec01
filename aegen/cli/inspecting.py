"""Commands that read a dataset: show rows, count, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from aegen.cli.common import PLACE, json_option, main, workers_option


@main.command()
@click.argument("folder", type=PLACE)
@click.option(
    "--split", type=click.Choice(["train", "validation", "test"]), default="train", show_default=True, help="Split."
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of pairs; with --json, of rows or trajectories.",
)
@click.option(
    "--config",
    type=click.Choice(["pairs", "expert", "augmented", "tags"]),
    help="Default: augmented (train only), expert or pairs, the first that exists.",
)
@json_option
def show(folder: Path, split: str, rows: int, config: str | None, as_json: bool) -> None:
    """Show rows of FOLDER: pairs, or trajectories step by step with each edit marked.

    \b
    Example: aegen show aor --rows 1
    """
    from aegen.dataset.folder import Folder
    from aegen.dataset.show import draw_pairs, draw_trajectories, plain
    from aegen.dataset.show import trajectories as all_trajectories

    dataset = Folder(folder)
    there = [name for name in dataset.manifest().configs if name != "variants"]
    if config is None:
        config = (
            "augmented" if "augmented" in there and split == "train" else ("expert" if "expert" in there else "pairs")
        )
    if as_json:
        _show_json(dataset, config, split, rows, all_trajectories)
        return
    if config == "pairs":
        lines = draw_pairs(dataset, split, rows)
    else:
        lines = draw_trajectories(dataset, config, split, rows, _paint if sys.stdout.isatty() else plain)
    for line in lines:
        click.echo(line)


def _show_json(dataset: Any, config: str, split: str, rows: int, all_trajectories: Callable[..., Any]) -> None:
    from itertools import islice

    from aegen.dataset.shards import read_batches

    if config == "pairs":
        names = dataset.manifest().shards("pairs", split)
        records: Any = (
            row for name in names for batch in read_batches(dataset / name, "pairs") for row in batch.to_pylist()
        )
    else:
        records = (
            {
                "pair": pair,
                "origin": steps[0][0],
                "steps": [{"state": state, "action": action} for _, state, action in steps],
            }
            for pair, steps in all_trajectories(dataset, config, split)
        )
    for record in islice(records, rows):
        click.echo(json.dumps(record, ensure_ascii=False))


def _paint(text: str, kind: str) -> str:
    return (
        click.style(text, fg="red", strikethrough=True) if kind == "old" else click.style(text, fg="green", bold=True)
    )


@main.command()
@click.argument("folder", type=PLACE)
@click.option("--distinct", is_flag=True, help="Also count distinct training steps; reads every row.")
@json_option
def stats(folder: Path, distinct: bool, as_json: bool) -> None:
    """Print statistics of FOLDER: sizes, overlap between the splits, and the paper's data table.

    \b
    Example: aegen stats aor
    """
    from aegen.dataset.folder import Folder
    from aegen.dataset.stats import stats as count

    figures = count(Folder(folder), distinct)
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


@main.command()
@click.argument("folder", type=PLACE)
@workers_option
@json_option
def verify(folder: Path, workers: int | None, as_json: bool) -> None:
    """Verify FOLDER: hashes, schemas, equations, duplicates, leaks between splits; replay every trajectory.

    \b
    Example: aegen verify aor
    """
    from aegen.core.progress import bar
    from aegen.dataset.folder import Folder
    from aegen.dataset.verify import verify as check
    from aegen.engines.start import start

    dataset = Folder(folder)
    rows = sum(info.rows for info in dataset.manifest().files.values())
    with start(None, workers, None, rows) as engine:
        findings = check(dataset, engine, bar)
    if as_json:
        click.echo(json.dumps(findings))
    else:
        click.echo(f"{folder} verified: " + ", ".join(f"{count:,} {name}" for name, count in findings.items()))
