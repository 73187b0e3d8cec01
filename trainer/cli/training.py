"""Commands that train one agent, and the list of models."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from trainer.core.config import MANY, MODEL_NAMES, MOST_UPDATES, ROUNDS, SAMPLES
from trainer.core.config import settings as all_settings
from trainer.training.presets import PRESETS

if TYPE_CHECKING:
    from trainer.training.fit import Result

    Choice = click.Choice[str]
else:
    Choice = click.Choice  # generic in new versions of click only


DEFAULT_MODEL = (
    "editor for text; for equations planner without a GPU, nar-star with one; nar-star with --stream or a preset other"
    " than fast"
)


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


@main.command(short_help="Train an agent on a dataset.", cls=Grouped)
@click.argument("data", shell_complete=folders)
@click.option("--out", type=FOLDER, required=True, help="Folder of the run.")
@preset_option(None, "paper with a GPU, but fast for --model planner; without: fast for the planner, cpu for others")
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
    Examples:
      trainer fit aor --model nar-star --preset cpu --out runs/aor
      trainer fit aor --preset cpu --out runs/aor --resume
      torchrun --nproc-per-node 2 -m trainer fit aor --out runs/aor
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
    tell(result, out, as_json)


def tell(result: Result, out: Path, as_json: bool) -> None:
    """Print what came of a run."""
    if result.main and as_json:
        click.echo(json.dumps(result.to_json()))
    elif result.main:
        when = "before practice" if result.best_epoch < 0 else f"in epoch {result.best_epoch}"
        best = "none" if result.best is None else f"{result.best:.4f} {when}"
        click.echo(f"{out}: {result.updates:,} updates, best {best}, ended by {result.finished}")


@main.command(short_help="Go on training an agent on its own games.")
@click.argument("run", shell_complete=folders)
@click.option("--out", type=FOLDER, required=True, help="Folder of the run that practises.")
@click.option("--sources", shell_complete=folders, help="Dataset of sources without targets to play as well.")
@click.option("--data", help="Demonstrations; default: the dataset that RUN was trained on.")
@click.option(
    "--rounds", type=click.IntRange(1, MANY), default=ROUNDS, show_default=True, help="Rounds of play and learning."
)
@click.option(
    "--samples",
    type=click.IntRange(1, MANY),
    default=SAMPLES,
    show_default=True,
    help="Games from each source in a round.",
)
@click.option(
    "--updates",
    type=click.IntRange(1, MOST_UPDATES),
    show_default="half of RUN's, times the square root of sources per demonstration",
    help="Updates of a round.",
)
@click.option(
    "--corrections/--no-corrections",
    default=True,
    show_default=True,
    help="Also learn the expert's answers to states that the agent came to (DAgger).",
)
@click.option("--seed", type=click.IntRange(0, (1 << 63) - 1), show_default="RUN's", help="Seed of all random choices.")
@click.option("--resume", is_flag=True, help="Resume the practice in the folder, if there is one.")
@click.option(
    "--save-every", type=click.IntRange(1), default=1000, show_default=True, help="Updates between checkpoints."
)
@device_option
@threads_option
@json_option
def practise(
    *,
    run: str,
    out: Path,
    resume: bool,
    save_every: int,
    device: str,
    threads: int | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Go on training the agent in RUN, a run folder or a hub id, on its own games: sample games, keep those that win,
    learn from them, repeat.

    The reward is used in training only; the practised agent is used like any other.

    \b
    Examples:
      trainer practise runs/aor --out runs/practised
      trainer practise runs/aor --sources free --out runs/practised-free
    """
    from trainer.api import practise as train

    use_threads(threads)
    result = train(run, out=out, resume=resume, device=device, save_every=save_every, **settings)
    tell(result, out, as_json)


@main.command(short_help="List the models.")
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
    Example: trainer models --data aor --preset paper --json
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
