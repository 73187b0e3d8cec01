"""Choose and start an engine: what --engine, --workers and --scheduler ask for, or the same from a program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aegen.core.errors import InvalidSpec
from aegen.engines.engine import Engine
from aegen.engines.local import Local

ENGINES = ("local", "dask")
MOST = 1024  # workers: more would be a mistyped number, and would start processes until the memory is full
LARGE = 1_000_000  # rows from which all cores are used by default


@contextmanager
def start(
    engine: str | None = None, workers: int | None = None, scheduler: str | None = None, rows: int = 0
) -> Iterator[Engine]:
    """The engine that is asked for, started; by default one worker for few rows and all cores for many.

    >>> with start(workers=1) as engine:
    ...     list(engine.map(divmod, [(7, 2)]))
    [(3, 1)]
    """
    if engine is not None and engine not in ENGINES:
        raise InvalidSpec(f"engine={str(engine)[:60]}: expected one of {', '.join(ENGINES)}")
    if workers is not None and not (type(workers) is int and 1 <= workers <= MOST):
        raise InvalidSpec(f"workers={str(workers)[:60]}: expected a number from 1 to {MOST}")
    if engine != "dask" and scheduler is None:
        here = Local(workers or (1 if rows < LARGE else os.cpu_count() or 1))
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
