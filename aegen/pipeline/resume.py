"""Write only the shards that an interrupted run has not written yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aegen.core.description import FileInfo
from aegen.core.progress import Progress
from aegen.dataset.folder import Folder
from aegen.dataset.recipe import Recipe
from aegen.engines.engine import Engine


def write_missing(
    folder: Folder,
    recipe: Recipe,
    engine: Engine,
    progress: Progress,
    title: str,
    function: Callable[..., list[FileInfo]],
    calls: Mapping[tuple[str, ...], tuple[Any, ...]],
) -> dict[str, FileInfo]:
    """Run the calls whose shards are missing; size and hash of every shard.

    A call is keyed by the names of the shards that it writes, in the order in which it returns their ``FileInfo``.
    """
    files: dict[str, FileInfo] = {}
    jobs = ((folder, names, recipe, function, call) for names, call in calls.items())
    with progress(title, len(calls)) as advance:
        try:
            for names, made in zip(calls, engine.map(_ensure, jobs), strict=True):
                for name, info in zip(names, made, strict=True):
                    folder.check_there(name, info)
                    files[name] = info
                advance(1)
        except KeyboardInterrupt:
            engine.stop()  # before the folder removes partial files: a worker could write another one
            raise
    return files


def _ensure(
    folder: Folder,
    names: tuple[str, ...],
    recipe: Recipe,
    function: Callable[..., list[FileInfo]],
    call: tuple[Any, ...],
) -> list[FileInfo]:
    """The shards of one call: those of an interrupted run, or new ones."""
    done = [info for name in names if (info := folder.done(name, recipe))]
    return done if len(done) == len(names) else function(*call)
