"""Progress for people: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]


@contextmanager
def silent(title: str, total: int) -> Iterator[Advance]:
    """No progress at all, for programs."""
    yield lambda steps: None


@contextmanager
def bar(title: str, total: int) -> Iterator[Advance]:
    """A bar on standard error when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    import click

    with click.progressbar(length=max(total, 1), label=title, file=sys.stderr) as shown:
        yield shown.update
