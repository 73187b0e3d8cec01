from __future__ import annotations

import sys

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import aegen.gym
from aegen.core.actions import load_design
from aegen.core.errors import InvalidSpec
from aegen.core.format import split_state
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts.expert import Expert
from aegen.experts.metrics import load_metric
from aegen.experts.trajectory import trajectory
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
def test_gymnasium_accepts_the_game(task):
    check_env(gymnasium.make(f"aegen/{task.capitalize()}-v0", n=10, l=4, d=100).unwrapped)


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
@pytest.mark.parametrize("source", ["generated", "folder"])
def test_the_expert_wins(task, source, tmp_path):
    if source == "folder":
        pipeline.build(Spec(task, 10, 4, 60), Folder(tmp_path), Local())
        game = aegen.gym.EditGame(folder=tmp_path)
    else:
        game = gymnasium.make(f"aegen/{task.capitalize()}-v0", n=10, l=4, d=100).unwrapped
    expert = Expert.of(task)
    for pair in range(20):
        _, info = game.reset(seed=pair, options={"pair": pair})
        steps = trajectory(
            split_state(info["state"]),
            split_state(info["goal"]),
            load_metric(expert.metric),
            load_design(expert.design),
        )
        rewards = [game.step(game.encode(action))[1:4] for _, action in steps]
        assert rewards[-1] == (1.0, True, False)
        assert all(reward == (0.0, False, False) for reward in rewards[:-1])


def test_refused_actions_are_told_and_time_runs_out():
    game = gymnasium.make("aegen/Aor-v0", n=10, l=4, d=100, max_steps=2, render_mode="ansi").unwrapped
    observation, _ = game.reset(seed=1)
    again, reward, done, truncated, info = game.step(game.encode(("POS_8", "+")))
    assert (again == observation).all() and info["refusal"] == "out-of-range"
    assert (reward, done, truncated) == (0.0, False, False)
    assert game.step(game.encode(("DONE", "+")))[3] is True
    assert game.render() == info["state"]


@pytest.mark.parametrize("kind, paid", [("goal", 1.0), ("target", 0.0)])
def test_another_true_equation_wins_unless_the_target_is_asked_for(kind, paid):
    game = gymnasium.make("aegen/Aor-v0", n=10, l=4, d=100, reward=kind).unwrapped
    game.reset(seed=1)
    game.source, game.state, game.goal = split_state("4 2 2"), split_state("4 / 2 = 2"), split_state("4 - 2 = 2")
    assert game.step(game.encode(("DONE", "DONE")))[1:3] == (paid, True)


def test_texts_are_played_from_a_folder_of_texts_alone(tmp_path):
    texts, equations = Folder(tmp_path / "text"), Folder(tmp_path / "aor")
    pairs = tuple((f"a b {number}", f"a c {number}") for number in range(20))
    pipeline.import_pairs(Import(pairs=pairs, ratio="80/10/10"), texts)
    pipeline.add_demonstrations(texts, pipeline.demonstrator("text"), Local())
    pipeline.build(Spec("aor", 10, 4, 60), equations, Local())
    game = gymnasium.make("aegen/Text-v0", folder=texts.path).unwrapped
    game.reset(options={"pair": 0})
    game.step(game.encode(("REPLACE", "POS_1", "c")))
    assert game.step(game.encode(("DONE",) * 3))[1] == 1.0
    for name, folder in (("Text", equations), ("Aor", texts), ("Aes", equations)):
        with pytest.raises(InvalidSpec, match="a dataset of"):
            gymnasium.make(f"aegen/{name}-v0", folder=folder.path)
    with pytest.raises(InvalidSpec, match="expected the folder"):
        gymnasium.make("aegen/Text-v0")
    with pytest.raises(InvalidSpec, match="expected goal, target or share"):
        gymnasium.make("aegen/Aor-v0", reward="money")


@pytest.mark.parametrize("split,message", [("val", "expected one of train, validation, test"), ("test", "no pairs")])
@pytest.mark.parametrize("source", ["generated", "folder"])
def test_a_split_without_pairs_is_not_played(source, split, message, tmp_path):
    if source == "folder":
        pipeline.build(Spec("aor", 10, 4, 5), Folder(tmp_path), Local())
    with pytest.raises(InvalidSpec, match=f"split={split}: {message}"):
        aegen.gym.EditGame(l=4, d=5, split=split, folder=tmp_path if source == "folder" else None)


def test_a_dataset_that_does_not_say_what_winning_is_pays_for_targets_only(tmp_path, monkeypatch):
    monkeypatch.setattr("aegen.pipeline.generated.goal_of", lambda *given: None)
    pipeline.build(Spec("aor", 10, 4, 60), Folder(tmp_path), Local())
    with pytest.raises(InvalidSpec, match="its shards define no goal"):
        aegen.gym.EditGame(folder=tmp_path)
    assert aegen.gym.EditGame(folder=tmp_path, reward="target").pairs


def test_without_gymnasium_the_extra_is_named(run):
    code = "import sys; sys.modules['gymnasium'] = None; import aegen.gym"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install ".[gym]"' in done.stderr


def test_a_text_can_pay_a_share_of_its_target(tmp_path):
    pairs = tuple((f"a b {number}", f"a c {number}") for number in range(20))
    pipeline.import_pairs(Import(pairs=pairs, ratio="80/10/10"), Folder(tmp_path))
    pipeline.add_demonstrations(Folder(tmp_path), pipeline.demonstrator("text"), Local())
    game = gymnasium.make("aegen/Text-v0", folder=tmp_path, reward="share").unwrapped
    game.reset(options={"pair": 0})
    assert game.step(game.encode(("DONE",) * 3))[1] == pytest.approx(2 / 3)
    game.reset(options={"pair": 0})
    assert game.step(game.encode(("REPLACE", "POS_1", "c")))[1] == 0
    assert game.step(game.encode(("DONE",) * 3))[1] == 1.0
    with pytest.raises(InvalidSpec, match="reward=share is for text"):
        gymnasium.make("aegen/Aor-v0", n=10, l=4, d=100, reward="share")
