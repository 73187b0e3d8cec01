"""The command ``trainer``, also as ``python -m trainer``."""

import os
import sys

from trainer import interrupt


def main() -> None:
    """Be ready for Ctrl-C, then load the rest."""
    interrupt.ready()
    from trainer.cli import main as command

    try:
        command(prog_name="trainer")
    except SystemExit as end:
        # All is said and saved: nobody who interrupts waits until PyTorch has tidied up. And of torchrun's ranks one
        # in hundreds aborts while Python ends: gloo's threads go on after the group is destroyed, and need Python.
        if isinstance(end.code, int) and (end.code == interrupt.CODE or "RANK" in os.environ):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise


if __name__ == "__main__":
    main()
