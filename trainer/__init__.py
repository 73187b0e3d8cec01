"""Learn to edit text from demonstrations, and play: models, training, recurrent inference.

>>> from trainer import Agent  # doctest: +SKIP
>>> Agent.from_pretrained("org/name").edit("3 6 2 9 3").text  # doctest: +SKIP
'- 3 - 6 / 2 + 9 = 3'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.agent import Agent, Game, Move
    from trainer.core.config import Config, preset
    from trainer.core.errors import TrainerError
    from trainer.training.fit import fit

__version__ = "0.1.0"

# Loaded when they are first used, so that importing the package is fast and needs no extra.
_HOMES = {
    "Agent": "agent",
    "Config": "core.config",
    "Game": "agent",
    "Move": "agent",
    "TrainerError": "core.errors",
    "fit": "training.fit",
    "preset": "core.config",
}

__all__ = ["Agent", "Config", "Game", "Move", "TrainerError", "__version__", "fit", "preset"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trainer' has no attribute {name!r}")
    return getattr(import_module(f"trainer.{_HOMES[name]}"), name)
