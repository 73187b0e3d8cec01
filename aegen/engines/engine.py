"""What an engine is: it maps a pure function over its arguments, lazily and in order; nothing more.

A shard is a pure function of its arguments and its result is a few numbers, so no engine moves data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")
BUNDLE = 16  # short calls, which read a few kilobytes each, that are sent to a worker together
PATIENCE = 4  # finished results that may wait for a slow one before them, for each call at work


class Engine(Protocol):
    """Runs calls somewhere."""

    @property
    def parallel(self) -> bool:
        """Whether calls go to other processes."""

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls."""

    def stop(self) -> None:
        """End local workers at once, and return when none of them can write any more."""


def bundled(engine: Engine, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """``engine.map`` for short calls: sends many together, since sending one takes a cluster longer than running it.

    >>> from aegen.engines.local import Local
    >>> list(bundled(Local(), divmod, [(7, 2), (9, 4), (5, 5)]))
    [(3, 1), (2, 1), (1, 0)]
    """
    if not engine.parallel:
        yield from engine.map(function, calls)  # holds no more than one result
        return
    for results in engine.map(_run_bundle, ((function, bundle) for bundle in _bundles(calls))):
        yield from results


def _bundles(calls: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    waiting = iter(calls)
    while bundle := list(islice(waiting, BUNDLE)):
        yield bundle


def _run_bundle(function: Callable[..., Result], calls: list[tuple[Any, ...]]) -> list[Result]:
    return [function(*call) for call in calls]


def in_order(
    submit: Callable[[tuple[Any, ...]], Any],
    wait: Callable[[list[Any]], object],
    collect: Callable[[list[Any]], Iterable[Any]],
    calls: Iterable[tuple[Any, ...]],
    width: int,
) -> Iterator[Any]:
    """Keep ``width`` futures at work and yield their results in the order of the calls.

    ``wait`` waits until one of some futures is done, ``collect`` returns the results of done futures. Results that
    are ready early are kept, within a limit: results are small, idle workers are expensive.
    """
    pending: deque[Any] = deque()
    waiting = iter(calls)
    while True:
        working = [future for future in pending if not future.done()]
        room = min(width - len(working), PATIENCE * width - len(pending))
        fresh = [submit(call) for call in islice(waiting, max(0, room))]
        pending.extend(fresh)
        if not pending:
            return
        if not pending[0].done():
            wait([*working, *fresh])
        done = list(takewhile(lambda future: future.done(), pending))
        for _ in done:
            pending.popleft()
        yield from collect(done)
