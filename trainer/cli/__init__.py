"""The command ``trainer``: parse, call one library function, print the result.

Nothing heavy is imported here; each command imports what it needs.

Imports: core, models, training, agents, publishing, sweeps, report, playground.
"""

from trainer.cli import experiments, playing, serving, sharing, training
from trainer.cli.common import main

__all__ = ["experiments", "main", "playing", "serving", "sharing", "training"]
