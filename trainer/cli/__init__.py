"""The command ``trainer``: parse, call one library function, print what came of it.

Imports: core, data, models, training, publishing, sweeps, report.
"""

from trainer.cli.commands import main

__all__ = ["main"]
