"""A dataset folder and the engine to work on it, as the commands and the Python API both need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aegen.dataset.folder import Folder
from aegen.engines.engine import Engine
from aegen.engines.start import start
from aegen.files.places import Remote


@contextmanager
def working(
    place: Path | Remote | str, engine: str | None, workers: int | None, scheduler: str | None, rows: int | None = None
) -> Iterator[tuple[Folder, Engine]]:
    """The folder and the started engine; without ``rows`` the folder is finished and tells its size itself."""
    folder = Folder(place)
    if (engine == "dask" or scheduler) and isinstance(folder.path, Path):
        folder = Folder(folder.path.absolute())  # workers may have another working directory
    rows = folder.manifest().rows("pairs") if rows is None else rows
    with start(engine, workers, scheduler, rows) as started:
        yield folder, started
