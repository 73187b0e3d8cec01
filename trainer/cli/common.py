"""What all commands share: the group that reports errors, and options that several commands have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from trainer import __version__
from trainer.core import interrupt
from trainer.core.config import GROUPS, settings
from trainer.core.errors import Failed, Interrupted, MissingExtra, TrainerError, refused
from trainer.training.presets import PRESETS

Function = TypeVar("Function", bound=Callable[..., Any])
# Modules of the base install that are imported late; click and msgspec are needed to get here.
REQUIRED = {
    "fsspec", "huggingface_hub", "jinja2", "numpy", "pyarrow", "safetensors", "tensorboard", "torch", "tqdm", "yaml",
}  # fmt: skip
DISTRIBUTIONS = {"jinja2": "Jinja2", "yaml": "PyYAML"}  # that have another name than their module


class Commands(click.Group):
    """Prints the errors that a user can meet as one line, with an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with interrupt.raising():
                return super().invoke(ctx)
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            if name not in REQUIRED:
                raise
            _fail(MissingExtra(DISTRIBUTIONS.get(name, name)))
        except TrainerError as error:
            _fail(error)
        except MemoryError:
            _fail(Failed("not enough memory"))
        except KeyboardInterrupt:
            _fail(Interrupted(interrupt.message(ctx.invoked_subcommand)))
        except BrokenPipeError:
            raise  # the reader closed the pipe: click exits quietly
        except OSError as error:
            _fail(refused(error))


def _fail(error: TrainerError) -> None:
    click.echo(f"Error: {' '.join(str(error).split())}", err=True)
    sys.exit(error.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="trainer")
def main() -> None:
    """Train agents that edit text from demonstrations, and run them.

    \b
    Examples:
      trainer fit aor --out runs/aor
      trainer evaluate runs/aor
      trainer edit runs/aor "3 6 2 9 3"
    """
    # Waiting threads must sleep: spinning ones made a busy two-core machine play 70 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class Grouped(click.Command):
    """A command whose help shows its options in groups: those of the config's settings, after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {one.name: one.group for one in settings()}
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], **{one: [] for one in GROUPS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record:
                groups[group_of.get(parameter.name or "", "Options")].append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


def folders(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For a shell: an argument that may be a folder, a hub id or a URL is completed as a folder."""
    return [CompletionItem(incomplete, type="dir")]


FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
AT_ONCE = click.IntRange(1, 1024)  # threads or processes: more than any machine has
device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device to compute on; auto: a GPU if there is one.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
threads_option = click.option("--threads", type=AT_ONCE, show_default="all cores", help="CPU threads.")

edits_option = click.option(
    "--edits-per-round",
    type=click.IntRange(1, 1024),
    default=1,
    show_default="1, the paper's game",
    help="Edits made before the agent reads the text again: the most certain ones that do not touch (editor only).",
)


def preset_option(default: str | None, explained: str | bool = True) -> Callable[[Function], Function]:
    """The option ``--preset``, with its default or what the default depends on."""
    return click.option(
        "--preset",
        "preset_name",
        type=click.Choice([*PRESETS]),
        default=default,
        show_default=explained,
        help="Named set of settings; paper, released: as published, hours on a GPU; core-hours: their agents in 3 to 35"
        " minutes of one core; fast: the planner's; cpu: minutes.",
    )


def use_threads(threads: int | None) -> None:
    """Limit the threads of PyTorch."""
    if threads:
        import torch

        torch.set_num_threads(threads)
