"""Where the training loop still looks for :func:`rules_of`."""

from trainer.game.rules import rules_of

__all__ = ["rules_of"]
