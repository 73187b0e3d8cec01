"""Named sets of settings: ``paper`` is the paper's, ``cpu`` a narrower one, ``fast`` the planner with its recipe."""

from __future__ import annotations

from typing import Any

from trainer.core.config import Config
from trainer.core.errors import InvalidConfig

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"epoch": "pairs"},
    "fast": {"model": "planner", "clip": 1.0, "validate_every": 2},
    "core-hours": {
        "width": 128,
        "dropout": 0.2,
        "batch": 128,
        "learning_rate": 2e-3,
        "updates": 40_000,
        "restart": 0,
        "lengths": "equal",
        "clip": 1.0,
        "validate_every": 2,
    },
    # Three and a half minutes of one core for NAR* + TA on AOR. Two runs decided the batch, one seed each and not quite
    # equally long: 38.1 % of the validation's equations with 2,500 of 128 (209 s), 31.1 % with 1,500 of 256 (179 s).
    "cpu": {
        "width": 64,
        "dropout": 0.1,
        "batch": 128,
        "learning_rate": 4e-3,
        "updates": 2500,
        "restart": 0,
        "clip": 1.0,
        "validate_every": 2,  # a validation plays all games of a split
    },
}


def preset(name: str, /, **changes: Any) -> Config:
    """The config of a preset, with the chosen model's own settings and some values changed.

    >>> preset("cpu", model="nar-star", seed=3).batch
    128
    """
    from trainer.models.zoo import MODELS  # imports PyTorch, which a command's help does without

    if name not in PRESETS:
        raise InvalidConfig(f"unknown preset {name!r}; presets: {', '.join(PRESETS)}")
    model = MODELS.get(str(changes.get("model")))
    own = model.settings if model else {}
    return Config.parse({**PRESETS[name], **own, **changes}, f"preset {name}")


def default_preset(settings: dict[str, Any]) -> str:
    """The preset for this machine and these settings: ``paper`` on a GPU, else ``fast`` where the planner can do it."""
    import torch

    if torch.cuda.is_available():
        return "paper"
    return "cpu" if settings.get("model", "planner") != "planner" or settings.get("stream") else "fast"
