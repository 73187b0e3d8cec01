"""The command ``aegen``: parse, call one library function, print what came of it.

Nothing heavy is imported here; each command imports what it needs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aegen.errors import AegenError

if TYPE_CHECKING:
    from aegen.folder import Manifest

Function = TypeVar("Function", bound=Callable[..., Any])
FOLDER = click.Path(path_type=Path)


class Commands(click.Group):
    """Turns our errors, and the system's, into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AegenError as error:
            _fail(str(error), error.exit_code)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has read enough
            sys.exit(1)
        except OSError as error:
            wrong_use = isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError, IsADirectoryError))
            name = f"{error.filename}: " if error.filename else ""
            _fail(f"{name}{error.strerror or error}", 2 if wrong_use or error.errno == 30 else 1)


def _fail(message: str, code: int) -> None:
    click.echo(f"Error: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="aegen")
def main() -> None:
    """Turn text pairs into state-action demonstrations.

    \b
    Example:
      aegen build aor --n 10 --l 5 --d 10000 --out aor
      aegen show aor
    """


def options(*decorators: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


spec_options = options(
    click.argument("task"),
    click.option("--n", type=int, required=True, help="Integers 2 … N+1."),
    click.option("--l", type=int, required=True, help="Integers in an equation, the right-hand side included."),
    click.option("--d", type=int, required=True, help="Equations in all."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option(
        "--split", default="source", show_default=True, help="source: no source in two splits. paper: at random."
    ),
    click.option("--division", is_flag=True, help="AES: also / inside parentheses."),
    click.option("--errors", type=int, default=3, show_default=True, help="AEC: up to this many mistakes."),
    click.option(
        "--variants", type=int, default=0, show_default=True, help="AES, AEC: more sources a training target."
    ),
    click.option("--rows-per-shard", type=int, default=250_000, show_default=True),
)
out_option = click.option("--out", type=FOLDER, required=True, help="Folder for the dataset.")
workers_option = click.option("--workers", type=click.IntRange(1), help="Processes; default: as many as it is worth.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
expert_options = options(
    click.option("--metric", help="levenshtein, lcs, span or package.module:function; default: the task's."),
    click.option("--design", help="insert, edit, span, span2 or span3; default: the task's."),
)
augment_options = options(
    click.option("--algorithm", default="paper", show_default=True, help="paper or released."),
    click.option("--max-edits", type=int, default=10, show_default=True, help="Up to here, all subsets of the edits."),
    click.option("--max-states", type=int, default=1024, show_default=True, help="Beyond, at most so many."),
)


def report(function: Callable[..., tuple[Manifest, bool]]) -> Callable[..., None]:
    """Print what a command that writes has made."""

    @wraps(function)
    def wrapper(*args: Any, as_json: bool, **kwargs: Any) -> None:
        manifest, worked = function(*args, **kwargs)
        folder = kwargs.get("out") or kwargs.get("folder")
        rows = {config: manifest.rows(config) for config in manifest.configs}
        if as_json:
            click.echo(json.dumps({"folder": str(folder), "rows": rows, "worked": worked}))
            return
        counts = ", ".join(f"{count:,} {'pairs' if config == 'pairs' else config}" for config, count in rows.items())
        click.echo(f"{counts} -> {folder}" if worked else f"nothing to do: {folder} is finished ({counts})")

    return wrapper


@main.command()
@spec_options
@out_option
@workers_option
@json_option
@report
def generate(out: Path, workers: int | None, **settings: Any) -> tuple[Manifest, bool]:
    """Generate the pairs of one benchmark: TASK is aor, aes or aec.

    \b
    Example: aegen generate aor --n 10 --l 5 --d 10000 --out aor
    """
    from aegen import pipeline
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.spec import Spec

    spec = Spec(**settings)
    return pipeline.generate(spec, Folder(out), local(workers, spec.d), bar)


@main.command()
@spec_options
@expert_options
@augment_options
@out_option
@workers_option
@json_option
@report
def build(
    out: Path,
    workers: int | None,
    metric: str | None,
    design: str | None,
    algorithm: str,
    max_edits: int,
    max_states: int,
    **settings: Any,
) -> tuple[Manifest, bool]:
    """The whole data stage of one benchmark: pairs, expert trajectories, augmented trajectories.

    \b
    Example: aegen build aes --n 100 --l 5 --d 10000 --out aes
    """
    from aegen import pipeline
    from aegen.augment import Augmentation
    from aegen.demonstrations import Expert
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.spec import Spec

    spec = Spec(**settings)
    expert = Expert.of(spec.task, metric, design)
    augmentation = Augmentation(algorithm, max_edits, max_states, spec.seed)
    return pipeline.build(spec, Folder(out), local(workers, spec.d), bar, expert, augmentation)


@main.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--kind", default="auto", show_default=True, help="released, parallel, csv, tsv, jsonl, parquet, m2, datasets."
)
@click.option(
    "--task", default="text", show_default=True, help="text, aor, aes or aec: whose metric, design and rules."
)
@click.option("--tokens", default="words", show_default=True, help="words (between single spaces) or chars.")
@click.option("--split", help="For example 70/15/15; default: the splits that are there, or 70/15/15.")
@click.option(
    "--split-by", default="source", show_default=True, help="source, target or pair: what no two splits share."
)
@click.option("--source-column", default="source", show_default=True)
@click.option("--target-column", default="target", show_default=True)
@click.option("--annotator", type=int, default=0, show_default=True, help="M2: whose corrections.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --split.")
@click.option("--max-tokens", type=int, default=1024, show_default=True, help="Longest text.")
@click.option("--rows-per-shard", type=int, default=250_000, show_default=True)
@click.option("--skip-bad", is_flag=True, help="Leave out pairs that cannot be used, and count them.")
@out_option
@json_option
@report
def import_(out: Path, paths: tuple[Path, ...], **settings: Any) -> tuple[Manifest, bool]:
    """Take text pairs from files, a folder in the authors' layout, or a `datasets` dataset.

    \b
    Examples:
      aegen import train.src train.tgt --tokens words --out gec
      aegen import words.csv --tokens chars --source-column wrong --target-column right --out spelling
    """
    from aegen import pipeline
    from aegen.folder import Folder
    from aegen.importers import Import
    from aegen.progress import bar

    wanted = Import(paths, **settings)
    done = pipeline.import_pairs(wanted, Folder(out), bar)
    for problem, count in wanted.skipped.most_common():
        click.echo(f"skipped {count:,}: {problem}", err=True)
    return done


@main.command()
@click.argument("folder", type=FOLDER)
@expert_options
@workers_option
@json_option
@report
def trajectories(folder: Path, metric: str | None, design: str | None, workers: int | None) -> tuple[Manifest, bool]:
    """Write the expert's trajectories (TG) for all pairs of FOLDER.

    \b
    Example: aegen trajectories gec --metric lcs --design edit
    """
    from aegen import pipeline
    from aegen.demonstrations import Expert, task_name
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar

    dataset = Folder(folder)
    manifest = dataset.manifest()
    expert = Expert.of(task_name(manifest.spec), metric, design)
    return pipeline.add_expert(dataset, expert, local(workers, manifest.rows("pairs")), bar)


@main.command()
@click.argument("folder", type=FOLDER)
@augment_options
@click.option("--seed", type=int, default=0, show_default=True, help="For the sample beyond --max-edits.")
@workers_option
@json_option
@report
def augment(
    folder: Path, algorithm: str, max_edits: int, max_states: int, seed: int, workers: int | None
) -> tuple[Manifest, bool]:
    """Write the augmented trajectories (TA) of FOLDER's training pairs: the expert's and those from shifted states.

    \b
    Example: aegen augment gec --max-edits 8
    """
    from aegen import pipeline
    from aegen.augment import Augmentation
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar

    dataset = Folder(folder)
    augmentation = Augmentation(algorithm, max_edits, max_states, seed)
    return pipeline.add_augmented(dataset, augmentation, local(workers, dataset.manifest().rows("pairs")), bar)


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="train", show_default=True)
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="Pairs to draw.")
@click.option("--config", type=click.Choice(["pairs", "expert", "augmented"]), help="Default: the richest there is.")
@json_option
def show(folder: Path, split: str, rows: int, config: str | None, as_json: bool) -> None:
    """Draw some rows of FOLDER: pairs, or trajectories step by step with each edit marked.

    \b
    Example: aegen show aor --rows 1
    """
    from aegen.folder import Folder
    from aegen.show import draw_pairs, draw_trajectories, plain
    from aegen.show import trajectories as all_trajectories

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

    from aegen.shards import read_batches

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
@click.argument("folder", type=FOLDER)
@json_option
def stats(folder: Path, as_json: bool) -> None:
    """Count FOLDER: sizes, overlap between the splits, and the paper's data table.

    \b
    Example: aegen stats aor
    """
    from aegen.folder import Folder
    from aegen.stats import stats as count

    figures = count(Folder(folder))
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
@click.argument("folder", type=FOLDER)
@workers_option
@json_option
def verify(folder: Path, workers: int | None, as_json: bool) -> None:
    """Check FOLDER: hashes, schemas, every equation, duplicates, leaks, and a replay of every trajectory.

    \b
    Example: aegen verify aor
    """
    from aegen.engine import local
    from aegen.folder import Folder
    from aegen.progress import bar
    from aegen.verify import verify as check

    dataset = Folder(folder)
    rows = sum(info.rows for info in dataset.manifest().files.values())
    findings = check(dataset, local(workers, rows), bar)
    if as_json:
        click.echo(json.dumps(findings))
    else:
        click.echo(f"{folder} is sound: " + ", ".join(f"{count:,} {name}" for name, count in findings.items()))


if __name__ == "__main__":
    main(prog_name="aegen")
