"""The command ``aegen``, also as ``python -m aegen``."""

from aegen.core import interrupt


def main() -> None:
    """Prepare for Ctrl-C before anything slow is imported, then run the command."""
    interrupt.install()
    from aegen.cli import main as command

    command(prog_name="aegen")


if __name__ == "__main__":
    main()
