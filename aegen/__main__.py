"""The command ``aegen``, also as ``python -m aegen``."""

from aegen.core import interrupt


def main() -> None:
    """Be ready for Ctrl-C, then load the rest."""
    interrupt.ready()
    from aegen.cli import main as command

    try:
        command(prog_name="aegen")
    finally:
        interrupt.end()


if __name__ == "__main__":
    main()
