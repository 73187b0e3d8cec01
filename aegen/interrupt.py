"""Ctrl-C, from the first moment of the command on: one line, exit code 130. Imports nothing that takes time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CODE = 130
SAID = "interrupted; what is finished is kept, and the same command goes on from there"
HELD: set[int] = set()  # whoever has processes and files that are gone only after an end in good order
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
