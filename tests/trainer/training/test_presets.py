"""The presets: what the paper says, what the released code does, and what each difference means."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.reference import pairs_of, write_dataset
from trainer.core.config import Config, settings
from trainer.core.errors import InvalidConfig
from trainer.core.progress import Reporter
from trainer.data.batches import EpochOrder
from trainer.data.dataset import Dataset
from trainer.models.zoo import MODELS, open_demonstrations
from trainer.training import presets
from trainer.training.fit import train_run
from trainer.training.loop import learning_rate
from trainer.training.presets import PRESETS, default_preset, preset

CARD = Path(__file__).parents[3] / "cards" / "presets.md"
QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}
TINY = {
    "width": 16,
    "layers": 1,
    "batch": 16,
    "epochs": 3,
    "learning_rate": 1e-2,
    "updates": 0,
    "restart": 2,
    "validate_every": 1,
}


def story(run):
    return list(map(json.loads, (run / "metrics.jsonl").read_text().splitlines()))


def test_the_page_has_the_values_of_the_presets():
    head, *rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in CARD.read_text().splitlines()
        if line.startswith("|") and "---" not in line
    ]
    assert head[2:] == ["paper", "released", "core-hours"]
    for setting, _, *values in rows:
        for name, value in zip(head[2:], values, strict=True):
            assert value == str(getattr(preset(name), setting)), (name, setting)
    # No other setting tells these presets apart.
    told = {row[0] for row in rows}
    for setting in settings():
        values = {getattr(preset(name), setting.name) for name in head[2:]}
        assert len(values) == 1 or setting.name in told, setting.name


def test_every_model_has_a_config_in_every_preset():
    assert all(preset(name, model=model).model == model for name in PRESETS for model in MODELS)


def test_the_earlier_works_agent_keeps_its_learning_rate():
    for model in ("recurrence", "recurrence-star"):
        assert [preset(name, model=model).learning_rate for name in ("paper", "released")] == [1e-4, 1e-4]
        assert preset("paper", model=model, learning_rate=0.5).learning_rate == 0.5
        assert preset("core-hours", model=model).learning_rate == preset("core-hours").learning_rate
        assert [preset(name, model=model).schedule for name in ("paper", "released", "core-hours")] == [
            "constant", "constant", "cosine",
        ]  # fmt: skip
    assert preset("paper", model="ar").learning_rate == 1e-3


def test_the_device_decides_the_default(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert default_preset({}) == default_preset({"model": "ar"}, "cuda") == "paper"
    assert default_preset({"model": "planner"}) == default_preset({"model": "planner"}, "cpu") == "fast"
    assert default_preset({}, "cpu") == "fast" and default_preset({"model": "ar"}, "cpu") == "cpu"
    monkeypatch.undo()
    assert default_preset({"stream": True}, "cpu") == "cpu"


def test_a_rate_of_each_epoch_or_of_each_update():
    epoch = Config(restart=4, learning_rate=1.0, rate_every="epoch")
    assert learning_rate(epoch, 1.0, 0) == learning_rate(epoch, 1.9, 0) > learning_rate(epoch, 2.0, 0)
    update = Config(restart=4, learning_rate=1.0)
    assert learning_rate(update, 1.0, 0) > learning_rate(update, 1.9, 0)


def test_weight_decay_falls_with_the_number_of_steps(insert):
    def decay(**changes):
        config = preset("cpu", model="nar-star", weight_decay=0.5, **changes)
        return MODELS["nar-star"].study(data, config)[0]

    data = open_demonstrations(Dataset(insert), preset("cpu"))
    steps = len(data.steps)
    assert decay().weight_decay == decay(decay_steps=steps).weight_decay == decay(decay_steps=2 * steps).weight_decay
    found = decay(decay_steps=steps // 4)
    assert found.weight_decay == pytest.approx(0.5 * (steps // 4) / steps)
    # What was found is not divided again, as when a run practises.
    assert MODELS["nar-star"].study(data, found)[0] == found
    with pytest.raises(InvalidConfig, match="decay_steps"):
        decay(decay_steps=1, stream=True)


def test_a_last_batch_that_is_not_full_can_be_dropped(insert):
    steps = open_demonstrations(Dataset(insert), preset("cpu")).steps
    size = 50
    assert len(steps) % size and steps.trajectories % size
    for epoch, total in (("steps", len(steps)), ("pairs", steps.trajectories)):
        kept, dropped = (EpochOrder(steps, Config(epoch=epoch, last_batch=how), size) for how in ("keep", "drop"))
        assert len(dropped) == total // size == len(kept) - 1
        assert all(len(dropped[index]) == size for index in range(len(dropped)))
    # An epoch that has less than one batch keeps it.
    assert len(EpochOrder(steps, Config(last_batch="drop"), len(steps) + 1)) == 1


@pytest.mark.parametrize(("ties", "best"), [("first", 0), ("last", 2)])
def test_which_of_equally_good_checkpoints_is_the_best(datasets, tmp_path, ties, best):
    # With so small a learning rate nothing changes, so all epochs are equally good.
    config = preset("cpu", **(TINY | {"learning_rate": 1e-9, "ties": ties}))
    result = train_run(datasets["edit"], config, tmp_path / "run", **QUIET)
    assert len({line["validation"]["equation_accuracy"] for line in story(tmp_path / "run")}) == 1
    assert result.best_epoch == best


@pytest.mark.parametrize(
    ("design", "select", "measure"),
    [
        ("span", "released", "token_accuracy"),
        ("edit", "released", "equation_accuracy"),
        ("span", "accuracy", "equation_accuracy"),
        ("span", "loss", "loss"),
    ],
)
def test_what_selects_a_checkpoint(datasets, tmp_path, design, select, measure):
    config = preset("cpu", **(TINY | {"select": select}))
    result = train_run(datasets[design], config, tmp_path / "run", **QUIET)
    values = [line["validation"][measure] for line in story(tmp_path / "run")]
    best = min(values) if measure == "loss" else max(values)
    assert values[result.best_epoch] == best
    assert result.best == pytest.approx(-best if measure == "loss" else best / 100, abs=1e-5)


def test_the_released_adaptive_loss_is_a_mean_over_the_slots(datasets, tmp_path):
    for scale in ("sum", "mean"):
        config = preset("cpu", **(TINY | {"adaptive_scale": scale}))
        train_run(datasets["edit"], config, tmp_path / scale, **QUIET)
        first, second, _ = (sum(line["slot_weights"]) for line in story(tmp_path / scale))
        assert (first, second) == pytest.approx((1, 1 if scale == "sum" else 1 / 3))


def test_an_agent_can_learn_from_variants(tmp_path):
    pairs = pairs_of("edit", 40)
    splits = {"train": pairs[:24], "validation": pairs[24:]}
    folder = write_dataset(tmp_path / "data", "edit", splits, variants=pairs[24:40])
    counts = {
        kind: len(open_demonstrations(Dataset(folder), preset("cpu", model="nar-star", train_on=kind)).steps)
        for kind in ("expert", "variants")
    }
    assert counts["variants"] > counts["expert"]


def test_equal_lengths_need_steps_that_are_chosen_in_advance():
    with pytest.raises(InvalidConfig, match="field lengths: equal requires epoch steps"):
        preset("paper", lengths="equal")


def test_exceptions_name_presets_and_models_that_exist():
    assert all(name in PRESETS and model in MODELS for name, model in presets.EXCEPTIONS)
