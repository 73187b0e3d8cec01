"""Training beyond memory learns what training in memory learns, and holds no more of a long dataset than of a short."""

import json
import subprocess
import sys

import pytest
import torch

from tests.trainer.reference import small_dataset
from trainer.batches import Stream
from trainer.config import preset
from trainer.data import Dataset
from trainer.device import Runtime
from trainer.progress import Reporter
from trainer.training import fit, open_training

QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}


def story(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_loss_of_a_stream_is_that_of_the_same_data_in_memory(tmp_path):
    data = small_dataset(tmp_path / "data", "edit", train=150, held_out=30, shards=4, row_group_size=60)
    curves = {}
    for name, changes in (("memory", {}), ("stream", {"stream": True, "stream_rows": 240})):
        config = preset(
            "cpu",
            width=32,
            layers=1,
            batch=32,
            updates=300,
            validate_every=2,
            dropout=0.0,
            teacher_forcing=1.0,
            patience=999,
            **changes,
        )
        fit(data, config, tmp_path / name, **QUIET)
        lines = [line for line in story(tmp_path / name) if "validation" in line]
        # Epochs differ a little in length (a window is made unique on its own), so the curves are compared by update.
        curves[name] = [
            next(line["validation"]["loss"] for line in lines if line["updates"] >= at) for at in (60, 150, 300)
        ]
        assert curves[name][-1] < curves[name][0] * 0.9
    for one, two in zip(curves["memory"], curves["stream"], strict=True):
        assert two == pytest.approx(one, rel=0.35)
    means = [sum(curve) / len(curve) for curve in curves.values()]
    assert means[1] == pytest.approx(means[0], rel=0.15)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_read_disjoint_row_groups_and_together_all(tmp_path, world):
    data = Dataset(small_dataset(tmp_path, "edit", train=100, shards=3, row_group_size=40))
    footers, contract = open_training(data, preset("cpu"))
    config = preset("cpu", stream=True, stream_rows=100)
    read = []
    for rank in range(world):
        stream = Stream(data, footers, contract, config, Runtime(torch.device("cpu"), rank, world))
        original = data.read_groups

        def watch(shard, groups, rank=rank, original=original):
            read.extend((rank, shard.name, group) for group in groups)
            return original(shard, groups)

        data.read_groups = watch
        for window in stream.windows(0):
            stream._load(window)
        data.read_groups = original
    places = [place[1:] for place in read]
    assert len(set(places)) == len(places) == sum(len(footer.groups) for footer in footers)
    assert {rank for rank, *_ in read} == set(range(world))


def test_any_position_of_a_stream_can_be_resumed(tmp_path):
    data = Dataset(small_dataset(tmp_path, "edit", train=100, shards=2, row_group_size=50))
    footers, contract = open_training(data, preset("cpu"))
    stream = Stream(
        data, footers, contract, preset("cpu", stream=True, stream_rows=60, batch=16), Runtime(torch.device("cpu"))
    )
    whole = list(stream.turns(1))
    assert len({turn.window for turn in whole}) > 1
    for at in range(0, len(whole), 5):
        again = next(stream.turns(1, whole[at].window, whole[at].index))
        assert torch.equal(again.batch.states, whole[at].batch.states)
        assert torch.equal(again.batch.actions, whole[at].batch.actions)


MEASURE = """
import resource, sys, torch
from trainer.batches import Stream
from trainer.config import preset
from trainer.data import Dataset
from trainer.device import Runtime
from trainer.training import open_training
torch.set_num_threads(1)
data = Dataset(sys.argv[1])
config = preset("cpu", stream=True, stream_rows=int(sys.argv[2]), batch=1024)
stream = Stream(data, *open_training(data, config), config, Runtime(torch.device("cpu")))
steps, peaks = 0, []
for epoch in range(int(sys.argv[3])):
    for turn in stream.turns(epoch):
        steps += len(turn.batch.actions)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    print(epoch, f"{steps:,} steps, peak {peaks[-1]} MB", flush=True)
"""


def peak(data, rows, epochs):
    """Peak megabytes of a process that streams a dataset some times, epoch by epoch."""
    command = [sys.executable, "-c", MEASURE, str(data), str(rows), str(epochs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stdout)
    return [int(line.split()[-2]) for line in done.stdout.splitlines()]


def test_memory_does_not_grow_with_the_data(tmp_path):
    few = small_dataset(tmp_path / "few", "edit", train=100, shards=2, row_group_size=500)
    many = small_dataset(tmp_path / "many", "edit", train=900, shards=8, row_group_size=500)
    assert peak(many, 1000, 3)[-1] < peak(few, 1000, 1)[0] + 40
