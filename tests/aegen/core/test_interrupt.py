"""Ctrl-C in a library that waits for its own threads."""

import subprocess
import sys

import pytest

from aegen.core.interrupt import CODE, MESSAGE

PROGRAM = """
import signal, threading
from multiprocessing.util import Finalize
from aegen.core import interrupt

held = threading.Lock()
held.acquire()
Finalize(None, lambda: print("cleaned up", flush=True), exitpriority=20)
Finalize(None, held.acquire, exitpriority=10)  # as if the interrupted thread had it
interrupt.install()
with interrupt.raising(), interrupt.leaving():
    signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.usefixtures("interruptible")
def test_a_clean_up_that_cannot_end_does_not_keep_the_process():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (CODE, "cleaned up\n", f"Error: {MESSAGE}\n")
