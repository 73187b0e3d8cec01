"""What a person sees of a run: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import IO, Any

REFRESH = 0.25  # seconds between two drawings of the bar
WIDTH = 24


def clock(seconds: float) -> str:
    """Seconds as people write them.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Reporter:
    """Draws the state of a run; ``quiet`` for the ranks that do not write."""

    def __init__(self, stream: IO[str] | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.bar = not quiet and self.stream.isatty()
        self.drawn = 0.0
        self.started: tuple[float, float] | None = None
        self.accuracy = ""

    def line(self, text: str) -> None:
        """One line that stays."""
        if not self.quiet:
            print(("\r\x1b[K" if self.bar else "") + text, file=self.stream, flush=True)

    def update(self, epoch: int, done: float, loss: Callable[[], float], rate: float) -> None:
        """Redraw the bar, at most a few times a second; ``done`` is the share of the whole run."""
        now = time.monotonic()
        if self.started is None:
            self.started = (now, done)
        if not self.bar or now - self.drawn < REFRESH:
            return
        self.drawn = now
        since, first = self.started
        left = (now - since) * (1 - done) / (done - first) if done > first else 0.0
        filled = int(WIDTH * min(done, 1))
        bar = "█" * filled + "·" * (WIDTH - filled)
        text = f"epoch {epoch} {bar} loss {loss():.4f}  lr {rate:.1e}{self.accuracy}  at most {clock(left)} left"
        print(f"\r\x1b[K{text}", end="", file=self.stream, flush=True)

    def epoch(self, record: dict[str, Any]) -> None:
        """The line of a finished epoch."""
        parts = [
            f"epoch {record['epoch']}",
            f"loss {record['loss']:.4f}",
            f"action acc. {record['action_accuracy']:.2f}",
            f"lr {record['learning_rate']:.1e}",
        ]
        if validation := record.get("validation"):
            name = "equation" if "equation_accuracy" in validation else "sequence"
            self.accuracy = f"  valid {name} acc. {validation[f'{name}_accuracy']:.2f}"
            parts += [
                f"valid loss {validation['loss']:.4f}",
                self.accuracy.strip() + (" *" if record["best"] else ""),
            ]
        self.line("  ".join([*parts, clock(record["seconds"])]))

    def close(self) -> None:
        """End the bar's line."""
        if self.bar and self.drawn:
            print(file=self.stream, flush=True)
