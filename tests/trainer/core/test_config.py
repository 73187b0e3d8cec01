"""Settings: their types and limits, and what is said of a wrong one."""

import json

import pytest

from trainer.core.config import Config
from trainer.core.errors import InvalidConfig
from trainer.training.presets import preset


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 1}, "field width: expected int >= 2"),
        ({"width": 17}, "field width: expected int that's a multiple of 2"),
        ({"width": 16.0}, "field width: expected int, got float"),
        ({"batch": True}, "field batch: expected int, got bool"),
        ({"dropout": float("nan")}, "field dropout: expected float >= 0"),
        ({"dropout": "0.5"}, "field dropout: expected float, got str"),
        ({"init": "zeros"}, "field init: expected one of scaled, released, got 'zeros'"),
        ({"restart": 0}, "field restart: 0 .* requires a number of updates"),
    ],
)
def test_a_wrong_setting_is_named_however_it_is_given(settings, message):
    with pytest.raises(InvalidConfig, match=f"^{message}"):
        Config(**settings)
    with pytest.raises(InvalidConfig, match=f"^config.json: {message}"):
        Config.parse(settings, "config.json")


def test_a_config_survives_json_and_knows_its_settings():
    config = Config(learning_rate=1, model="ar")
    assert Config.parse(json.loads(json.dumps(config.to_json())), "config.json") == config
    assert isinstance(config.learning_rate, float)
    with pytest.raises(AttributeError):
        config.width = 4
    with pytest.raises(InvalidConfig, match="unknown setting 'depth'"):
        preset("cpu", depth=4)
    with pytest.raises(InvalidConfig, match="unknown preset 'gpu'; presets: paper, "):
        preset("gpu")
