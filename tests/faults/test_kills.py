"""kill -9 at random moments, then the same command again: the same bytes, the same weights, nothing half-visible.

``make test-faults`` runs these with many moments; ``make test`` has a few, here and beside what is killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.aegen.pairs.test_generate import content
from tests.hub import Hub
from tests.trainer.reference import small_dataset
from trainer.training.checkpoint import load_checkpoint

MANY = pytest.param(50, marks=pytest.mark.faults)
BUILD = ["aegen", "build", "aes", "--n", "100", "--l", "5", "--d", "3000", "--rows-per-shard", "300"]
FIT = ["--preset", "cpu", "--width", "16", "--layers", "1", "--batch", "64", "--device", "cpu", "--threads", "1"]
FIT += ["--updates", "120", "--save-every", "5", "--seed", "3"]


def start(*command, env=None):
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (env or {}),
    )


def finish(*command, env=None):
    process = start(*command, env=env)
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return out


def kill_within(process, begun, seconds):
    """Wait until the work has begun, then until a moment of it, and kill. Whether that came in time."""
    while process.poll() is None and not begun():
        time.sleep(0.002)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode == -9


def measured(process, begun):
    """Seconds of the work itself, without the start of Python."""
    while process.poll() is None and not begun():
        time.sleep(0.002)
    since = time.monotonic()
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return time.monotonic() - since


@pytest.mark.parametrize("moments", [MANY])
def test_builds(moments, tmp_path):
    whole = tmp_path / "whole"
    duration = measured(start(*BUILD, "--out", whole), whole.exists)
    wanted, killed, rng = content(whole), 0, random.Random(moments)
    while killed < moments:
        out = tmp_path / "killed"
        process = start(*BUILD, "--out", out, "--workers", rng.choice([1, 2]))
        killed += kill_within(process, out.exists, rng.uniform(0, duration))
        time.sleep(0.6)  # orphaned workers end when they see it
        for name, there in content(out).items():
            assert Path(name).name.startswith(".") or there == wanted[name], f"{name} is half-visible"
        finish(*BUILD, "--out", out)
        assert content(out) == wanted
        shutil.rmtree(out)


@pytest.mark.parametrize("moments", [MANY])
def test_publishing(moments, tmp_path):
    data = tmp_path / "data"
    finish("aegen", "build", "aec", "--n", "10", "--l", "4", "--d", "200", "--rows-per-shard", "20", "--out", data)
    wanted, rng, killed = content(data), random.Random(moments), 0
    command = ["aegen", "publish", data, "--to", "hf://org/aec", "--tag", "v1"]
    with Hub("hf_secret") as hub:
        settings = hub.settings(tmp_path / "home")
        duration = measured(start(*command, env=settings), lambda: hub.requests)
        wanted |= {"README.md": (data / "README.md").read_bytes()}  # the card names its repository now
        assert next(iter(hub.repositories.values()))[-1] == wanted
        while killed < moments:
            hub.repositories.clear()
            hub.objects.clear()
            hub.requests.clear()
            # Most of the time is spent verifying, before the first request: both halves are of interest.
            begun = (lambda: True) if rng.random() < 0.2 else lambda: hub.requests
            killed += kill_within(start(*command, env=settings), begun, rng.uniform(0, duration))
            for repository in hub.repositories.values():
                assert all(commit in ({}, wanted) for commit in repository), "a commit that is neither old nor new"
                assert all(repository[number] == wanted for number in repository.tags.values())
            finish(*command, env=settings)
            (repository,) = hub.repositories.values()
            assert repository[-1] == wanted and repository.tags == {"v1": len(repository) - 1}
            if killed % 10 < 2:  # also of two
                assert "nothing to do" in finish(*command, env=settings)
        assert content(data) == wanted


@pytest.mark.parametrize("moments", [MANY])
def test_publishing_to_a_folder(moments, tmp_path):
    data, there = tmp_path / "data", tmp_path / "there"
    finish("aegen", "build", "aec", "--n", "10", "--l", "4", "--d", "200", "--rows-per-shard", "20", "--out", data)
    wanted, rng, killed = content(data), random.Random(moments), 0
    command = ["aegen", "publish", data, "--to", there]
    duration = measured(start(*command), there.exists)
    assert content(there) == wanted
    while killed < moments:
        shutil.rmtree(there)
        killed += kill_within(start(*command), there.exists, rng.uniform(0, duration))
        left = {name: raw for name, raw in content(there).items() if not Path(name).name.startswith(".")}
        assert all(raw == wanted[name] for name, raw in left.items()), "a file is half-visible"
        assert "manifest.json" not in left or left == wanted, "finished too early"
        finish(*command)
        assert content(there) == wanted == content(data)


@pytest.mark.parametrize("moments", [MANY])
def test_training(moments, tmp_path):
    data = small_dataset(tmp_path / "data", "edit", shards=2, row_group_size=60)
    rng, killed = random.Random(moments), 0
    for stream in ([], ["--stream", "--stream-rows", "150"]):
        whole = tmp_path / f"whole{len(stream)}"
        command = ["trainer", "fit", data, *FIT, *stream]
        duration = measured(start(*command, "--out", whole), (whole / "last.safetensors").exists)
        goal = killed + moments // 2
        while killed < goal:
            out = tmp_path / "killed"
            for _ in range(min(5, goal - killed)):
                process = start(*command, "--resume", "--out", out)
                killed += kill_within(process, (out / "config.json").exists, rng.uniform(0, duration))
            finish(*command, "--resume", "--out", out)
            for name in ("best", "last"):
                one, two = (load_checkpoint(run / f"{name}.safetensors")[0] for run in (whole, out))
                assert one.keys() == two.keys() and all(one[key].equal(two[key]) for key in one)
            assert story(whole) == story(out)
            names = {path.name.split(".")[0] for path in out.iterdir()}
            assert names == {"config", "metrics", "events", "last", "best"}
            shutil.rmtree(out)


def story(run):
    """The lines of the metrics without the time they took."""
    return [json.loads(line) | {"seconds": 0} for line in (run / "metrics.jsonl").read_text().splitlines()]
