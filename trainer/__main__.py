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
        if end.code == interrupt.CODE:  # all is said and saved: nobody waits until PyTorch has tidied up
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(interrupt.CODE)
        raise


if __name__ == "__main__":
    main()
