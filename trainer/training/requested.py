"""The config that a user asks for: a preset, and the settings that were given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.core.config import Config
from trainer.core.device import find_device
from trainer.core.errors import InvalidConfig, TrainerError
from trainer.data.dataset import Dataset
from trainer.models.zoo import find_model
from trainer.training.presets import PRESETS, default_preset, preset


def requested_config(
    preset_name: str | None, given: Mapping[str, Any], device: str = "auto", text: bool = False
) -> Config:
    """The config; a setting that would change nothing is refused, so that nobody waits for its effect.

    Of ``text`` the default is the editor.

    >>> requested_config(None, {}, "cpu").model, requested_config(None, {}, "cpu", text=True).model
    ('planner', 'editor')
    >>> requested_config("cpu", {"model": "ar", "beam": 8}).beam  # as it would be anyway
    8
    >>> requested_config("cpu", {"model": "ar", "beam": 1})
    Traceback (most recent call last):
    trainer.core.errors.InvalidConfig: field beam: ar does not read it; leave it out
    """
    if takes_editor(preset_name, given, text):
        given = {**given, "model": "editor"}
    name = preset_name or default_preset(dict(given), device)
    chosen = find_model(preset(name, **given).model)
    if find_device(device).type == "cuda":
        given = {**chosen.gpu_settings, **given}
    config = preset(name, **given)
    model = find_model(config.model)
    usual = preset(name, **{key: value for key, value in given.items() if key not in model.unread})
    for key in given:
        if getattr(config, key) != getattr(usual, key):
            raise InvalidConfig(f"field {key}: {config.model} does not read it; leave it out")
    # expert is what a sweep says of a model without augmentation, whatever it learns from.
    if model.learns_from and given.get("train_on", "expert") not in ("expert", model.learns_from):
        raise InvalidConfig(f"field train_on: {config.model} learns from {model.learns_from} shards; leave it out")
    return config


def is_text(data: str | Path) -> bool:
    """Whether a dataset has edits of text, not of equations; bad data is reported where it is read."""
    try:
        dataset = Dataset(data)
        footers = dataset.footers("pairs", "train") if dataset.has("expert", "train") else []
    except TrainerError:
        return False
    return bool(footers and footers[0].description and not footers[0].description.arithmetic)


def takes_editor(preset_name: str | None, given: Mapping[str, Any], text: bool) -> bool:
    """Whether text decides on the model: nothing else has, and it is not a stream, which the editor cannot read."""
    return text and not preset_name and "model" not in given and not given.get("stream")


def why_this_model(preset_name: str | None, given: Mapping[str, Any], device: str = "auto", text: bool = False) -> str:
    """For the log, why a run that names no model trains the one it does.

    >>> why_this_model(None, {"stream": True}, "cpu")
    '--stream: the planner reads its data into memory'
    >>> why_this_model("cpu", {}, "cpu"), why_this_model("cpu", {"model": "ar"}, "cpu")
    ('the model of --preset cpu; the default is planner', '')
    >>> why_this_model(None, {}, "cpu", text=True)
    'the default for text: it reads any words and any length'
    """
    if "model" in given:
        return ""
    if takes_editor(preset_name, given, text):
        return "the default for text: it reads any words and any length"
    name, usual = default_preset(dict(given), device), default_preset({}, device)
    if preset_name:
        chosen, default = (PRESETS[one].get("model", Config().model) for one in (preset_name, usual))
        return f"the model of --preset {preset_name}" + (f"; the default is {default}" if default != chosen else "")
    if name != usual:
        return "--stream: the planner reads its data into memory"
    return "the default with a GPU" if usual == "paper" else "the default without a GPU"
