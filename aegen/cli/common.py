"""Shared by all commands: the group that turns errors into messages, and the options of more than one command."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from aegen import __version__
from aegen.core import interrupt
from aegen.core.errors import AegenError, InvalidSpec

if TYPE_CHECKING:
    from aegen.dataset.manifest import Manifest

    Parameter = click.ParamType[Any]
else:
    Parameter = click.ParamType  # generic in new versions of click only

Function = TypeVar("Function", bound=Callable[..., Any])
# Errors that another file name or location would fix: wrong use, exit code 2.
WRONG_USE = (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
WRONG_NAME = {errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}


class Place(Parameter):
    """A folder, or a storage URL."""

    name = "place"
    kind = "dir"  # what a shell completes it to

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from aegen.files.places import location

        return location(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.kind)]


class LocalPath(Place):
    """A local file or folder."""

    name = "path"
    kind = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        place = super().convert(value, param, ctx)
        if not isinstance(place, Path):
            raise InvalidSpec(f"{place}: expected a local file or folder")
        return place


class Source(Place):
    """A place to read from: a folder, a storage URL, or a repository of the hub."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from aegen.files.places import SCHEME

        return value if value.startswith(SCHEME) else super().convert(value, param, ctx)


PLACE, FOLDER, SOURCE = Place(), LocalPath(), Source()


def colours() -> bool:
    """Whether standard output is a terminal that wants colours: https://no-color.org."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Commands(click.Group):
    """Turns our errors and the operating system's into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with interrupt.raising():
                return super().invoke(ctx)
        except AegenError as error:
            _fail(str(error), error.exit_code)
        except MemoryError:
            _fail("not enough memory", 1)
        except KeyboardInterrupt:
            _fail(interrupt.MESSAGE, interrupt.CODE)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has closed the pipe
            sys.exit(1)
        except OSError as error:
            wrong_use = isinstance(error, WRONG_USE) or error.errno in WRONG_NAME
            name = f"{error.filename}: " if error.filename else ""
            _fail(f"{name}{error.strerror or error}", 2 if wrong_use else 1)


def _fail(message: str, code: int) -> None:
    click.echo(f"Error: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def main() -> None:
    """Turn text pairs into state-action demonstrations.

    \b
    Examples:
      aegen build aor --n 10 --l 5 --d 10000 --out aor
      aegen show aor
    """


def options(*decorators: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Combine several options into one decorator."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def also_taking(old: str, new: str) -> type[click.Command]:
    """A command that takes an option by its former name too: older cards and results have it in their commands."""

    class Command(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            named = [new + arg[len(old) :] if arg == old or arg.startswith(f"{old}=") else arg for arg in args]
            return super().parse_args(ctx, named)

    return Command


class Default:
    """The default of a record's field, which is read when it is needed: importing the record takes a while.

    >>> str(Default(SPEC, "errors")), Default(SPEC, "errors")()
    ('3', 3)
    """

    def __init__(self, record: str, field: str) -> None:
        self.record, self.field = record, field

    def __call__(self) -> Any:
        module, _, record = self.record.partition(":")
        return getattr(getattr(import_module(module), record), self.field)

    def __str__(self) -> str:
        return str(self())


def setting(record: str, flag: str, kind: type, help: str) -> Callable[[Function], Function]:
    """An option that is a field of a record, which holds its default."""
    default = Default(record, flag.removeprefix("--").replace("-", "_"))
    return click.option(flag, type=kind, default=default, show_default=True, help=help)


def tasks(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For a shell: the benchmarks that begin so."""
    from aegen.arithmetic.tasks import TASKS

    return [name for name in TASKS if name.startswith(incomplete)]


SPEC, IMPORT = "aegen.pairs.spec:Spec", "aegen.pairs.importing:Import"
AUGMENTATION = "aegen.experts.augment:Augmentation"
seed_option = setting(SPEC, "--seed", int, "Random seed.")
shard_option = setting(SPEC, "--rows-per-shard", int, "Maximum number of pairs per shard.")
_sizes = (
    click.argument("task", shell_complete=tasks),
    click.option("--n", type=int, required=True, help="Number of integers: 2 … N+1."),
    click.option("--l", type=int, required=True, help="Integers per equation, including the right-hand side."),
)
_division = click.option("--division", is_flag=True, help="AES: allow division inside parentheses.")
_errors = setting(SPEC, "--errors", int, "AEC: maximum number of errors per source.")
spec_options = options(
    *_sizes,
    click.option("--d", type=int, required=True, help="Number of equations, all splits together."),
    seed_option,
    click.option(
        "--split-by",
        "split",
        type=click.Choice(["source", "paper"]),
        default=Default(SPEC, "split"),
        show_default=True,
        help="source: no two splits share a source; paper: split at random, as in the paper.",
    ),
    _division,
    _errors,
    setting(SPEC, "--variants", int, "AES, AEC: additional sources per training target."),
    shard_option,
)
equation_options = options(
    *_sizes,
    click.option("--d", type=int, required=True, help="Number of sources."),
    seed_option,
    _division,
    _errors,
    shard_option,
)
out_option = click.option("--out", type=FOLDER, required=True, help="Output folder.")
place_option = click.option(
    "--out", type=PLACE, required=True, help="Output folder, or a URL such as s3://bucket/name."
)
workers_option = click.option("--workers", type=int, help="Worker processes; default: chosen by dataset size.")
engine_options = options(
    click.option("--engine", help="Where the workers run: local or dask; default: local, or dask with --scheduler."),
    workers_option,
    click.option("--scheduler", help="dask: address of the cluster's scheduler, for example tcp://host:8786."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
metric_option = click.option(
    "--metric", help="Edit metric: levenshtein, lcs, span or package.module:function; default: by task."
)
expert_options = options(
    metric_option,
    click.option("--design", help="Action design: insert, edit, span, span2 or span3; default: by task."),
)
augment_options = options(
    setting(AUGMENTATION, "--algorithm", str, "TA as in the paper or in its released code: paper or released."),
    setting(AUGMENTATION, "--max-edits", int, "With more edits than this, sample the shifted states of a pair."),
    click.option(
        "--max-states",
        type=int,
        show_default="1024; text: 9, at most ten times the steps",
        help="Take at most this many shifted states of a pair, a random sample if there are more.",
    ),
)


def report(function: Callable[..., tuple[Manifest, bool]]) -> Callable[..., None]:
    """Print the row counts of the dataset that a command has written."""

    @wraps(function)
    def wrapper(*args: Any, as_json: bool, **kwargs: Any) -> None:
        manifest, worked = function(*args, **kwargs)
        folder = kwargs.get("out") or kwargs.get("folder")
        rows = {config: manifest.rows(config) for config in manifest.configs}
        if as_json:
            click.echo(json.dumps({"folder": str(folder), "rows": rows, "worked": worked}))
            return
        counts = ", ".join(f"{count:,} {config}" for config, count in rows.items())
        click.echo(f"{counts} -> {folder}" if worked else f"nothing to do: {folder} is complete ({counts})")

    return wrapper
