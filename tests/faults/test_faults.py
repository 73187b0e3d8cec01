"""What else goes wrong with real machines: full disks, read-only folders, rivals, bit rot, clocks, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.aegen.pairs.test_generate import content
from tests.faults.test_kills import BUILD, FIT, finish, start
from tests.trainer.reference import small_dataset
from trainer.training.checkpoint import load_checkpoint

SMALL = ["aegen", "build", "aec", "--n", "10", "--l", "5", "--d", "400", "--rows-per-shard", "100"]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    out = tmp_path_factory.mktemp("wanted") / "d"
    finish(*SMALL, "--out", out)
    return content(out)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small dataset and a run on it."""
    place = tmp_path_factory.mktemp("trained")
    data = small_dataset(place / "data", "edit")
    finish("trainer", "fit", data, *FIT, "--out", place / "run")
    return data, place / "run"


def one_line(process, code=None):
    _, errors = process.communicate(timeout=120)
    lines = errors.strip().splitlines()
    assert process.returncode == (process.returncode if code is None else code) != 0, errors
    assert lines and lines[-1].startswith("Error: ") and "Traceback" not in errors, errors
    return lines[-1]


def confined(mount, command, after="true"):
    """A command in a namespace of its own in which something has been mounted; skipped where that is not allowed."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here")
    words = " ".join(f"'{word}'" for word in [sys.executable, "-m", *map(str, command)])
    script = f"{mount} && {{ {words}; code=$?; {after}; exit $code; }}"
    return subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("what", ["build", pytest.param("fit", marks=pytest.mark.faults)])
def test_a_full_disk_is_said_and_leaves_nothing_half(what, trained, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    command = (
        [*SMALL, "--out", disk / "d"] if what == "build" else ["trainer", "fit", trained[0], *FIT, "--out", disk / "d"]
    )
    size = "60k" if what == "build" else "100k"
    after = f"find '{disk}' -type f"
    process = confined(f"mount -t tmpfs -o size={size} tmpfs '{disk}'", command, after)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert (
        errors.strip().splitlines()[-1].startswith("Error: ")
        and "No space left" in errors
        and "Traceback" not in errors
    )
    names = [line.rpartition("/")[2] for line in out.splitlines() if line.startswith("/")]
    assert not any(name.startswith(".") for name in names) and "manifest.json" not in names


@pytest.mark.parametrize("what", ["build", pytest.param("fit", marks=pytest.mark.faults)])
def test_a_read_only_folder_is_said(what, trained, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    command = (
        [*SMALL, "--out", folder / "d"]
        if what == "build"
        else ["trainer", "fit", trained[0], *FIT, "--out", folder / "d"]
    )
    message = one_line(confined(f"mount -t tmpfs -o ro tmpfs '{folder}'", command))
    assert str(folder) in message and ("Read-only" in message or "permission" in message)


def test_two_builds_at_once_do_not_mix(tmp_path):
    out = tmp_path / "d"
    other = [word if word != "3000" else "3100" for word in BUILD]
    processes = [start(*BUILD, "--out", out), start(*BUILD, "--out", out), start(*other, "--out", out)]
    outcomes = [(process.communicate(timeout=300), process.returncode) for process in processes]
    assert sorted(code for _, code in outcomes)[0] == 0
    for (_, errors), code in outcomes:
        assert code == 0 or ("another process is writing" in errors or "holds another dataset" in errors), errors
    winner = BUILD if (outcomes[0][1] == 0 or outcomes[1][1] == 0) else other
    finish(*winner, "--out", tmp_path / "alone")
    assert content(out) == content(tmp_path / "alone")


DAMAGES = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "flipped": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 0x10]) + raw[len(raw) // 2 + 1 :],
    "zeros": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(damage, wanted, trained, tmp_path):
    import shutil

    from click.testing import CliRunner

    from aegen.cli import main as aegen
    from trainer.cli import main as trainer

    def refused(command, folder, name, *arguments):
        path = folder / name
        before = path.read_bytes()
        path.write_bytes(DAMAGES[damage](before))
        done = CliRunner().invoke(command, [*map(str, arguments)])
        path.write_bytes(before)
        lines = done.stderr.splitlines()
        assert done.exit_code == 2 and name.removesuffix(".json") in lines[-1], (name, done.output)
        assert lines[-1].startswith("Error: ")
        assert len(lines) == 1 or ("--stream" in arguments and len(lines) == 2)  # it had begun, and said so

    out = tmp_path / "d"
    for name, raw in wanted.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(raw)
    for name in ("manifest.json", "pairs/train-00001-of-00003.parquet", "augmented/train-00000-of-00003.parquet"):
        refused(aegen, out, name, "verify", out)
        for stream in ([], ["--stream"]) if not name.startswith("pairs") else ():
            refused(trainer, out, name, "fit", out, *FIT, *stream, "--updates", "1", "--out", tmp_path / "run")
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
    data, run = trained
    refused(trainer, run, "last.safetensors", "fit", data, *FIT, "--resume", "--out", run)
    refused(trainer, run, "best.safetensors", "evaluate", run)
    refused(trainer, run, "config.json", "fit", data, *FIT, "--resume", "--out", run)
    refused(trainer, run, "config.json", "evaluate", run)


@pytest.mark.faults
def test_a_clock_that_jumps_changes_nothing(wanted, trained, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import itertools, time\n"
        "jumps, real = itertools.cycle((0, 9e8, -9e8, 5, -5)), time.time\n"
        "time.time = lambda: real() + next(jumps)\n"
    )
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    out = tmp_path / "d"
    process = start(*SMALL, "--out", out, "--workers", 2, env=env)
    assert process.communicate(timeout=120) and process.returncode == 0
    assert content(out) == wanted
    (out / "manifest.json").unlink()
    for number, path in enumerate(sorted(out.rglob("*.parquet"))):  # files from the future and from 1970
        os.utime(path, (0, 0) if number % 2 else (4e9, 4e9))
    finish(*SMALL, "--out", out, env=env)
    assert content(out) == wanted
    data, run = trained
    finish("trainer", "fit", data, *FIT, "--out", tmp_path / "run", env=env)
    one, two = (load_checkpoint(folder / "last.safetensors")[0] for folder in (run, tmp_path / "run"))
    assert all(one[key].equal(two[key]) for key in one)


ENGINES = [
    pytest.param(["--workers", "1"], marks=pytest.mark.faults),
    ["--workers", "2"],
    pytest.param(["--engine", "dask", "--workers", "2"], marks=pytest.mark.faults),
]


@pytest.mark.parametrize("engine", ENGINES, ids=" ".join)
def test_an_interrupt_ends_with_a_line_and_can_be_resumed(engine, tmp_path):
    """As a terminal does it: the signal goes to the command and to all its workers."""
    whole, out = tmp_path / "whole", tmp_path / "d"
    finish(*BUILD, "--out", whole)
    command = [sys.executable, "-m", *BUILD, "--out", str(out), *engine]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - a suite in the background has it ignored
    )  # fmt: skip
    while not list(out.glob("expert/*")):
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.splitlines()[-1].startswith("Error: interrupted; ")
    assert len(errors.splitlines()) == 1
    left = content(out)
    assert "manifest.json" not in left and not any(".part" in name for name in left)
    finish(*BUILD, "--out", out, *engine)
    assert content(out) == content(whole)
