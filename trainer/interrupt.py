"""Ctrl-C and a scheduler's SIGTERM: finish the update, save, end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


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
