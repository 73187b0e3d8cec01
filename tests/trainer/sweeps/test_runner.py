"""Sweeps: what a file asks for, and that a kill costs nothing that was finished."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import torch
import yaml

from tests.trainer.reference import small_dataset
from trainer.core.errors import BadData, Failed, FolderConflict, InvalidConfig
from trainer.models.zoo import MODELS
from trainer.sweeps.grid import read_sweep
from trainer.sweeps.runner import place, read_cell, run_sweep
from trainer.training.checkpoint import load_checkpoint
from trainer.training.run import RunFolder

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "cards" / "sweeps").glob("*.toml"))
FILE = """
title = "Small"
out = "{out}"
preset = "cpu"
seeds = [0, 1]

[settings]
width = 16
layers = 1
batch = 64
updates = {updates}

[[data]]
task = "aor"
path = "{data}"
build = "aegen build aor"

[[grid]]
tasks = ["aor"]
models = ["ar", "nar-star"]
ta = [true]
"""


def write_file(path, data, updates=20, **changes):
    text = FILE.format(out=path / "runs", data=data, updates=updates)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (path / "small.toml").write_text(text)
    return path / "small.toml"


def test_a_grid_is_every_combination_one_seed_after_the_other(insert, tmp_path):
    sweep = read_sweep(write_file(tmp_path, insert))
    assert [cell.name for cell in sweep.cells] == [
        "aor/ar+ta/seed-0", "aor/nar-star+ta/seed-0", "aor/ar+ta/seed-1", "aor/nar-star+ta/seed-1",
    ]  # fmt: skip
    assert sweep.cells[3].config.seed == 1 and sweep.cells[3].config.width == 16
    assert [cell.seed for cell in read_sweep(write_file(tmp_path, insert), seeds=(7,)).cells] == [7, 7]
    assert read_sweep(write_file(tmp_path, insert), preset_name="paper").cells[0].preset == "paper"


def test_a_label_keeps_cells_apart_that_differ_in_settings_alone(insert, tmp_path):
    more = '[[grid]]\ntasks = ["aor"]\nmodels = ["planner"]\nta = [true]\nseeds = [0]\npreset = "fast"\n'
    labelled = 'label = "greedy slots"\nsettings = {{ beam = 1, confidence = false }}\n'
    file = write_file(tmp_path, insert, **{'title = "Small"': 'split = "validation"'})
    file.write_text(file.read_text() + more + more + labelled.replace("{{", "{").replace("}}", "}"))
    plain, greedy = read_sweep(file).cells[-4:-2]
    assert [plain.name, greedy.name] == ["aor/planner+ta/seed-0", "aor/planner+ta,greedy-slots/seed-0"]
    assert (plain.config.beam, greedy.config.beam, greedy.preset, greedy.split) == (8, 1, "fast", "validation")
    assert (
        greedy.commands(tmp_path)[1].endswith("--split validation")
        and "--no-confidence" in greedy.commands(tmp_path)[0]
    )
    for wrong, message in (('label = "a/b"', "label: letters"), ('split = "train"', "unknown key 'split'")):
        file.write_text(file.read_text().replace('label = "greedy slots"', wrong))
        with pytest.raises(InvalidConfig, match=message):
            read_sweep(file)
        file.write_text(file.read_text().replace(wrong, 'label = "greedy slots"'))
    with pytest.raises(InvalidConfig, match="split: validation or test"):
        read_sweep(write_file(tmp_path, insert, **{'title = "Small"': 'split = "train"'}))


def test_the_command_of_a_cell_is_the_cell(insert, tmp_path):
    from trainer.cli.commands import main

    cell = read_sweep(write_file(tmp_path, insert)).cells[1]
    fit, evaluate = cell.commands(tmp_path / "runs")
    arguments = fit.split()[1:]
    parsed = main.commands["fit"].make_context("fit", arguments[1:]).params
    for name, value in cell.config.to_json().items():
        assert parsed[name] in (None, value), name
    chosen = {name: value for name, value in parsed.items() if value is not None and name in cell.config.to_json()}
    from trainer.training.presets import preset

    assert preset(parsed["preset_name"], **chosen) == cell.config
    assert evaluate == f"trainer evaluate {tmp_path / 'runs' / cell.name}"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.stem)
def test_the_projects_sweeps_are_sound(file):
    sweep = read_sweep(file)
    assert sweep.cells and all(cell.source.build.startswith("aegen ") for cell in sweep.cells)
    assert {cell.source.path for cell in sweep.cells} == {
        cell.source.build.split("--out ")[1].split()[0] for cell in sweep.cells
    }


def test_the_projects_sweeps_cover_the_papers_tables():
    from trainer.report import paper

    cells = [cell for file in SHIPPED for cell in read_sweep(file).cells]
    usual = {(c.source.task, c.model, c.ta) for c in cells if (c.source.metric, c.source.design) in
             {("levenshtein", "insert"), ("span", "span"), ("levenshtein", "edit")}}  # fmt: skip
    for model, ta in [*paper.MAIN, *paper.DECODERS]:
        assert all((task, model, ta) in usual for task in paper.TASKS), (model, ta)
    shown = {(c.source.design, c.model, c.ta) for c in cells if c.source.task == "aes" and c.source.metric == "span"}
    assert set(paper.DESIGNS) <= shown
    assert set(paper.METRICS) <= {(c.source.metric, c.model) for c in cells if c.source.task == "aes" and not c.ta}
    assert {("lcs", False), ("lcs", True)} <= {(c.source.metric, c.ta) for c in cells if c.source.task == "aec"}
    assert {cell.model for cell in cells} == set(MODELS)


WRONG = [
    ({'title = "Small"': "title = ["}, "TOML"),
    ({'title = "Small"': 'titel = "Small"'}, "unknown key 'titel'"),
    ({'models = ["ar", "nar-star"]': 'models = ["gpt"]'}, "no model 'gpt'"),
    ({'models = ["ar", "nar-star"]': 'models = ["ar", "ar"]'}, "asked for twice"),
    ({'tasks = ["aor"]': 'tasks = ["aes"]'}, "no [[data]] for aes"),
    ({"ta = [true]": "ta = true"}, "ta: a list of bool"),
    ({"width = 16": "width = 15"}, "even number"),
    ({"width = 16": "seed = 1"}, "seed is an axis"),
    ({'preset = "cpu"': 'preset = "tpu"'}, "no preset 'tpu'"),
    ({'task = "aor"': 'task = "../../escaped"'}, "task: letters, digits"),
    ({'models = ["ar", "nar-star"]': 'models = ["tagging"]'}, "tagging has no augmentation"),
]


@pytest.mark.parametrize("changes,message", WRONG)
def test_what_is_wrong_in_a_file_is_named(insert, tmp_path, changes, message):
    with pytest.raises(InvalidConfig) as caught:
        read_sweep(write_file(tmp_path, insert, **changes))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert "small.toml" in str(caught.value)


def as_yaml(file):
    """The same sweep as YAML."""
    values = tomllib.loads(file.read_text())
    file.with_suffix(".yaml").write_text(yaml.safe_dump(values))
    return file.with_suffix(".yaml")


def test_yaml_says_the_same(insert, tmp_path):
    file = write_file(tmp_path, insert)
    assert read_sweep(as_yaml(file)) == read_sweep(file)
    for text, message in (("a: [", "not readable as YAML"), ("- 1", "keys with values"), ("1: 2", "keys with values"),
                          ("!!python/object/apply:os.getcwd []", "not readable as YAML")):  # fmt: skip
        (tmp_path / "x.yml").write_text(text)
        with pytest.raises(InvalidConfig, match=message) as caught:
            read_sweep(tmp_path / "x.yml")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes,message", WRONG[1:])
def test_what_is_wrong_in_yaml_is_named_too(insert, tmp_path, changes, message):
    with pytest.raises(InvalidConfig) as caught:
        read_sweep(as_yaml(write_file(tmp_path, insert, **changes)))
    assert message in str(caught.value) and "small.yaml" in str(caught.value)


def test_missing_data_names_the_command_that_makes_it(tmp_path):
    sweep = read_sweep(write_file(tmp_path, tmp_path / "nowhere"))
    with pytest.raises(BadData, match="make it with: aegen build aor"):
        run_sweep(sweep)


def test_a_failed_cell_leaves_the_others_alone(insert, tmp_path):
    data = small_dataset(tmp_path / "data", "insert")
    file = write_file(
        tmp_path, data, **{'models = ["ar", "nar-star"]': 'models = ["tagging", "ar"]', "[true]": "[false]"}
    )
    lines = []
    with pytest.raises(Failed, match=r"1 of 2 cells failed.*--design tags"):
        run_sweep(read_sweep(file, seeds=(0,)), threads=1, device="cpu", say=lines.append)
    assert read_cell(tmp_path / "runs/aor/ar/seed-0")["evaluation"]["pairs"] == 16
    changed = write_file(tmp_path, data, updates=21, **{"[true]": "[false]"})
    with pytest.raises(FolderConflict, match="another updates"):
        run_sweep(read_sweep(changed, seeds=(0,)), say=lines.append)


def start(file, command, jobs):
    return subprocess.Popen(
        [sys.executable, "-m", "trainer", "sweep", str(file), "--jobs", str(jobs), "--threads", "1", "--device", "cpu"],
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_killed_and_started_again_it_does_only_what_is_left(command, tmp_path):
    data = small_dataset(tmp_path / "data", "insert")
    file = write_file(tmp_path, data, updates=400, **{"seeds = [0, 1]": "seeds = [0]"})
    cells = [tmp_path / "runs" / cell.name for cell in read_sweep(file).cells]
    process = start(file, command, 1)
    while not (cells[0] / "cell.json").exists() or not (cells[1] / "last.safetensors").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = stamps(cells[0])
    assert not (cells[1] / "cell.json").exists(), "the kill came too late to test anything"
    until = time.monotonic() + 30
    while True:  # the cell ends by itself: nobody trains on for a sweep that is gone
        run = RunFolder(cells[1])
        try:
            run.hold()
            break
        except FolderConflict:
            assert time.monotonic() < until
            time.sleep(0.05)
        finally:
            run.release()
    updates = load_checkpoint(cells[1] / "last.safetensors")[1]["updates"]
    again = start(file, command, 2)
    said, errors = again.communicate(timeout=240)
    assert again.returncode == 0, errors
    assert "2 cells, 1 finished, 1 to run" in said and "[1/1] aor/nar-star+ta/seed-0" in said
    assert stamps(cells[0]) == before and 0 < updates <= 400
    records = [json.loads((cell / "cell.json").read_text()) for cell in cells]
    assert all(record["updates"] == 400 and record["evaluation"]["pairs"] == 16 for record in records)
    third = start(file, command, 1)
    said, _ = third.communicate(timeout=60)
    assert third.returncode == 0 and "2 finished, 0 to run" in said
    # A cell is what its commands do.
    command(*records[1]["commands"][0].split()[1:-1], tmp_path / "by-hand", "--threads", 1, "--device", "cpu")
    one, two = (load_checkpoint(path / "best.safetensors")[0] for path in (cells[1], tmp_path / "by-hand"))
    assert all(one[name].equal(two[name]) for name in one)


def cell_of(file, number=0):
    sweep = read_sweep(file)
    return sweep.out / sweep.cells[number].name


def test_a_sweep_of_other_data_or_another_split_is_no_finished_one(insert, tmp_path):
    file = write_file(tmp_path, insert, updates=2, **{"[0, 1]": "[0]", '["ar", "nar-star"]': '["ar"]'})
    run_sweep(read_sweep(file), threads=1, device="cpu", say=lambda line: None)
    assert run_sweep(read_sweep(file), say=lambda line: None) == 0
    file.write_text('split = "validation"\n' + file.read_text())
    with pytest.raises(FolderConflict, match="another split"):
        run_sweep(read_sweep(file), say=lambda line: None)
    other = small_dataset(tmp_path / "other", "insert", train=66)
    again = shutil.copytree(insert, tmp_path / "again")  # the same games, learned from others
    manifest = json.loads((again / "manifest.json").read_text())
    learned = next(name for name in manifest["files"] if name.startswith("augmented/train"))
    manifest["files"][learned]["sha256"] = "0" * 64
    (again / "manifest.json").write_text(json.dumps(manifest))
    for data in (other, again):
        changed = write_file(tmp_path, data, updates=2, **{"[0, 1]": "[0]", '["ar", "nar-star"]': '["ar"]'})
        with pytest.raises(FolderConflict, match="other data than is in"):
            run_sweep(read_sweep(changed), say=lambda line: None)


def test_what_a_sweep_calls_a_dataset_is_held_against_it(insert, tmp_path):
    one = {"[0, 1]": "[0]", '["ar", "nar-star"]': '["ar"]'}
    for key, wrong in (("task", "aes"), ("metric", "lcs"), ("design", "edit")):
        lines = {'task = "aor"': f'task = "{wrong}"', 'tasks = ["aor"]': f'tasks = ["{wrong}"]'}
        changes = lines if key == "task" else {'task = "aor"': f'task = "aor"\n{key} = "{wrong}"'}
        with pytest.raises(Failed, match=f"its {key} is '.*', the sweep says '{wrong}'"):
            run_sweep(read_sweep(write_file(tmp_path, insert, 2, **changes, **one)), 1, 1, "cpu", lambda line: None)
    file = write_file(tmp_path, insert, 2, **one)
    run_sweep(read_sweep(file), 1, 1, "cpu", lambda line: None)
    record = read_cell(cell_of(file))
    assert (record["metric"], record["design"]) == ("levenshtein", "insert")


def test_two_sweeps_at_once_run_each_cell_once(command, tmp_path):
    data = small_dataset(tmp_path / "data", "insert")
    file = write_file(tmp_path, data, updates=60, **{"seeds = [0, 1]": "seeds = [0]"})
    both = [start(file, command, 1) for _ in range(2)]
    said = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    trained = [line for out, _ in said for line in out.splitlines() if "accuracy" in line]
    assert len(trained) == 2 and len({line.split("] ")[1].split(":")[0] for line in trained}) == 2, said


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_sweep_alone_ends_its_cells_too(command, tmp_path):
    data = small_dataset(tmp_path / "data", "insert")
    file = write_file(tmp_path, data, updates=100_000)
    process = start(file, command, 2)
    folders = [cell_of(file, number) for number in range(2)]
    while not all((folder / "last.safetensors").exists() for folder in folders):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.splitlines()[-1:] == [errors.strip()]
    assert "the same command goes on from here" in errors
    for folder in folders:
        run = RunFolder(folder)
        run.hold()  # nobody works there any more
        run.release()


def test_the_seconds_of_a_cell_are_those_of_all_its_processes(command, tmp_path):
    data = small_dataset(tmp_path / "data", "insert")
    file = write_file(tmp_path, data, updates=600, **{"[0, 1]": "[0]", '["ar", "nar-star"]': '["ar"]'})
    process = start(file, command, 1)
    while not (cell_of(file) / "last.safetensors").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    _, position = load_checkpoint(cell_of(file) / "last.safetensors")
    again = start(file, command, 1)
    assert again.wait(240) == 0
    again.communicate()
    record = read_cell(cell_of(file))
    assert record["seconds"] > record["train_seconds"] > 0
    assert record["cpu_seconds"] > position["cpu_seconds"] > 0


def test_jobs_share_the_gpus_that_were_given(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [place(job)["CUDA_VISIBLE_DEVICES"] for job in range(3)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-5")
    assert [place(job)["CUDA_VISIBLE_DEVICES"] for job in range(3)] == ["2", "GPU-5", "2"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert place(0) == {}
