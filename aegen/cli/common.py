"""What all commands share: the group that explains errors, and the options that several have."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aegen.core import interrupt
from aegen.core.errors import AegenError, InvalidSpec

if TYPE_CHECKING:
    from aegen.dataset.folder import Folder
    from aegen.dataset.manifest import Manifest
    from aegen.engines.engine import Engine
    from aegen.files.places import Remote

Function = TypeVar("Function", bound=Callable[..., Any])
# What another name or another place would mend.
WRONG_USE = (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
WRONG_NAME = {errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}


class Place(click.ParamType[Any]):
    """A folder, or a URL of a storage."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from aegen.files.places import location

        return location(value)


class Here(Place):
    """A file or folder of this machine."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        place = super().convert(value, param, ctx)
        if not isinstance(place, Path):
            raise InvalidSpec(f"{place}: expected a file or folder on this machine")
        return place


PLACE, FOLDER = Place(), Here()


class Commands(click.Group):
    """Turns our errors, and the system's, into one line and an exit code."""

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
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has read enough
            sys.exit(1)
        except OSError as error:
            wrong_use = isinstance(error, WRONG_USE) or error.errno in WRONG_NAME
            name = f"{error.filename}: " if error.filename else ""
            _fail(f"{name}{error.strerror or error}", 2 if wrong_use else 1)


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
place_option = click.option(
    "--out", type=PLACE, required=True, help="Folder for the dataset, or a URL such as s3://bucket/name."
)
workers_option = click.option(
    "--workers", type=click.IntRange(1, 1024), help="Processes; default: as many as it is worth."
)
engine_options = options(
    click.option("--engine", type=click.Choice(["local", "dask"]), help="Who runs the workers; default: local."),
    workers_option,
    click.option("--scheduler", help="dask: run on the cluster of this scheduler, for example tcp://host:8786."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
expert_options = options(
    click.option("--metric", help="levenshtein, lcs, span or package.module:function; default: the task's."),
    click.option("--design", help="insert, edit, span, span2, span3; default: the task's."),
)
augment_options = options(
    click.option("--algorithm", default="paper", show_default=True, help="paper or released."),
    click.option("--max-edits", type=int, default=10, show_default=True, help="Up to here, all subsets of the edits."),
    click.option("--max-states", type=int, default=1024, show_default=True, help="Beyond, at most so many."),
)


@contextmanager
def working(
    place: Path | Remote, engine: str | None, workers: int | None, scheduler: str | None, rows: int | None = None
) -> Iterator[tuple[Folder, Engine]]:
    """A dataset folder and the engine to work on it."""
    from aegen.dataset.folder import Folder
    from aegen.engines.start import start

    if (engine == "dask" or scheduler) and isinstance(place, Path):
        place = place.absolute()  # workers may run in another folder
    folder = Folder(place)
    rows = folder.manifest().rows("pairs") if rows is None else rows
    with start(engine, workers, scheduler, rows) as started:
        yield folder, started


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
