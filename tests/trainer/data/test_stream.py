"""Training beyond memory learns what training in memory learns, and holds no more of a long dataset than of a short."""

import json
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from msgspec import structs

from tests.trainer.reference import small_dataset
from trainer.core.device import Runtime
from trainer.core.progress import Reporter
from trainer.data import dataset as data_module
from trainer.data.dataset import Dataset, leading
from trainer.data.stream import StreamSampler
from trainer.models.zoo import open_demonstrations
from trainer.training.checkpoint import load_checkpoint
from trainer.training.fit import train_run
from trainer.training.presets import preset

QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}


def story(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def losses(run, updates):
    """The training loss at these numbers of updates: epochs of a stream are a little longer, for a window is made
    unique on its own."""
    lines = story(run)
    return np.interp(updates, [line["updates"] for line in lines], [line["loss"] for line in lines])


@pytest.mark.faults
@pytest.mark.parametrize("seeds", [1, 3])
def test_the_loss_of_a_stream_is_that_of_the_same_data_in_memory(seeds, tmp_path):
    data = small_dataset(tmp_path / "data", "edit", train=600, held_out=40, shards=4, row_group_size=120)
    settings = {"width": 32, "layers": 1, "batch": 32, "updates": 300, "dropout": 0.0, "teacher_forcing": 1.0}
    ways = {"memory": {}, "stream": {"stream": True, "stream_rows": 480}}
    curves = {name: [] for name in ways}
    held_out = {name: [] for name in ways}
    for seed in range(seeds):
        for name, changes in ways.items():
            out = tmp_path / f"{name}-{seed}"
            train_run(data, preset("cpu", **settings, **changes, validate_every=99, seed=seed), out, **QUIET)
            curves[name].append(losses(out, [40, 100, 150, 200, 250]))
            held_out[name].append(story(out)[-1]["validation"]["loss"])
    memory, stream = (np.array(curves[name]) for name in ways)
    assert (memory[:, -1] < memory[:, 0] / 2).all()  # there is something to agree on
    assert stream == pytest.approx(memory, rel=0.08)  # as much as two seeds in memory differ
    assert stream.mean() == pytest.approx(memory.mean(), rel=0.03)
    assert np.mean(held_out["stream"]) == pytest.approx(np.mean(held_out["memory"]), rel=0.15)


def test_a_batch_of_a_stream_comes_from_the_whole_window(tmp_path):
    """However the shards are sorted: as many row groups meet in a batch as in one drawn by chance."""
    data = Dataset(small_dataset(tmp_path, "edit", train=300, shards=4, row_group_size=100))
    config = preset("cpu", stream=True, stream_rows=800, batch=16)
    demonstrations = open_demonstrations(data, config)
    stream = StreamSampler(data, demonstrations.footers, demonstrations.contract, config, Runtime(torch.device("cpu")))
    homes = defaultdict(set)
    for home in stream.groups:
        steps = stream._load([home])
        for row in steps_of(steps.batch(torch.arange(len(steps)))):
            homes[row].add(home)
    met = []
    for update in stream.updates(0):
        known = [homes[row] for row in steps_of(update.batch) if len(homes[row]) == 1]
        met.append(len(set.union(*known)) / len(known))
    groups = len(stream.windows(0)[0])
    expected = groups * (1 - (1 - 1 / groups) ** 16) / 16
    assert groups >= 8 and np.mean(met) > 0.9 * expected


def steps_of(batch):
    """Every step of a batch as something to compare."""
    rows = zip(batch.states.tolist(), batch.lengths.tolist(), batch.actions.tolist(), strict=True)
    return [(*state[:length], "|", *action) for state, length, action in rows]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_read_disjoint_row_groups_and_together_all(tmp_path, world):
    data = Dataset(small_dataset(tmp_path, "edit", train=100, shards=3, row_group_size=40))
    demonstrations = open_demonstrations(data, preset("cpu"))
    config = preset("cpu", stream=True, stream_rows=100)
    read = []
    for rank in range(world):
        stream = StreamSampler(
            data, demonstrations.footers, demonstrations.contract, config, Runtime(torch.device("cpu"), rank, world)
        )
        original = data.read_groups

        def watch(shard, groups, most, rank=rank, original=original):
            read.extend((rank, shard.name, group) for group in groups)
            return original(shard, groups, most)

        data.read_groups = watch
        for window in stream.windows(0):
            stream._load(window)
        data.read_groups = original
    places = [place[1:] for place in read]
    assert len(set(places)) == len(places) == sum(len(footer.groups) for footer in demonstrations.footers)
    assert {rank for rank, *_ in read} == set(range(world))


def test_any_position_of_a_stream_can_be_resumed(tmp_path):
    data = Dataset(small_dataset(tmp_path, "edit", train=100, shards=2, row_group_size=50))
    demonstrations = open_demonstrations(data, preset("cpu"))
    stream = StreamSampler(
        data,
        demonstrations.footers,
        demonstrations.contract,
        preset("cpu", stream=True, stream_rows=60, batch=16),
        Runtime(torch.device("cpu")),
    )
    whole = list(stream.updates(1))
    assert len({update.window for update in whole}) > 1
    for at in range(0, len(whole), 5):
        again = next(stream.updates(1, whole[at].window, whole[at].index))
        assert torch.equal(again.batch.states, whole[at].batch.states)
        assert torch.equal(again.batch.actions, whole[at].batch.actions)


def test_the_validation_of_a_stream_is_bounded_too(invoke, tmp_path):
    invoke("build", "aec", "--n", 10, "--l", 4, "--d", 200, "--rows-per-shard", 10, "--out", tmp_path / "data")
    footers = Dataset(tmp_path / "data").footers("pairs", "validation")
    rows = [footer.shard.rows for footer in footers]
    assert sum(rows) == 30 and leading(footers, None) == leading(footers, 30) == footers
    for limit in range(1, 30):
        kept = len(leading(footers, limit))
        assert kept < len(footers) and sum(rows[: kept + 1]) > limit
        assert sum(rows[:kept]) <= limit or sum(map(bool, rows[:kept])) == 1
    some = sum(footer.shard.rows for footer in leading(footers, 20))
    settings = {"width": 16, "layers": 1, "batch": 16, "updates": 2}
    for name, changes, games in (("memory", {}, 30), ("stream", {"stream": True, "stream_rows": 80}, some)):
        train_run(tmp_path / "data", preset("cpu", **settings, **changes), tmp_path / name, **QUIET)
        assert story(tmp_path / name)[-1]["validation"]["pairs"] == games


FAR = """
import sys, time
from trainer.core import interrupt
interrupt.install()
from trainer.__main__ import main
from trainer.data.dataset import Dataset
check, seen = Dataset.check, []
def far(self, shard):
    seen.append(shard)
    if len(seen) == 2:
        print("waits", flush=True)
        time.sleep(600)
    check(self, shard)
Dataset.check = far
main()
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_does_not_wait_for_a_read(command, tmp_path):
    data = small_dataset(tmp_path / "data", "edit", train=60, held_out=4, shards=3)
    settings = {"width": 8, "layers": 1, "batch": 16, "updates": 60, "stream": True, "stream_rows": 10}
    train_run(data, preset("cpu", **settings), tmp_path / "whole", **QUIET)
    options = [
        f"--{name.replace('_', '-')}" + (f"={value}" if value is not True else "") for name, value in settings.items()
    ]
    arguments = ["fit", str(data), "--preset=cpu", "--device=cpu", "--threads=1", f"--out={tmp_path / 'cut'}", *options]
    with subprocess.Popen(
        [sys.executable, "-c", FAR, *arguments],
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "waits\n"
        time.sleep(1)  # the first window is used up
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)  # the read would take longer
    assert process.returncode == 130 and errors.splitlines()[-1].startswith("Error: stopped in epoch 0"), errors
    train_run(data, preset("cpu", **settings), tmp_path / "cut", **QUIET, resume=True)
    for name in ("last", "best"):
        one, two = (load_checkpoint(tmp_path / run / f"{name}.safetensors")[0] for run in ("whole", "cut"))
        assert one.keys() == two.keys() and all(one[key].equal(two[key]) for key in one)


MEASURE = """
import sys, torch
from trainer.core.device import Runtime
from trainer.data.dataset import Dataset
from trainer.data.stream import StreamSampler
from trainer.models.zoo import open_demonstrations
from trainer.training.presets import preset
torch.set_num_threads(1)
data = Dataset(sys.argv[1])
config = preset("cpu", stream=True, stream_rows=int(sys.argv[2]), batch=1024)
found = open_demonstrations(data, config)
stream = StreamSampler(data, found.footers, found.contract, config, Runtime(torch.device("cpu")))
steps, peaks = 0, []
for epoch in range(int(sys.argv[3])):
    for update in stream.updates(epoch):
        steps += len(update.batch.actions)
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # rusage has the parent's too
    peaks.append(int(peak.split()[1]) // 1024)
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


def test_descriptions_are_not_kept(tmp_path, monkeypatch):
    """Each is as large as its vocabulary: 46 KB a shard of the largest dataset that was built."""
    data = small_dataset(tmp_path, "edit", train=80, shards=40)
    read = data_module.read_description

    def large(text, where):  # with a long vocabulary
        return structs.replace(read(text, where), backend={f"word {number}": 1 for number in range(5000)})

    monkeypatch.setattr(data_module, "read_description", large)
    monkeypatch.setattr(data_module, "MERGED", 7)
    dataset, config = Dataset(data), preset("cpu", stream=True)
    expected = dataset.contract(dataset.footers("augmented", "train"))
    tracemalloc.start()
    demonstrations = open_demonstrations(dataset, config)
    stream = StreamSampler(
        dataset, demonstrations.footers, demonstrations.contract, config, Runtime(torch.device("cpu"))
    )
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert demonstrations.contract == expected and len(stream.shards) == 40
    assert now < 1 << 20 and peak < 10 << 20  # all of them are 16 MB


def test_a_row_group_of_nothing_is_not_waited_for(tmp_path):
    data = Dataset(small_dataset(tmp_path, "edit", train=40, shards=2, row_group_size=30))
    config = preset("cpu", stream=True, stream_rows=10, batch=8)
    demonstrations = open_demonstrations(data, config)
    footers, contract = demonstrations.footers, demonstrations.contract
    claims = [replace(footer, groups=(*footer.groups, 0)) for footer in footers]
    streams = [StreamSampler(data, some, contract, config, Runtime(torch.device("cpu"))) for some in (footers, claims)]
    assert streams[0].groups == streams[1].groups
