"""Progress for people: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], object]
Progress = Callable[[str, int], AbstractContextManager[Advance]]


@contextmanager
def silent(title: str, total: int) -> Iterator[Advance]:
    """No progress, for programs."""
    yield lambda steps: None


@contextmanager
def bar(title: str, total: int) -> Iterator[Advance]:
    """A bar on standard error if that is a terminal which can redraw a line."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda steps: None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(total=total or None, desc=title) as shown:
        yield shown.update
