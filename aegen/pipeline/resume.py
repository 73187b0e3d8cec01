"""Make only the shards that an interrupted run has not made yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aegen.core.progress import Progress
from aegen.core.types import SpecTree
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import FileInfo
from aegen.engines.local import Engine


def write_missing(
    folder: Folder,
    spec: SpecTree,
    engine: Engine,
    progress: Progress,
    title: str,
    function: Callable[..., list[FileInfo]],
    calls: Mapping[tuple[str, ...], tuple[Any, ...]],
) -> dict[str, FileInfo]:
    """Run the calls whose shards are not all there yet; every shard with its hash.

    The names of a call are the shards that it makes, in the order in which it returns what became of them.
    """
    files: dict[str, FileInfo] = {}
    jobs = ((folder, names, spec, function, call) for names, call in calls.items())
    with progress(title, len(calls)) as advance:
        for names, made in zip(calls, engine.map(_ensure, jobs), strict=True):
            for name, info in zip(names, made, strict=True):
                folder.check_there(name, info)
                files[name] = info
            advance(1)
    return files


def _ensure(
    folder: Folder,
    names: tuple[str, ...],
    spec: SpecTree,
    function: Callable[..., list[FileInfo]],
    call: tuple[Any, ...],
) -> list[FileInfo]:
    """The shards of one call, where it runs: those that an interrupted run has made, or new ones."""
    there = [info for name in names if (info := folder.done(name, spec))]
    return there if len(there) == len(names) else function(*call)
