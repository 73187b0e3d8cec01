"""Where the work runs. An engine maps a pure function over its arguments, lazily and in order; nothing more."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Local:
    """This process, or ``workers`` processes of this machine.

    >>> list(Local().map(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """

    workers: int = 1

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls; stops early without regret when the consumer does."""
        if self.workers <= 1:
            for call in calls:
                yield function(*call)
            return
        pending: deque[Future[Result]] = deque()
        calls = iter(calls)
        # "forkserver" starts clean processes: Arrow's threads do not survive a plain fork.
        pool = ProcessPoolExecutor(
            self.workers, mp_context=get_context("forkserver"), initializer=_follow, initargs=(os.getpid(),)
        )
        try:
            for call in islice(calls, 2 * self.workers):
                pending.append(pool.submit(function, *call))
            while pending:
                result = pending.popleft().result()
                pending.extend(pool.submit(function, *call) for call in islice(calls, 1))
                yield result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _follow(leader: int) -> None:
    """Leave Ctrl-C to the leader, and end when it has ended, however it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while _alive(leader):
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def local(workers: int | None, rows: int) -> Local:
    """As many workers as asked; without a wish, one for small work and all cores for large."""
    if workers is None:
        workers = 1 if rows < 1_000_000 else os.cpu_count() or 1
    return Local(workers)
