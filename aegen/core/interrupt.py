"""Ctrl-C, from the first moment of the command on: one line, exit code 130. Imports nothing that takes time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")
CODE = 130
SAID = "interrupted; what is finished is kept, and the same command goes on from there"
HELD: set[int] = set()  # whoever has processes and files that are gone only after an end in good order
ABANDONED: set[int] = set()  # calls that go on beside us
LOOK = 0.1  # seconds: an interrupt that comes to another thread does not wake the one that waits
AGAIN = 0.02  # seconds until an interrupt that waits for the end of an import comes again


def ready() -> None:
    """Be ready before anything else is imported; not where Ctrl-C is to be ignored, as in a background job."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def working() -> Iterator[None]:
    """The work of a command: within it an interrupt is an exception, and after it too late."""
    ours = signal.getsignal(signal.SIGINT) is _leave  # else somebody else has called the command and decides
    if ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def beside(function: Callable[[], Result]) -> Result:
    """Call another library that waits for threads of its own: a command that is interrupted does not wait with it."""
    if signal.getsignal(signal.SIGINT) is not _interrupt:
        return function()
    from concurrent.futures import Future, wait
    from threading import Thread

    outcome: Future[Result] = Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    try:
        Thread(target=call, daemon=True).start()
        while not wait([outcome], LOOK).done:
            pass
        return outcome.result()
    except KeyboardInterrupt:
        ABANDONED.add(id(outcome))
        raise


def end() -> None:
    """The end of an interrupted command: Python itself would wait for threads that nobody needs any more.

    What other libraries would do at its end may wait for them too; of all that only folders of processes are removed.
    """
    if ABANDONED:
        from multiprocessing import util

        util._run_finalizers()  # type: ignore[attr-defined]
        os._exit(CODE)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Modules do not expect an exception while they are imported, and nothing can be lost there but what is held."""
    at = frame
    while at:
        if at.f_code.co_filename.startswith("<frozen importlib"):
            if not HELD:
                _leave(number, frame)
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
            return
        at = at.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"Error: {SAID}\n".encode())
    os._exit(CODE)
