"""The planner as an agent of the zoo: it learns, goes on after a kill, and loads."""

import json

import pytest
import torch

from tests.trainer.reference import small_dataset
from tests.trainer.runs import QUIET, Stop, Stopper, same, story, torchrun, weights
from trainer.agents.agent import Agent
from trainer.core.errors import BadData, InvalidConfig
from trainer.training.checkpoint import load_checkpoint
from trainer.training.fit import train_run
from trainer.training.presets import preset
from trainer.training.run import sealed


@pytest.mark.parametrize(
    ("design", "changes"),
    [
        ("insert", {}), ("edit", {}), ("span", {}), ("edit", {"confidence": False, "beam": 1, "tokens": "characters"}),
    ],
)  # fmt: skip
def test_resuming_from_any_update_ends_with_the_same_bits(tmp_path, design, changes):
    data = small_dataset(tmp_path / "data", design)
    config = preset("fast", updates=20, **changes)
    whole = train_run(data, config, tmp_path / "whole", **QUIET, save_every=4)
    assert whole.updates == 20
    for after in (2, 17, 19):  # in the first stage, in the last, and just before the end
        run = tmp_path / f"cut-{after}"
        with pytest.raises(Stop):
            train_run(data, config, run, device="cpu", reporter=Stopper(after), save_every=3)
        train_run(data, config, run, **QUIET, resume=True, save_every=3)
        assert same(weights(run), weights(tmp_path / "whole")) and story(run) == story(tmp_path / "whole")


def test_another_seed_is_another_agent(datasets, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_run(datasets["edit"], preset("fast", updates=10, seed=seed), tmp_path / name, **QUIET)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


@pytest.mark.faults
def test_two_ranks_learn_what_one_learns(command, datasets, tmp_path):
    # The plan's dropout is drawn by each rank, so only the token network can be compared: it learns first.
    arguments = ["fit", datasets["edit"], "--preset", "fast", "--updates", 20, "--device", "cpu", "--threads", 1]
    command(*arguments, "--out", tmp_path / "one")
    torchrun(command, *arguments, "--out", tmp_path / "two")
    one, two = (load_checkpoint(tmp_path / name / "last.safetensors")[0] for name in ("one", "two"))
    names = [name for name in one if name.startswith("model.token.")]
    assert names and all(torch.allclose(one[name], two[name], atol=1e-4) for name in names)


def test_it_is_the_default_without_a_gpu_and_edits(invoke, datasets, tmp_path):
    def command(*arguments):
        return invoke(*arguments, module="trainer")

    done = command("fit", datasets["span"], "--out", tmp_path / "run", "--updates", 40, "--device", "cpu")
    assert "planner: " in done.stderr and "view span" in done.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["updates"] == 40
    source = Agent.from_pretrained(tmp_path / "run").contract.state_tokens[-1]
    moves = json.loads(command("edit", tmp_path / "run", source, "--json").stdout)["moves"]
    assert moves and all(0 < chance <= 1 for move in moves for chance in move["probabilities"])
    assert command("evaluate", tmp_path / "run", "--json").returncode == 0
    listed = json.loads(command("models", "--data", datasets["span"], "--json").stdout)
    parameters = json.loads((tmp_path / "run" / "config.json").read_text())["parameters"]
    assert listed["planner"]["parameters"] == parameters


def test_streaming_needs_another_model(datasets, tmp_path, invoke):
    with pytest.raises(InvalidConfig, match="planner reads its training data into memory; use it without --stream"):
        train_run(datasets["edit"], preset("fast", stream=True), tmp_path / "run", **QUIET)
    arguments = ["--width", 16, "--updates", 2, "--device", "cpu", "--out", tmp_path / "stream"]
    assert "nar-star" in invoke("fit", datasets["edit"], "--stream", *arguments, module="trainer").stderr


def test_altered_knowledge_is_named(datasets, tmp_path):
    train_run(datasets["edit"], preset("fast", updates=4), tmp_path / "run", **QUIET)
    path = tmp_path / "run" / "config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"knowledge": values["knowledge"] | {"reach": 10**9}}))
    with pytest.raises(BadData, match="reach"):
        Agent.from_pretrained(tmp_path / "run")
    path.write_text(json.dumps(sealed(values | {"knowledge": values["knowledge"] | {"reach": 2}})))
    with pytest.raises(BadData, match="of another model or dataset"):
        Agent.from_pretrained(tmp_path / "run")
