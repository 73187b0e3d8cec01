"""Commands that train, evaluate and run one agent, and the list of models."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainer.cli.common import (
    FOLDER,
    Grouped,
    device_option,
    folders,
    json_option,
    main,
    preset_option,
    threads_option,
    use_threads,
)
from trainer.core.config import MODEL_NAMES
from trainer.core.config import settings as all_settings
from trainer.core.errors import Failed, InvalidText
from trainer.core.format import visible
from trainer.training.presets import PRESETS

if TYPE_CHECKING:
    Choice = click.Choice[str]
else:
    Choice = click.Choice  # generic in new versions of click only


DEFAULT_MODEL = "planner without a GPU; nar-star with one, with --stream, and with another preset than fast"


class ModelName(Choice):
    """A name of the zoo, which the config checks: its message is one line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option for each setting; settings that are not given come from the preset."""
    for one in reversed(all_settings()):
        name = "--" + one.name.replace("_", "-")
        kind: Any = click.Choice(one.choices) if one.choices else type(one.default)
        if one.name == "model":
            option = click.option(name, type=ModelName(MODEL_NAMES), show_default=DEFAULT_MODEL, help=one.help)
        elif kind is bool:
            both, shown = (f"{name}/--no-{name[2:]}", name[2:]) if one.default else (name, "off")
            option = click.option(both, one.name, is_flag=True, default=None, show_default=shown, help=one.help)
        else:
            shown = default_by_preset(one.name, one.default)
            option = click.option(name, one.name, type=kind, show_default=shown, help=one.help)
        command = option(command)
    return command


def default_by_preset(name: str, default: object) -> str:
    """The default of a setting, with the presets that have another.

    >>> default_by_preset("width", 512)
    '512; core-hours: 128; cpu: 64'
    """
    others = [f"{preset}: {values[name]}" for preset, values in PRESETS.items() if values.get(name, default) != default]
    return "; ".join([str(default), *others])


@main.command(cls=Grouped)
@click.argument("data", shell_complete=folders)
@click.option("--out", type=FOLDER, required=True, help="Folder of the run.")
@preset_option(None, "paper with a GPU; without: fast for the planner, cpu for others")
@click.option("--resume", is_flag=True, help="Resume the run in the folder, if there is one.")
@click.option("--compile", "compiled", is_flag=True, help="Compile the model.")
@click.option(
    "--save-every", type=click.IntRange(1), default=1000, show_default=True, help="Updates between checkpoints."
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
    **settings: Any,
) -> None:
    """Train an agent on DATA: a dataset folder, a hub id, or a URL.

    \b
    Example:
      trainer fit data/aor --model nar-star --preset cpu --out runs/aor
      trainer fit data/aor --preset cpu --out runs/aor --resume
      torchrun --nproc-per-node 2 -m trainer fit data/aor --out runs/aor
    """
    from trainer.api import fit as train

    use_threads(threads)
    chosen = {name: value for name, value in settings.items() if value is not None}
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
        best = "none" if result.best is None else f"{result.best:.4f} in epoch {result.best_epoch}"
        click.echo(f"{out}: {result.updates:,} updates, best {best}, ended by {result.finished}")


@main.command()
@click.argument("run", shell_complete=folders)
@click.option("--data", shell_complete=folders, show_default="the dataset of the run", help="Dataset to play.")
@click.option(
    "--split",
    type=click.Choice(["train", "validation", "test"]),
    default="test",
    show_default=True,
    help="Split to play.",
)
@click.option("--limit", type=click.IntRange(1), show_default="all", help="Play only the first pairs.")
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
    """Measure the accuracy of the agent in RUN, a run folder or a hub id, on a split.

    \b
    Example: trainer evaluate runs/aor --split test
    """
    from trainer.agents.evaluation import evaluate_run

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
        click.echo(f"unreadable         {result['unreadable']:>10,}   returned unchanged: unknown tokens or too long")
    click.echo(f"games per second   {result['pairs_per_second']:>10,.0f}")


def read_lines() -> list[str]:
    """The lines of standard input."""
    try:
        return [line.rstrip("\r\n") for line in sys.stdin]
    except UnicodeDecodeError as error:
        raise InvalidText(f"standard input: not valid {error.encoding}: {error.reason}") from error


# A text may begin with a minus: unknown options are texts.
@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("run", shell_complete=folders)
@click.argument("texts", nargs=-1)
@device_option
@json_option
def edit(run: str, texts: tuple[str, ...], device: str, as_json: bool) -> None:
    """Edit TEXTS, or the lines of standard input, step by step with the agent in RUN.

    A text that the agent cannot read is reported, and the others are edited. The exit code is then 2, or 1 if it was
    a line of standard input.

    \b
    Example: trainer edit runs/aor "3 6 2 9 3"
    """
    from trainer.agents.agent import Agent

    agent = Agent.from_pretrained(run, device)
    lines = [*texts] or read_lines()
    readable = []
    for number, line in enumerate(lines, 1):
        try:
            agent.read(line)
            readable.append(line)
        except InvalidText as error:
            where = f"{'text' if texts else 'line'} {number}: " if len(lines) > 1 else ""
            click.echo(f"Error: {where}{error}", err=True)
    for game in agent.edit(readable):
        if as_json:
            moves = [vars(move) for move in game.moves]
            click.echo(json.dumps(vars(game) | {"moves": moves}))
            continue
        # The stream is named, or click would write UTF-8 to a terminal that says it has ASCII alone.
        say = partial(click.echo, file=sys.stdout)
        say(f"     {visible(game.source)}")
        for number, move in enumerate(game.moves):
            said = "  ".join(
                f"{token} {chance:.0%}" for token, chance in zip(move.action, move.probabilities, strict=True)
            )
            outcome = agent.marked(game, number) if move.verdict == "applied" else move.verdict
            say(f"{number + 1:>3}  {visible(said):<36}  {visible(outcome)}")
        why = {"done": "the agent said DONE", "limit": f"no DONE within {len(game.moves)} steps"}
        say(f"  =  {visible(game.text)}   ({why.get(game.ended, 'refused: ' + game.ended)})")
    if len(readable) < len(lines):
        sys.exit(InvalidText.exit_code if texts else Failed.exit_code)


@main.command()
@click.option("--data", shell_complete=folders, help="Dataset to count the parameters for.")
@preset_option("paper")
@click.option(
    "--train-on",
    type=click.Choice(["augmented", "expert"]),
    show_default="augmented if there",
    help="Demonstrations to count the parameters for.",
)
@json_option
def models(data: str | None, preset_name: str, train_on: Any, as_json: bool) -> None:
    """List the models, with --data also the parameters of each.

    \b
    Example: trainer models --data data/aor --preset paper --json
    """
    from trainer.models.zoo import MODELS

    counts: dict[str, int] = {}
    if data:
        from trainer.training.parameters import parameters_by_model

        counts = parameters_by_model(data, preset_name, train_on)
    if as_json:
        listed: dict[str, dict[str, Any]] = {name: {"about": model.about} for name, model in MODELS.items()}
        for name, number in counts.items():
            listed[name]["parameters"] = number
        click.echo(json.dumps(listed))
        return
    for name, model in MODELS.items():
        column = f"{counts[name]:>14,}" if name in counts else " " * 13 + "-" if data else ""
        click.echo(f"{name:<16}{column}  {model.about}")
