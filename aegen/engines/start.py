"""Which engine a command line asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aegen.core.errors import InvalidSpec
from aegen.engines.engine import Engine
from aegen.engines.local import Local

LARGE = 1_000_000  # rows from which all cores are used by default


def local(workers: int | None, rows: int) -> Local:
    """As many workers as asked for; by default one for small work and all cores for large work."""
    if workers is None:
        workers = 1 if rows < LARGE else os.cpu_count() or 1
    return Local(workers)


@contextmanager
def start(engine: str | None, workers: int | None, scheduler: str | None, rows: int) -> Iterator[Engine]:
    """The engine of a command, started."""
    if engine != "dask" and scheduler is None:
        here = local(workers, rows)
        try:
            yield here
        finally:
            here.stop()
        return
    from aegen.engines.dask import Dask

    cluster = Dask(workers=workers or os.cpu_count() or 1, scheduler=scheduler)
    if scheduler is not None and (workers or engine == "local"):
        raise InvalidSpec(f"--scheduler {scheduler}: cannot be combined with --workers or --engine local")
    with cluster:
        yield cluster
