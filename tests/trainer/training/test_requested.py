"""Settings that a model does not read: they change nothing, and nobody may ask for them in vain."""

import pytest
from msgspec.structs import replace

from tests.trainer.runs import QUIET, same, weights
from trainer.core.config import settings
from trainer.core.errors import InvalidConfig
from trainer.models.zoo import MODELS
from trainer.training.fit import train_run
from trainer.training.presets import preset
from trainer.training.requested import requested_config

SETTINGS = {one.name: one for one in settings()}
NUMBERS = {
    "width": 32, "layers": 2, "dropout": 0.3, "teacher_forcing": 0.9, "batch": 7, "learning_rate": 0.5, "beam": 3,
    "weight_decay": 9.0, "decay_steps": 5, "restart": 5, "stream_rows": 3, "auxiliary": 0.1, "confidence": False,
    "warm_up": 3, "encoder": "org/name",
}  # fmt: skip


def other(name, value):
    """Another value of a setting."""
    return next((choice for choice in SETTINGS[name].choices if choice != value), NUMBERS.get(name))


@pytest.mark.parametrize(("model", "design"), [("planner", "edit"), ("planner", "span"), ("ar", "insert")])
def test_what_is_not_read_changes_nothing(datasets, tmp_path, model, design):
    small = {} if model == "planner" else {"width": 8, "layers": 1}
    usual = preset("fast" if model == "planner" else "cpu", model=model, updates=6, **small)
    changes = {name: other(name, getattr(usual, name)) for name in MODELS[model].unread}
    changes |= {"epoch": "steps"} if changes.get("lengths") == "equal" else {}
    changed = replace(usual, **changes)
    for name, config in (("usual", usual), ("changed", changed)):
        train_run(datasets[design], config, tmp_path / name, **QUIET)
    assert same(weights(tmp_path / "usual", "best"), weights(tmp_path / "changed", "best"))


@pytest.mark.parametrize("model", ["planner", "nar-star", "tagging"])
def test_nobody_may_ask_for_it(model):
    name = "fast" if model == "planner" else "cpu"
    usual = preset(name, model=model)
    for setting in MODELS[model].unread - {"lengths"}:
        value = getattr(usual, setting)
        assert requested_config(name, {"model": model, setting: value}) == usual
        with pytest.raises(InvalidConfig, match=f"^field {setting}: {model} does not read it; leave it out$"):
            requested_config(name, {"model": model, setting: other(setting, value)})


def test_what_to_learn_from_is_asked_of_models_that_listen():
    for model, kind in MODELS.items():
        asked = {"model": model, "train_on": "augmented"}
        if kind.learns_from:
            with pytest.raises(InvalidConfig, match=f"^field train_on: {model} learns from {kind.learns_from} shards"):
                requested_config("cpu", asked)
        else:
            assert requested_config("cpu", asked).train_on == "augmented"
        assert requested_config("cpu", asked | {"train_on": "expert"})  # as the commands of a sweep say it
