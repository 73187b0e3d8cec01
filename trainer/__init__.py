"""Learn to edit text from demonstrations, and play: models, training, recurrent inference.

>>> import trainer
>>> run = trainer.fit("aes", model="planner", updates=200, out="runs/aes")
>>> agent = run.agent()
>>> agent.edit("61 + 6 - ( 81 - 73 ) = 59").text
'61 + 6 - 8 = 59'
>>> [game.text for game in agent.edit(["( 2 + 3 ) - 1 = 4", "7 - ( 9 - 4 ) = 2"])]
['5 - 1 = 4', '7 - 5 = 2']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.agents.agent import Agent, Game
    from trainer.api import Run, fit, load, practise
    from trainer.core.config import Config
    from trainer.core.errors import (
        BadData,
        Failed,
        FolderConflict,
        Interrupted,
        InvalidConfig,
        InvalidText,
        MissingExtra,
        MissingShards,
        TrainerError,
    )
    from trainer.game.moves import Move
    from trainer.training.presets import preset

__version__ = "0.1.0"

# Imported on first use, so that importing the package is fast and requires no extra.
_MODULES = {
    "agents.agent": ("Agent", "Game"),
    "api": ("Run", "fit", "load", "practise"),
    "core.config": ("Config",),
    "core.errors": (
        "BadData",
        "Failed",
        "FolderConflict",
        "Interrupted",
        "InvalidConfig",
        "InvalidText",
        "MissingExtra",
        "MissingShards",
        "TrainerError",
    ),
    "game.moves": ("Move",),
    "training.presets": ("preset",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Agent",
    "BadData",
    "Config",
    "Failed",
    "FolderConflict",
    "Game",
    "Interrupted",
    "InvalidConfig",
    "InvalidText",
    "MissingExtra",
    "MissingShards",
    "Move",
    "Run",
    "TrainerError",
    "__version__",
    "fit",
    "load",
    "practise",
    "preset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trainer' has no attribute {name!r}")
    return getattr(import_module(f"trainer.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
