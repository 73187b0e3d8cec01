"""Ctrl-C: one line on standard error, exit code 130. Imports nothing slow, since the command starts with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CODE = 130
RETRY = 0.02  # seconds until an interrupt is raised that came where exceptions are dropped
PATIENCE = 3  # seconds that a clean-up may take
MESSAGE = "interrupted; finished files are kept; rerun the command to continue"


def install() -> None:
    """Until the command runs, Ctrl-C ends the process at once; a background job goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


@contextmanager
def raising() -> Iterator[None]:
    """While the command runs, Ctrl-C is a KeyboardInterrupt; after it, and after the first one, it is ignored."""
    ours = signal.getsignal(signal.SIGINT) is leave  # else the caller of the library decides
    if ours:
        signal.signal(signal.SIGINT, _raise_once)
        sys.unraisablehook = _raise_again
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.unraisablehook = sys.__unraisablehook__


@contextmanager
def leaving() -> Iterator[None]:
    """For calls that leave nothing to clean up, to a library that waits for its own threads even when interrupted.

    Within the block Ctrl-C ends the process at once; otherwise huggingface_hub would finish its uploads first.
    """
    ours = signal.getsignal(signal.SIGINT) is _raise_once
    if ours:
        signal.signal(signal.SIGINT, _leave_with_workers)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, _raise_once)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block, and keep it from the processes started in the block for good.

    A terminal sends it to all processes of a command, and one that is just starting would print a traceback.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # first, since it unblocks the signal when it starts
    asked: list[int] = []
    main = threading.current_thread() is threading.main_thread()  # no other thread is ever interrupted
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number)) if main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, before)
    if asked:
        signal.raise_signal(signal.SIGINT)


def leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"Error: {MESSAGE}\n".encode())
    os._exit(CODE)


def _leave_with_workers(number: int, frame: FrameType | None) -> None:
    from multiprocessing import util

    # What was interrupted may hold a lock that the clean-up waits for: then the process ends without it.
    signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    util._run_finalizers()  # type: ignore[attr-defined]  # removes the temporary folder of worker processes
    leave(number, frame)


def _raise_once(number: int, frame: FrameType | None) -> None:
    """Raise, but not inside an import: importlib and some modules swallow exceptions there, and the command runs on."""
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    if frame:
        if threading.active_count() == 1:  # no workers: there is nothing to clean up
            leave(number, frame)
        _retry()
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
    raise KeyboardInterrupt


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Python drops exceptions of destructors, such as those of dask's futures: an interrupt there must not be lost."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _retry()
    else:
        sys.__unraisablehook__(unraisable)


def _retry() -> None:
    signal.signal(signal.SIGALRM, _raise_once)
    signal.setitimer(signal.ITIMER_REAL, RETRY)
