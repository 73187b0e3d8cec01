"""Where the work runs. An engine maps a pure function over its arguments, lazily and in order; nothing more.

A shard is a pure function of its arguments and what comes back of it is a few numbers, so no engine moves data.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, repeat, takewhile
from multiprocessing import forkserver, get_context, resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aegen.core import interrupt
from aegen.core.errors import Failed, InvalidSpec

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event


Result = TypeVar("Result")
BUNDLE = 16  # calls that read a few kilobytes each and go together
PATIENCE = 4  # how many finished results may wait for a slow one before them, for each that is being worked on


class Engine(Protocol):
    """Whatever runs calls somewhere."""

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls."""


def bundled(
    engine: Engine,
    function: Callable[..., Result],
    calls: Iterable[tuple[Any, ...]],
    weights: Iterable[int] | None = None,
    most: int = BUNDLE,
) -> Iterator[Result]:
    """What ``engine.map`` gives, of short calls of which many go together: a cluster needs longer to hand one over
    than it takes. A bundle ends when the weights of its calls (by default 1 each) reach ``most``.

    >>> list(bundled(Local(2), divmod, [(7, 2), (9, 4), (5, 5)], most=2))
    [(3, 1), (2, 1), (1, 0)]
    """
    if isinstance(engine, Local) and engine.workers <= 1:
        yield from engine.map(function, calls)  # nothing is handed over, so no more than one result is held
        return
    for results in engine.map(_run_bundle, ((function, bundle) for bundle in _bundles(calls, weights, most))):
        yield from results


def _bundles(
    calls: Iterable[tuple[Any, ...]], weights: Iterable[int] | None, most: int
) -> Iterator[list[tuple[Any, ...]]]:
    bundle, weight = [], 0
    for call, more in zip(calls, weights or repeat(1)):  # noqa: B905 - repeat has no end
        bundle.append(call)
        weight += more
        if weight >= most:
            yield bundle
            bundle, weight = [], 0
    if bundle:
        yield bundle


def _run_bundle(function: Callable[..., Result], calls: list[tuple[Any, ...]]) -> list[Result]:
    return [function(*call) for call in calls]


@dataclass(frozen=True)
class Local:
    """This process, or ``workers`` processes of this machine.

    >>> list(Local().map(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """

    workers: int = 1
    _pools: list[Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls; stops early without regret when the consumer does."""
        if self.workers <= 1:
            for call in calls:
                yield function(*call)
            return
        if not self._pools:
            with undisturbed():
                self._pools.append(Pool(self.workers))
        pool = self._pools[0]
        futures: list[Future[Result]] = []

        def submit(call: tuple[Any, ...]) -> Future[Result]:
            futures[:] = [future for future in futures if not future.done()]
            with undisturbed():  # it may start a process, and one that is half started cannot be ended
                futures.append(pool.executor.submit(function, *call))
            return futures[-1]

        def ready(waiting: list[Future[Result]]) -> None:
            while not wait(waiting, interrupt.LOOK, FIRST_COMPLETED).done:
                pass

        try:
            yield from in_order(submit, ready, results, calls, 2 * self.workers)
        except BrokenProcessPool:
            self._pools.clear()
            raise Failed("a worker process has ended early (out of memory?); run the same command again") from None
        except KeyboardInterrupt:
            self._pools.clear()
            pool.stop.set()  # nobody waits for shards that are half done, only until nobody writes any more
            pool.executor.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait until the end of the block, and for ever in the processes that are started within.

    A terminal sends it to all of them, and one that is just being started would answer with a traceback.
    """
    _start_tracker()  # now: its own start ends with Ctrl-C let through again
    asked: list[int] = []
    leading = threading.current_thread() is threading.main_thread()  # no other thread is ever interrupted
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number)) if leading else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if leading:
            signal.signal(signal.SIGINT, before)
    for number in asked[:1]:
        signal.raise_signal(number)


def _start_tracker() -> None:
    """Start what tidies up after processes that are killed, and let it do so without remarks."""
    usual = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [usual, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if usual is not None:
            os.environ["PYTHONWARNINGS"] = usual


def results(futures: list[Future[Result]]) -> Iterator[Result]:
    """Of futures that are done."""
    return (future.result() for future in futures)


class Pool:
    """Worker processes that stay for all that an engine is asked to do."""

    def __init__(self, workers: int) -> None:
        # "forkserver" starts clean processes: Arrow's threads do not survive a plain fork.
        context = get_context("forkserver")
        interrupt.HELD.add(id(self))  # for good: what processes are started with has a folder until the end of Python
        forkserver.ensure_running()
        self.stop = context.Event()
        self.executor = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_follow, initargs=(os.getpid(), self.stop, dict(os.environ))
        )


def in_order(
    submit: Callable[[tuple[Any, ...]], Any],
    ready: Callable[[list[Any]], None],
    collect: Callable[[list[Any]], Iterable[Any]],
    calls: Iterable[tuple[Any, ...]],
    width: int,
) -> Iterator[Any]:
    """Keep ``width`` futures at work and give their results in the order of the calls.

    ``ready`` waits until one of some futures is done, ``collect`` gets the results of those that are. What is
    finished early is kept, within a limit: results are small, workers that wait are not.
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
            ready([*working, *fresh])
        done = list(takewhile(lambda future: future.done(), pending))
        for _ in done:
            pending.popleft()
        yield from collect(done)


def _follow(leader: int, stop: Event, environment: dict[str, str]) -> None:
    """Leave Ctrl-C to the leader, and end when it says so or has ended, however it did.

    The environment is the leader's of now: that of the fork server may be older than the keys of a storage.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)

    def watch() -> None:
        while _alive(leader) and not stop.wait(0.5):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:  # killed but not yet noticed by its parent, which may be waiting for our output to end
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def local(workers: int | None, rows: int) -> Local:
    """As many workers as asked; without a wish, one for small work and all cores for large."""
    if workers is None:
        workers = 1 if rows < 1_000_000 else os.cpu_count() or 1
    return Local(workers)


@contextmanager
def start(engine: str | None, workers: int | None, scheduler: str | None, rows: int) -> Iterator[Engine]:
    """The engine that a command line asks for, for as long as it is needed."""
    if engine != "dask" and scheduler is None:
        yield local(workers, rows)
        return
    from aegen.engines.cluster import Dask

    cluster = Dask(workers=workers or os.cpu_count() or 1, scheduler=scheduler)
    if scheduler is not None and (workers or engine == "local"):
        raise InvalidSpec(f"--scheduler {scheduler}: the cluster decides where the work runs; leave the others out")
    with cluster:
        yield cluster
