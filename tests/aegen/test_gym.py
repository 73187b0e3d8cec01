from __future__ import annotations

import sys

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import aegen.gym
from aegen.core.actions import load_design
from aegen.core.format import split_state
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts.expert import Expert
from aegen.experts.metrics import load_metric
from aegen.experts.trajectory import trajectory
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


def test_without_gymnasium_the_extra_is_named(run):
    code = "import sys; sys.modules['gymnasium'] = None; import aegen.gym"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "aegen[gym]"' in done.stderr
