"""What a person sees of a run: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

REFRESH = 0.25  # seconds between two drawings of the bar


def clock(seconds: float) -> str:
    """Seconds as people write them.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


@contextmanager
def counter(unit: str) -> Iterator[Callable[[int], object]]:
    """Counts what is done, on a terminal; nothing where the output goes to the same one."""
    hidden = not sys.stderr.isatty() or sys.stdout.isatty() or os.environ.get("TERM") == "dumb"
    if hidden:
        yield lambda done: None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(unit=f" {unit}", file=sys.stderr, mininterval=REFRESH, dynamic_ncols=True) as bar:
        yield bar.update


class Reporter:
    """Shows the state of a run; ``quiet`` on ranks that print nothing."""

    def __init__(self, stream: IO[str] | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.redraws = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.drawn = 0.0
        self.accuracy = ""
        self.bar: Any = None

    def line(self, text: str) -> None:
        """One line that stays."""
        if self.quiet:
            return
        if self.bar:
            self.bar.clear()
        print(text, file=self.stream, flush=True)

    def update(self, epoch: int, done: float, loss: Callable[[], float], rate: float) -> None:
        """Redraw the bar, at most a few times a second; ``done`` is the fraction of the whole run."""
        if self.quiet or not self.redraws or time.monotonic() - self.drawn < REFRESH:
            return
        if self.bar is None:
            from tqdm import tqdm

            size = shutil.get_terminal_size()  # tqdm draws nothing on a terminal that does not tell its size
            self.bar = tqdm(
                total=1.0, initial=done, file=self.stream, ncols=size.columns, nrows=size.lines, bar_format="{bar:24}"
            )
        self.drawn = time.monotonic()
        self.bar.n = min(done, 1.0)
        shown = f"loss {loss():.4f}  lr {rate:.1e}{self.accuracy}  at most {{remaining}} left"
        self.bar.bar_format = f"epoch {epoch} {{bar:24}} {shown}"
        self.bar.refresh()

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
        if self.bar:
            self.bar.close()
            self.bar = None
