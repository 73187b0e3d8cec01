"""Commands for experiments: run a grid, and report its results."""

from __future__ import annotations

from pathlib import Path

import click

from trainer.cli.common import AT_ONCE, FOLDER, device_option, main, preset_option, threads_option, use_threads
from trainer.report.paper import TITLE


@main.command(short_help="Run a grid of trainings.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=FOLDER, show_default="from FILE", help="Folder for the runs.")
@click.option(
    "--seed", "seeds", type=click.IntRange(0), multiple=True, show_default="from FILE", help="Seed; can be repeated."
)
@click.option("--only", multiple=True, metavar="TEXT", help="Run only cells whose name contains TEXT; may be repeated.")
@preset_option(None, "from FILE")
@click.option("--jobs", type=AT_ONCE, default=1, show_default=True, help="Cells to run at the same time.")
@click.option("--plan", is_flag=True, help="List the cells and the commands that build missing data; run nothing.")
@device_option
@click.option("--threads", type=AT_ONCE, show_default="cores / jobs", help="CPU threads of a cell.")
def sweep(
    file: Path,
    out: Path | None,
    seeds: tuple[int, ...],
    only: tuple[str, ...],
    preset_name: str | None,
    jobs: int,
    plan: bool,
    device: str,
    threads: int | None,
) -> None:
    """Run the cells of the grid in FILE: tasks, models, augmentation, designs, metrics, seeds.

    Finished cells are skipped; rerun the command to resume a sweep.

    \b
    Examples:
      trainer sweep cards/sweeps/main.toml --plan
      trainer sweep cards/sweeps/main.toml --jobs 2 --seed 0
      trainer sweep cards/sweeps/main.toml --only aes-span-span/nar-star+ta
    """
    from trainer.sweeps.cell import finished
    from trainer.sweeps.grid import read_sweep
    from trainer.sweeps.runner import run_sweep

    requested = read_sweep(file, out, seeds, preset_name or "").only(only)
    if not plan:
        run_sweep(requested, jobs, threads, device, click.echo)
        return
    for dataset in requested.missing():
        click.echo(dataset.build or f"# {dataset.path} is missing{dataset.how_to_get}")
    for cell in requested.cells:
        click.echo(f"{'done' if finished(cell, requested.out) else 'open'}  {cell.name}")


@main.command(short_help="Write tables and figures beside the paper's.")
@click.argument("runs", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--out", type=FOLDER, required=True, help="Folder for the report.")
@click.option("--title", default=TITLE, show_default=True, help="Title of the report.")
@click.option("--timing/--no-timing", default=True, show_default=True, help="Measure the inference time of AR*, NAR*.")
@threads_option
def report(runs: tuple[Path, ...], out: Path, title: str, timing: bool, threads: int | None) -> None:
    """Report RUNS beside the paper's results, in tables and figures.

    RUNS are folders of sweeps or of evaluated runs, or results.json of earlier reports. A cell that several of them
    have is taken from the first.

    \b
    Examples:
      trainer report runs/paper --out report
      trainer report runs/more report/results.json --out report
    """
    from trainer.report.write import report as write_report

    use_threads(threads)
    files, lines = write_report(runs, out, title, timing)
    for line in lines:
        click.echo(line)
    click.echo(f"{len(files)} files -> {files[0]}")
