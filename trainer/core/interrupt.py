"""Ctrl-C and a scheduler's SIGTERM: while training finish the update, save, end; before that and elsewhere end at once.

Imports nothing that takes time: it is what the command starts with.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

CODE = 130
GOING_ON = {
    "fit": "what was saved is kept, and --resume goes on from there",
    "sweep": "the same command goes on from here",
}


def said(command: str | None) -> str:
    """What an interrupt of a command means for what it has done."""
    return f"interrupted; {GOING_ON.get(command or '', 'nothing was finished, and the same command begins anew')}"


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
    """Modules do not expect an exception while they are imported, and nothing can be lost there."""
    at = frame
    while at:
        if at.f_code.co_filename.startswith("<frozen importlib"):
            _leave(number, frame)
        at = at.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"Error: {said(sys.argv[1] if len(sys.argv) > 1 else None)}\n".encode())
    os._exit(CODE)


class Interrupt:
    """Within its block a signal only asks to stop; a second one, or one in ``at_once``, interrupts."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, active: bool = True) -> None:
        self.active = active and threading.current_thread() is threading.main_thread()
        self.requested = False
        self.immediate = False
        self.before: list[object] = []

    def __enter__(self) -> Interrupt:
        if self.active:
            self.before = [signal.signal(number, self._ask) for number in self.SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.active:
            for number, handler in zip(self.SIGNALS, self.before, strict=True):
                signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.requested or self.immediate:
            raise KeyboardInterrupt
        self.requested = True

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A stretch of work that may be dropped half-way."""
        if self.requested:
            raise KeyboardInterrupt
        self.immediate = True
        try:
            yield
        finally:
            self.immediate = False
