"""The command ``trainer``. Heavy imports stay inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainer import __version__
from trainer.core import interrupt
from trainer.core.config import settings
from trainer.core.errors import Failed, Interrupted, InvalidConfig, InvalidText, MissingExtra, TrainerError, refused
from trainer.training.presets import PRESETS, preset

EXTRA = {"torch", "numpy", "pyarrow", "safetensors", "tensorboard", "fsspec", "huggingface_hub"}


class Commands(click.Group):
    """Turns the errors that a user can meet into one line and an exit code."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with interrupt.working():
                return super().invoke(context)
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            if name not in EXTRA:
                raise
            self._fail(MissingExtra(name))
        except TrainerError as error:
            self._fail(error)
        except MemoryError:
            self._fail(Failed("not enough memory"))
        except KeyboardInterrupt:
            self._fail(Interrupted(interrupt.said(context.invoked_subcommand)))
        except BrokenPipeError:
            raise  # whoever read us has read enough: click ends quietly
        except OSError as error:
            self._fail(refused(error))

    def _fail(self, error: TrainerError) -> None:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(error.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="trainer")
def main() -> None:
    """Learn to edit text from demonstrations, and play.

    \b
    trainer fit data/aor --out runs/aor
    trainer evaluate runs/aor
    trainer edit runs/aor "3 6 2 9 3"
    """
    # Waiting threads must sleep: spinning ones made a busy two-core machine play 70 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to compute.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
AT_ONCE = click.IntRange(1, 1024)  # of threads or processes: more than any machine has
threads_option = click.option("--threads", type=AT_ONCE, help="CPU threads; by default all cores.")


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option for each setting, with its help; what is not given comes from the preset."""
    for one in reversed(settings()):
        name = "--" + one.name.replace("_", "-")
        kind: Any = click.Choice(one.choices) if one.choices else type(one.default)
        if kind is bool:
            both = f"{name}/--no-{name[2:]}" if one.default else name
            option = click.option(both, one.name, is_flag=True, default=None, help=one.help)
        else:
            option = click.option(name, one.name, type=kind, help=one.help)
        command = option(command)
    return command


def use_threads(threads: int | None) -> None:
    """Bound the threads of PyTorch."""
    if threads:
        import torch

        torch.set_num_threads(threads)


@main.command()
@click.argument("data")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder of the run.")
@click.option("--preset", "preset_name", type=click.Choice([*PRESETS]), help="By default what suits the machine.")
@click.option("--resume", is_flag=True, help="Go on with the run in the folder, if there is one.")
@click.option("--compile", "compiled", is_flag=True, help="Compile the model.")
@click.option(
    "--save-every",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Updates between checkpoints.",
)
@device_option
@threads_option
@json_option
@config_options
def fit(
    *,
    data: str,
    out: Path,
    preset_name: str | None,
    resume: bool,
    compiled: bool,
    save_every: int,
    device: str,
    threads: int | None,
    as_json: bool,
    **changes: Any,
) -> None:
    """Train an agent on DATA: a dataset folder, a hub id, or a URL.

    \b
    trainer fit data/aor --model nar-star --preset cpu --out runs/aor
    trainer fit data/aor --preset cpu --out runs/aor --resume
    torchrun --nproc-per-node 2 -m trainer fit data/aor --out runs/aor
    """
    from trainer.api import fit as train

    use_threads(threads)
    chosen = {name: value for name, value in changes.items() if value is not None}
    result = train(
        data,
        out=out,
        preset=preset_name,
        resume=resume,
        device=device,
        compiled=compiled,
        save_every=save_every,
        **chosen,
    )
    if result.main and as_json:
        click.echo(json.dumps(result.to_json()))
    elif result.main:
        best = "nothing" if result.best is None else f"{result.best:.4f} in epoch {result.best_epoch}"
        click.echo(f"{out}: {result.updates:,} updates, best {best}, ended by {result.finished}")


@main.command()
@click.argument("run")
@click.option("--data", help="Dataset to play; by default the one of the run.")
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="test", show_default=True)
@click.option("--limit", type=click.IntRange(1), default=None, help="Only the first pairs.")
@device_option
@threads_option
@json_option
def evaluate(
    *,
    run: str,
    data: str | None,
    split: Any,
    limit: int | None,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Play a split and measure the agent in RUN, a run folder or a hub id.

    \b
    trainer evaluate runs/aor --split test
    """
    from trainer.evaluation import evaluate_run

    use_threads(threads)
    result = evaluate_run(run, device, data, split, limit or 0)
    if as_json:
        click.echo(json.dumps(result))
        return
    for name in ("token", "sequence", "equation"):
        if f"{name}_accuracy" in result:
            click.echo(f"{name} accuracy{result[f'{name}_accuracy']:>18.2f} %")
    refused = ", ".join(f"{number} {reason}" for reason, number in result["refused_because"].items())
    click.echo(f"games              {result['pairs']:>10,}   {result['steps_per_game']:.2f} steps each")
    click.echo(f"ended by DONE      {result['done']:>10,}   {result['limit']:,} by the limit of steps")
    click.echo(f"refused            {result['refused']:>10,}   {refused}".rstrip())
    if result["unreadable"]:
        click.echo(f"unreadable         {result['unreadable']:>10,}   left as they are: unknown tokens or too long")
    click.echo(f"games per second   {result['pairs_per_second']:>10,.0f}")


def read_lines() -> list[str]:
    """The lines of standard input."""
    try:
        return [line.rstrip("\r\n") for line in sys.stdin]
    except UnicodeDecodeError as error:
        raise InvalidText(f"standard input: not {error.encoding}: {error.reason}") from error


