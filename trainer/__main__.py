"""The command ``trainer``, also as ``python -m trainer``."""

import os
import sys
from contextlib import suppress

from trainer.core import interrupt


def main() -> None:
    """Be ready for Ctrl-C, then load the rest."""
    interrupt.ready()
    from trainer.cli import main as command

    try:
        command(prog_name="trainer")
    except SystemExit as end:
        # All is said and saved: nobody waits until PyTorch has tidied up. And one process in hundreds would abort while
        # Python ends: threads of gloo and Arrow go on for a moment, and need Python.
        if isinstance(end.code, int):
            with suppress(OSError):  # nobody reads any more
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(end.code)
        raise


if __name__ == "__main__":
    main()
