"""Ctrl-C and a scheduler's SIGTERM: while training finish the update, save, exit; otherwise exit at once, with one line
on standard error and code 130.

Imports nothing slow, since the command starts with it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from trainer.core.errors import Interrupted

RESUME = "saved checkpoints are kept; rerun with --resume to continue"
CONTINUE = {
    "fit": RESUME,
    "practise": RESUME,
    "sweep": "rerun the command to continue",
}


def message(command: str | None) -> str:
    """What an interrupt means for the results of a command."""
    return f"interrupted; {CONTINUE.get(command or '', 'nothing was saved; rerun the command to start over')}"


def install() -> None:
    """Until the command runs, Ctrl-C ends the process at once; a background job, which ignores it, still does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


@contextmanager
def raising() -> Iterator[None]:
    """While the command runs, Ctrl-C is a KeyboardInterrupt; after it, and after the first one, it is ignored."""
    ours = signal.getsignal(signal.SIGINT) is leave  # else the caller of the library decides
    if ours:
        signal.signal(signal.SIGINT, _raise_once)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"Error: {message(sys.argv[1] if len(sys.argv) > 1 else None)}\n".encode())
    os._exit(Interrupted.exit_code)


def _raise_once(number: int, frame: FrameType | None) -> None:
    """Raise, but not inside an import: importlib and some modules swallow exceptions there, and the command runs on."""
    at = frame
    while at and not at.f_code.co_filename.startswith("<frozen importlib"):
        at = at.f_back
    if at:
        leave(number, frame)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
    raise KeyboardInterrupt


class Interrupt:
    """Within the block a signal only requests a stop; a second one, or one in ``at_once``, raises KeyboardInterrupt."""

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
        """For work that may be abandoned halfway."""
        if self.requested:
            raise KeyboardInterrupt
        self.immediate = True
        try:
            yield
        finally:
            self.immediate = False
