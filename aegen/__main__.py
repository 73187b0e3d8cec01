"""The command ``aegen``, also as ``python -m aegen``."""

import sys
from io import TextIOWrapper

from aegen.core import interrupt


def main() -> None:
    """Prepare for Ctrl-C before anything slow is imported, then run the command."""
    interrupt.install()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # closed, or a test's
            stream.reconfigure(errors="replace")  # a terminal without a character shows ? in its place
    from aegen.cli import main as command

    command(prog_name="aegen")


if __name__ == "__main__":
    main()
