"""The command ``trainer``, also as ``python -m trainer``."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from trainer.core import interrupt


def main() -> None:
    """Prepare for Ctrl-C before anything slow is imported, then run the command."""
    interrupt.install()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # closed, or a test's
            stream.reconfigure(errors="replace")  # a terminal without a character shows ? in its place
    from trainer.cli import main as command

    try:
        command(prog_name="trainer")
    except SystemExit as end:
        # Everything is printed and saved, so do not wait for PyTorch's clean-up. Without this, one process in hundreds
        # aborts while Python exits: threads of gloo and Arrow live a moment longer, and need the interpreter.
        if isinstance(end.code, int):
            with suppress(OSError):  # the reader has closed the pipe
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(end.code)
        raise


if __name__ == "__main__":
    main()
