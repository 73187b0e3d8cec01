"""Real ranks: torchrun with two processes on loopback."""

import json
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch
from click.testing import CliRunner

from tests.trainer.reference import small_dataset
from tests.trainer.runs import torchrun
from trainer.cli import main
from trainer.core import interrupt
from trainer.core.errors import Interrupted
from trainer.training.checkpoint import load_checkpoint

# Without dropout and with only gold tokens nothing is random but the order, which all ranks share.
FIT = ["--preset", "cpu", "--width", 16, "--layers", 1, "--batch", 50, "--dropout", 0]
FIT += ["--device", "cpu", "--threads", 1, "--epochs", 2, "--updates", 100_000, "--validate-every", 1]
GOLD = ["--teacher-forcing", 1]  # of models that read tokens


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "changes",
    [["--model", "nar-star", *GOLD], pytest.param(["--model", "nar", "--epoch", "pairs"], marks=pytest.mark.faults)],
)
def test_two_ranks_learn_what_one_learns(command, tmp_path, changes):
    data = small_dataset(tmp_path / "data", "edit")
    alone = CliRunner().invoke(main, [*map(str, ["fit", data, *FIT, *changes, "--out", tmp_path / "one"])])
    assert alone.exit_code == 0, alone.output
    torchrun(command, "fit", data, *FIT, *changes, "--out", tmp_path / "two")
    one, two = lines(tmp_path / "one"), lines(tmp_path / "two")
    assert len(one) == len(two) == 2
    for first, second in zip(one, two, strict=True):
        assert second["updates"] == first["updates"] > 0
        assert second["loss"] == pytest.approx(first["loss"], rel=1e-4)
        assert second["slot_accuracy"] == pytest.approx(first["slot_accuracy"], abs=0.5)
        assert second["validation"]["loss"] == pytest.approx(first["validation"]["loss"], rel=1e-3)
        assert second["validation"]["pairs"] == first["validation"]["pairs"] == 16
    weights = [load_checkpoint(tmp_path / run / "last.safetensors")[0] for run in ("one", "two")]
    assert all(torch.allclose(weights[0][name], weights[1][name], atol=2e-3) for name in weights[0])


def test_ranks_stream_their_own_row_groups(command, tmp_path):
    data = small_dataset(tmp_path / "data", "edit", shards=2, row_group_size=40)
    arguments = ["fit", data, *FIT, "--stream", "--stream-rows", 60, "--save-every", 2]
    done = torchrun(command, *arguments, "--out", tmp_path / "run", "--resume")
    assert len(lines(tmp_path / "run")) == 2
    assert done.stdout.count("ended by epochs") == 1 and done.stderr.count("epoch 0 ") == 1  # one log


@pytest.mark.parametrize("extra", [{}, {"RANK": "0", "WORLD_SIZE": "1"}], ids=["alone", "rank"])
def test_a_command_leaves_before_python_ends(command, tmp_path, extra):
    # What aborts there comes once in hundreds of runs, so the test is that Python's end is not reached.
    (tmp_path / "blocked" / "sitecustomize.py").write_text("import atexit\natexit.register(print, 'the end')\n")
    usual = subprocess.run([sys.executable, "-c", ""], env=command.environment, capture_output=True, text=True)
    assert usual.stdout == "the end\n"
    said = command("--version", extra=extra).stdout
    assert said.startswith("trainer") and "the end" not in said
    failed = command("fit", tmp_path / "none", "--out", tmp_path / "run", code=2, extra=extra)
    assert failed.stderr.startswith("Error: ") and "the end" not in failed.stdout


def ranks(command, *arguments):
    """Two ranks that can be killed one by one: what torchrun starts, without torchrun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    return [
        subprocess.Popen(
            [sys.executable, "-m", "trainer", *map(str, arguments)],
            env=command.environment | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def ended(processes):
    errors = [process.communicate(timeout=170)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors


@pytest.mark.usefixtures("interruptible")
@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_streaming_ranks_that_were_stopped_go_on_as_if_nothing_had_happened(command, tmp_path, number):
    data = small_dataset(tmp_path / "data", "edit", shards=2, row_group_size=40)
    fit = ["fit", data, *FIT, "--epochs", 2, "--batch", 8, "--dropout", 0.1, "--stream", "--stream-rows", 60]
    arguments = [*fit, "--save-every", 7, "--validate-every", 2, "--resume", "--out"]
    cut = tmp_path / "cut"
    stopped = ranks(command, *arguments, cut)
    while not (cut / "last.safetensors").exists():
        assert [process.poll() for process in stopped] == [None, None], stopped[0].stderr.read()
        time.sleep(0.01)
    for process in stopped:
        process.send_signal(number)
    for process in stopped:
        said = process.communicate(timeout=170)[1]
        if number == signal.SIGINT:
            assert process.returncode == Interrupted.exit_code, said
            assert said.endswith(f"Error: {interrupt.message('fit')}\n"), said
    state = load_checkpoint(cut / "last.safetensors")[1]
    assert state["world"] == 2 and not state["finished"]
    alone = CliRunner().invoke(main, [*map(str, [*arguments, cut])])
    (said,) = alone.stderr.splitlines()
    assert alone.exit_code == 2
    assert said.endswith("its stream is divided among 2 ranks, not 1; resume with torchrun --nproc-per-node 2")
    ended(ranks(command, *arguments, cut))
    ended(ranks(command, *arguments, tmp_path / "whole"))
    for name in ("last", "best"):
        one, two = (load_checkpoint(tmp_path / run / f"{name}.safetensors")[0] for run in ("whole", "cut"))
        assert one.keys() == two.keys() and all(one[key].equal(two[key]) for key in one if key != "tally")
    updates = [line["updates"] for line in lines(tmp_path / "whole")]
    assert updates == [line["updates"] for line in lines(cut)] and state["updates"] < updates[-1]
