"""The command ``trainer``: parse, call one library function, print what came of it."""

from trainer.cli.commands import main

__all__ = ["main"]
