"""Running a sweep: cells run once, a kill loses nothing that was finished, and no cell outlives its sweep."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from click.testing import CliRunner

from tests.trainer.reference import small_dataset
from tests.trainer.sweeps.files import write_file
from trainer.cli import main
from trainer.core.errors import BadData, Failed, FolderConflict
from trainer.sweeps.cell import CellJob, describe, run_cell
from trainer.sweeps.grid import SweepDataset, read_sweep
from trainer.sweeps.result import read_cell
from trainer.sweeps.runner import gpu_of, run_sweep
from trainer.training.checkpoint import load_checkpoint
from trainer.training.run import RunFolder

ONE = {"[0, 1]": "[0]", '["ar", "nar-star"]': '["ar"]'}


def quiet(line):
    """Say nothing."""


def run_here(sweep, number=0):
    """Run one cell in this process; its folder."""
    cell = sweep.cells[number]
    assert run_cell(CellJob(cell, str(sweep.out), threads=1, device="cpu", verbose=False)) is None
    return sweep.out / cell.name


@pytest.fixture(scope="module")
def finished(datasets, tmp_path_factory):
    """A sweep of one cell that is finished."""
    place = tmp_path_factory.mktemp("finished")
    sweep = read_sweep(write_file(place, datasets["insert"], updates=2, **ONE))
    run_here(sweep)
    return place


def test_missing_data_names_the_command_that_builds_it(tmp_path):
    sweep = read_sweep(write_file(tmp_path, tmp_path / "nowhere"))
    with pytest.raises(BadData, match="nowhere: no finished dataset; build it with: aegen build aor"):
        run_sweep(sweep)


def test_a_failed_cell_does_not_stop_the_others(insert, tmp_path):
    tagging = {'models = ["ar", "nar-star"]': 'models = ["tagging", "ar"]', "[true]": "[false]"}
    lines = []
    with pytest.raises(Failed, match=r"1 of 2 cells failed.*tagging/seed-0: .*--design tags"):
        sweep = read_sweep(write_file(tmp_path, insert, 2, **tagging), seeds=(0,))
        run_sweep(sweep, jobs=2, threads=1, device="cpu", say=lines.append)
    assert read_cell(tmp_path / "runs/aor/ar/seed-0").games == 16
    assert lines[0] == "Small: 2 cells, 0 finished, 2 to run" and sum("accuracy" in line for line in lines) == 1
    changed = write_file(tmp_path, insert, updates=3, **{"[true]": "[false]"})
    with pytest.raises(FolderConflict, match="existing updates 2, requested 3"):
        run_sweep(read_sweep(changed, seeds=(0,)), say=quiet)


def test_a_finished_cell_is_one_of_the_same_settings_split_and_data(finished, insert, tmp_path):
    place = shutil.copytree(finished, tmp_path / "place")
    file = write_file(place, insert, updates=2, **ONE)
    assert run_sweep(read_sweep(file), say=quiet) == 0
    cell = place / "runs/aor/ar+ta/seed-0/cell.json"
    older = json.loads(cell.read_text())
    del older["settings"]["lengths"]  # written before there was such a setting
    cell.write_text(json.dumps(older))
    assert run_sweep(read_sweep(file), say=quiet) == 0
    file.write_text('split = "validation"\n' + file.read_text())
    with pytest.raises(FolderConflict, match="existing split 'test', requested 'validation'"):
        run_sweep(read_sweep(file), say=quiet)
    other = small_dataset(tmp_path / "other", "insert", train=66)
    again = shutil.copytree(insert, tmp_path / "again")  # the same games, learned from others
    manifest = json.loads((again / "manifest.json").read_text())
    learned = next(name for name in manifest["files"] if name.startswith("augmented/train"))
    manifest["files"][learned]["sha256"] = "0" * 64
    (again / "manifest.json").write_text(json.dumps(manifest))
    for data in (other, again):
        with pytest.raises(FolderConflict, match="was run on other data than .* holds now"):
            run_sweep(read_sweep(write_file(place, data, updates=2, **ONE)), say=quiet)


@pytest.mark.parametrize(("key", "wrong"), [("task", "aes"), ("metric", "lcs"), ("design", "edit")])
def test_a_dataset_is_what_the_sweep_file_says(insert, key, wrong):
    says = {"task": "aor", "path": str(insert)} | {key: wrong}
    with pytest.raises(BadData, match=f"{key} is '.*', the sweep file says '{wrong}'"):
        describe(SweepDataset(**says))


def test_a_cell_says_what_its_dataset_is(finished):
    result = read_cell(finished / "runs/aor/ar+ta/seed-0")
    assert (result.metric, result.design, result.usual) == ("levenshtein", "insert", True)
    assert result.settings["width"] == 16 and "seed" not in result.settings and result.updates == 2


def test_a_cell_of_an_older_format_is_refused(finished, tmp_path):
    place = shutil.copytree(finished / "runs/aor/ar+ta/seed-0", tmp_path / "cell")
    values = json.loads((place / "cell.json").read_text())
    (place / "cell.json").write_text(json.dumps(values | {"format": 1}))
    with pytest.raises(BadData, match="format 1, this version reads format 2"):
        read_cell(place)


def start(file, command, jobs):
    return subprocess.Popen(
        [sys.executable, "-m", "trainer", "sweep", str(file), "--jobs", str(jobs), "--threads", "1", "--device", "cpu"],
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process, *files):
    while not all(file.exists() for file in files):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def is_free(folder, seconds=30):
    """Whether nobody trains in a folder any more, or soon."""
    run, until = RunFolder(folder), time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            run.hold()
            return True
        except FolderConflict:
            time.sleep(0.05)
        finally:
            run.release()
    return False


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.faults
def test_killed_and_started_again_it_does_only_what_is_left(command, insert, tmp_path):
    longer = (
        'models = ["ar"]\nsettings = { updates = 2 }\nta = [true]\n[[grid]]\ntasks = ["aor"]\nmodels = ["nar-star"]'
    )
    file = write_file(tmp_path, insert, 250, **{"[0, 1]": "[0]", 'models = ["ar", "nar-star"]': longer})
    sweep = read_sweep(file)
    done, cut = run_here(sweep), sweep.out / sweep.cells[1].name
    before = stamps(done)
    process = start(file, command, 1)
    wait_for(process, cut / "last.safetensors")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert is_free(cut), "a cell trains on for a sweep that is gone"
    assert not (cut / "cell.json").exists(), "the kill came too late to test anything"
    _, position = load_checkpoint(cut / "last.safetensors")
    lines = []
    assert run_sweep(sweep, jobs=2, threads=1, device="cpu", say=lines.append) == 1
    assert lines[0] == "Small: 2 cells, 1 finished, 1 to run" and lines[1].startswith("[1/1] aor/nar-star+ta/seed-0: ")
    assert stamps(done) == before and 0 < position["updates"] < 250
    result = read_cell(cut)
    assert result.updates == 250 and result.games == 16
    # Its seconds are those of both processes.
    assert result.seconds > result.train_seconds > 0 and result.cpu_seconds > position["cpu_seconds"] > 0
    assert run_sweep(sweep, say=quiet) == 0
    # A cell is what its commands do.
    fit = [*result.commands[0].split()[1:-1], str(tmp_path / "by-hand"), "--threads", "1", "--device", "cpu"]
    assert CliRunner().invoke(main, fit).exit_code == 0
    one, two = (load_checkpoint(path / "best.safetensors")[0] for path in (cut, tmp_path / "by-hand"))
    assert all(one[name].equal(two[name]) for name in one)


def test_two_sweeps_at_once_run_each_cell_once(insert, tmp_path):
    sweep = read_sweep(write_file(tmp_path, insert, updates=10, **ONE))
    said = [[], []]
    with ThreadPoolExecutor(2) as pool:  # what keeps them apart are the processes of the cells
        both = [pool.submit(run_sweep, sweep, 1, 1, "cpu", lines.append) for lines in said]
    assert [future.result() for future in both] == [1, 1], said
    ends = sorted(lines[1].split(": ")[1].split()[0] for lines in said)
    assert ends == ["equation", "skipped"], said


@pytest.mark.faults
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_sweep_alone_ends_its_cells_too(command, insert, tmp_path):
    sweep = read_sweep(file := write_file(tmp_path, insert, updates=100_000, **{"[0, 1]": "[0]"}))
    folders = [sweep.out / cell.name for cell in sweep.cells]
    process = start(file, command, 2)
    wait_for(process, *(folder / "config.json" for folder in folders))
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.splitlines() == [errors.strip()]
    assert "rerun the command to continue" in errors
    assert all(is_free(folder, seconds=1) for folder in folders)  # they are dead when the sweep returns


def test_jobs_share_the_gpus_that_were_given(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [gpu_of(job)["CUDA_VISIBLE_DEVICES"] for job in range(3)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-5")
    assert [gpu_of(job)["CUDA_VISIBLE_DEVICES"] for job in range(3)] == ["2", "GPU-5", "2"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert gpu_of(0) == {}
