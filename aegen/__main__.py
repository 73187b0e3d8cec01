"""``python -m aegen`` is the command ``aegen``."""

from aegen.cli import main

main(prog_name="aegen")