# A text may begin with a minus: what is no option of this command is a text.
@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("run")
@click.argument("texts", nargs=-1)
@device_option
@json_option
def edit(run: str, texts: tuple[str, ...], device: str, as_json: bool) -> None:
    """Edit TEXTS, or the lines of standard input, step by step with the agent in RUN.

    \b
    trainer edit runs/aor "3 6 2 9 3"
    """
    from trainer.agent import Agent

    agent = Agent.from_pretrained(run, device)
    lines = [*texts] or read_lines()
    for game in agent.edit(lines):
        if as_json:
            moves = [vars(move) for move in game.moves]
            click.echo(json.dumps(vars(game) | {"moves": moves}, ensure_ascii=False))
            continue
        click.echo(f"     {game.source}")
        for number, move in enumerate(game.moves):
            said = "  ".join(
                f"{token} {chance:.0%}" for token, chance in zip(move.action, move.probabilities, strict=True)
            )
            outcome = agent.marked(game, number) if move.verdict == "applied" else move.verdict
            click.echo(f"{number + 1:>3}  {said:<36}  {outcome}")
        why = {"done": "the agent said DONE", "limit": f"no DONE within {len(game.moves)} steps"}
        click.echo(f"  =  {game.text}   ({why.get(game.ended, 'refused: ' + game.ended)})")


@main.command()
@click.option("--data", help="Dataset to count the parameters for.")
@click.option("--preset", "preset_name", type=click.Choice([*PRESETS]), default="paper", show_default=True)
@click.option("--train-on", type=click.Choice(["augmented", "expert"]), default=None, help="Shards to count for.")
@json_option
def models(data: str | None, preset_name: str, train_on: str | None, as_json: bool) -> None:
    """List the zoo, and with DATA the parameters of each model.

    \b
    trainer models --data data/aor --preset paper --json
    """
    from trainer.models.zoo import MODELS, count_parameters

    counts: dict[str, int] = {}
    if data:
        from trainer.core.errors import MissingShards
        from trainer.data.dataset import Dataset
        from trainer.models.zoo import open_demonstrations

        dataset = Dataset(data)
        kind = train_on or ("augmented" if dataset.has("augmented", "train") else "expert")
        for name, model in MODELS.items():
            config = preset(preset_name, model=name, train_on=kind)
            try:
                demonstrations = open_demonstrations(dataset, config)
                config, knowledge = model.study(demonstrations, config)
                counts[name] = count_parameters(config, demonstrations.contract, knowledge)
            except MissingShards:
                continue  # a dataset need not have tags, or variants
    if as_json:
        listed: dict[str, dict[str, Any]] = {name: {"about": model.about} for name, model in MODELS.items()}
        for name, number in counts.items():
            listed[name]["parameters"] = number
        click.echo(json.dumps(listed))
        return
    for name, model in MODELS.items():
        column = f"{counts[name]:>14,}" if name in counts else " " * 13 + "-" if data else ""
        click.echo(f"{name:<16}{column}  {model.about}")


@main.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--to", required=True, help="hf://org/name, or a folder.")
@click.option("--private", is_flag=True, help="Make the repository private, if it is new.")
def publish(run: Path, to: str, private: bool) -> None:
    """Publish the best agent of RUN with its card: one commit.

    \b
    trainer publish runs/aor --to hf://org/name
    """
    from trainer.publishing.publish import publish as send

    if not to:
        raise InvalidConfig("--to: hf://org/name or a folder is needed")
    click.echo(send(run, to, private))


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the runs; default: the file's."
)
@click.option("--seed", "seeds", type=click.IntRange(0), multiple=True, help="Only these seeds; can be repeated.")
@click.option("--preset", "preset_name", type=click.Choice([*PRESETS]), help="By default the file's.")
@click.option("--jobs", type=AT_ONCE, default=1, show_default=True, help="Cells at once.")
@click.option("--plan", is_flag=True, help="List the cells and the commands that make their data; run nothing.")
@device_option
@click.option("--threads", type=AT_ONCE, help="CPU threads of a cell; by default the cores, shared.")
def sweep(
    file: Path,
    out: Path | None,
    seeds: tuple[int, ...],
    preset_name: str | None,
    jobs: int,
    plan: bool,
    device: str,
    threads: int | None,
) -> None:
    """Run the grid of FILE: tasks, models, augmentation, designs, metrics, seeds. What is finished stays.

    \b
    trainer sweep cards/sweeps/main.toml --plan
    trainer sweep cards/sweeps/main.toml --jobs 2 --seed 0
    """
    from trainer.sweeps.grid import read_sweep
    from trainer.sweeps.runner import finished, missing, run_sweep

    asked = read_sweep(file, out, seeds, preset_name or "")
    if not plan:
        run_sweep(asked, jobs, threads, device, click.echo)
        return
    for source in missing(asked):
        click.echo(source.build or f"# {source.path} is missing")
    for cell in asked.cells:
        click.echo(f"{'done' if finished(cell, asked.out) else 'open'}  {cell.name}")


@main.command()
@click.argument("runs", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the report.")
@click.option("--title", default="Text editing as imitation game", show_default=True)
@click.option("--timing/--no-timing", default=True, show_default=True, help="Measure the inference time of AR*, NAR*.")
@threads_option
def report(runs: tuple[Path, ...], out: Path, title: str, timing: bool, threads: int | None) -> None:
    """Turn RUNS, folders of sweeps or earlier results.json, into tables and pictures beside the paper's.

    A cell that several of them have is taken from the first.

    \b
    trainer report runs/paper --out report
    trainer report runs/more report/results.json --out report
    """
    from trainer.report import report as write_report

    use_threads(threads)
    files, lines = write_report(runs, out, title, timing)
    for line in lines:
        click.echo(line)
    click.echo(f"{len(files)} files -> {files[0]}")
