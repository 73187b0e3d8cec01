"""The engine of one machine: this process, or several worker processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar
from weakref import WeakSet

from aegen.core.errors import Failed
from aegen.core.interrupt import uninterrupted
from aegen.engines.engine import in_order

Result = TypeVar("Result")


@dataclass
class Local:
    """This process, or ``workers`` processes of this machine.

    >>> list(Local().map(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """

    workers: int = 1
    _pool: Pool | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def parallel(self) -> bool:
        return self.workers > 1

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls; calls that wait when the caller stops early are dropped."""
        if not self.parallel:
            for call in calls:
                yield function(*call)
            return
        try:
            with uninterrupted():
                self._pool = pool = self._pool or Pool(self.workers)
            submit = partial(pool.submit, function)
            yield from in_order(submit, partial(wait, return_when=FIRST_COMPLETED), results, calls, 2 * self.workers)
        except GeneratorExit:  # at once: an interrupt that comes while a generator is deleted would be lost
            pool.cancel()
            raise
        except BaseException as error:
            self.stop()
            if isinstance(error, BrokenProcessPool):
                raise Failed("a worker process ended early (out of memory?); rerun the command to continue") from None
            raise

    def stop(self) -> None:
        """End the workers at once; the next call starts new ones."""
        if self._pool:
            with uninterrupted():
                self._pool.kill()
                self._pool = None


def results(futures: list[Future[Result]]) -> Iterator[Result]:
    """Of futures that are done."""
    return (future.result() for future in futures)


class Pool:
    """Worker processes, kept for all calls of an engine."""

    def __init__(self, workers: int) -> None:
        # "forkserver" starts clean processes: Arrow's threads do not survive a plain fork.
        context = get_context("forkserver")
        forkserver.ensure_running()
        # Workers end when this pipe closes, which the system does even if this process is killed.
        held, self._leash = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_follow, initargs=(held, dict(os.environ))
        )
        self._futures: WeakSet[Future[Any]] = WeakSet()

    def submit(self, function: Callable[..., Result], call: tuple[Any, ...]) -> Future[Result]:
        with uninterrupted():  # it may start a process, and one that is half started cannot be ended
            future = self._executor.submit(function, *call)
        self._futures.add(future)
        return future

    def cancel(self) -> None:
        """Drop the calls that no worker has begun."""
        for future in list(self._futures):
            future.cancel()

    def kill(self) -> None:
        """End the workers at once, and return when none of them can write any more."""
        self._leash.close()
        self._executor.shutdown(wait=True, cancel_futures=True)


def _follow(leash: Connection, environment: dict[str, str]) -> None:
    """Prepare a worker process: end when the leader does, with the leader's present environment.

    That of the fork server may be older than the keys of a storage.
    """
    os.environ.clear()
    os.environ.update(environment)

    def watch() -> None:
        leash.poll(None)  # nothing is ever sent: it returns when the other end is closed
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
