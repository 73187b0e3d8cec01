import json
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests import processes
from tests.trainer.reference import write_dataset, write_shard
from trainer.cli import main
from trainer.cli.common import DISTRIBUTIONS, REQUIRED
from trainer.cli.training import tell
from trainer.core import interrupt
from trainer.training.checkpoint import load_checkpoint
from trainer.training.fit import Result
from trainer.training.run import RunFolder, sealed

ROOT = Path(__file__).parents[3]
FIT = ["--preset", "cpu", "--width", 16, "--layers", 1, "--batch", 64, "--device", "cpu", "--threads", 1]

LEARN = ["--updates", 40, "--learning-rate", 0.02]


@pytest.fixture(scope="module")
def run(datasets, tmp_path_factory):
    """A small trained run, made by the command itself."""
    folder = tmp_path_factory.mktemp("runs") / "insert"
    call("fit", datasets["insert"], *FIT, *LEARN, "--out", folder)
    return folder


def call(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(main, [*map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    return result


def refuse(*arguments, stdin=None):
    """The one line that bad input gets."""
    result = call(*arguments, code=2, stdin=stdin)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("Error: ") and not result.stdout
    return lines[0]


def test_help_is_quick_and_needs_no_extra(command):
    hidden = command("--help", extra={"PYTHONPROFILEIMPORTTIME": "1"}, fresh=True)
    assert " torch" not in hidden.stderr and "trainer edit" in hidden.stdout
    assert {"fit", "evaluate", "edit", "models", "publish", "sweep", "report"} <= set(main.commands)
    for name, found in main.commands.items():
        shown = call(name, "--help").stdout
        assert f"trainer {name}" in re.split("Examples?:", shown)[1]
        assert all(option.help for option in found.params if option.param_type_name == "option"), name


def test_a_missing_package_is_named(insert, command, tmp_path):
    package = tmp_path / "blocked" / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError('no torch', name='torch')\n")
    done = command("fit", insert, "--out", tmp_path / "run", code=2, fresh=True)
    assert done.stderr == "Error: this needs the package torch: in a clone of aegen, pip install ./trainer\n"


ALL = """
import json, sys
from trainer.cli import main
for arguments in json.loads(sys.argv[1]):
    main(arguments, standalone_mode=False)
assert "aegen" not in sys.modules
"""


def test_an_interrupt_of_what_can_resume_says_so():
    for name, one in main.commands.items():
        resumes = any(option.name == "resume" for option in one.params)
        assert ("rerun with --resume to continue" in interrupt.message(name)) == resumes, name


@pytest.mark.parametrize(("epoch", "said"), [(-1, "best 0.5000 before practice"), (2, "best 0.5000 in epoch 2")])
def test_the_best_epoch_is_told(capsys, tmp_path, epoch, said):
    tell(Result(tmp_path, 1, 3, 9, 0.5, epoch, "updates", 1.0), tmp_path, as_json=False)
    assert capsys.readouterr().out == f"{tmp_path}: 9 updates, {said}, ended by updates\n"


def test_train_evaluate_edit_without_aegen(command, insert, tmp_path):
    """In one process, for torch takes long to load."""
    out = tmp_path / "run"
    commands = [
        ["fit", insert, *FIT, "--updates", 5, "--out", out, "--json"],
        ["evaluate", out, "--json"],
        ["edit", out, "3 6 2 5"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", ALL, json.dumps([[*map(str, one)] for one in commands])],
        env=command.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    fitted, evaluated, *edited = done.stdout.splitlines()
    assert json.loads(fitted)["updates"] == 5 and json.loads(fitted)["finished"] == "updates"
    assert json.loads(evaluated)["pairs"] == 16
    assert edited[0] == "     3 6 2 5"


def test_progress_is_plain_lines_in_a_pipe(insert, tmp_path):
    result = call("fit", insert, *FIT, "--updates", 3, "--out", tmp_path / "run")
    assert "\r" not in result.stderr and "valid equation acc." in result.stderr
    assert result.stdout.endswith("ended by updates\n")


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_progress_is_a_bar_on_a_terminal(insert, tmp_path, command, terminal):
    import os
    import pty

    leader, follower = pty.openpty()
    arguments = ["fit", insert, *FIT, "--updates", 60, "--out", tmp_path / "run"]
    settings = {"env": command.environment | {"TERM": terminal}, "terminal": os.ttyname(follower)}
    with ThreadPoolExecutor() as pool:
        done = pool.submit(processes.call, "trainer", *arguments, cwd=tmp_path, **settings)
        done.add_done_callback(lambda _: os.close(follower))
        seen = b""
        with suppress(OSError):  # that is how a terminal ends
            while chunk := os.read(leader, 4096):
                seen += chunk
    os.close(leader)
    text = seen.decode().replace("\r\n", "\n")
    assert done.result().returncode == 0, text
    if terminal == "dumb":  # it cannot redraw a line
        assert "\r" not in text and "epoch 0" in text
        return
    assert "\r" in text and "█" in text and " left" in text and "lr " in text


def test_evaluate_says_what_it_measured(run):
    shown = call("evaluate", run, "--split", "train").stdout
    assert "equation accuracy" in shown and "games per second" in shown
    result = json.loads(call("evaluate", run, "--split", "train", "--json").stdout)
    assert result["pairs"] == 64 and result["done"] + result["limit"] + result["refused"] == 64
    assert json.loads((run / "evaluation-train.json").read_text())["files"] == result["files"]


def test_edit_shows_every_step(run):
    game = json.loads(call("edit", run, "3 6 2 5", "--json").stdout)
    assert game["source"] == "3 6 2 5" and game["moves"][0]["state"] == ["3", "6", "2", "5"]
    assert all(0 <= chance <= 1 for move in game["moves"] for chance in move["probabilities"])
    states = [" ".join(move["state"]) for move in game["moves"]]
    assert game["text"] == states[-1] or game["ended"] == "limit"
    shown = call("edit", run, "3 6 2 5").stdout.splitlines()
    assert len(shown) == len(game["moves"]) + 2 and f"=  {game['text']}" in shown[-1]
    lines = call("edit", run, "--json", stdin="3 6 2 5\n2 2 2 6\n").stdout.splitlines()
    assert [json.loads(line)["source"] for line in lines] == ["3 6 2 5", "2 2 2 6"]
    assert json.loads(lines[0])["text"] == game["text"]
    assert call("edit", run, "- 3 + 6").stdout.startswith("     - 3 + 6\n")  # a minus is no option


def test_lines_that_are_no_text_get_one_line(run):
    kept = call("edit", run, stdin=b"3 \xff 2\n", code=1)
    assert kept.stdout_bytes == b"3 \xff 2\n" and "line 1: not valid Unicode" in kept.stderr
    assert "not valid Unicode" in refuse("edit", run, "3 \udcff 2")  # as Python reads it where it escapes such bytes


def test_models_are_listed_with_their_parameters(insert):
    assert "dual decoders (D2)" in call("models").stdout
    counts = json.loads(call("models", "--data", insert, "--preset", "paper", "--json").stdout)
    assert counts["nar-star"]["parameters"] > counts["shared-d2"]["parameters"] > 1_000_000


def test_models_that_cannot_learn_from_a_dataset_have_no_parameters(datasets, tmp_path):
    bare = shutil.copytree(datasets["insert"], tmp_path / "pairs")
    manifest = json.loads((bare / "manifest.json").read_text())
    manifest["files"] = {name: file for name, file in manifest["files"].items() if name.startswith("pairs/")}
    (bare / "manifest.json").write_text(json.dumps(manifest))
    listed = json.loads(call("models", "--data", bare, "--json").stdout)
    assert {name for name, about in listed.items() if "parameters" in about} == {"end2end"}
    assert "no augmented/train shards" in refuse("models", "--data", bare, "--train-on", "augmented")
    wide = ("(", *"1" * 70, ")")
    write_dataset(tmp_path / "wide", "span", {"train": [(wide, ("2",))]}, task="aes")
    listed = json.loads(call("models", "--data", tmp_path / "wide", "--json").stdout)
    assert "parameters" in listed["nar-star"] and "parameters" not in listed["planner"]


def test_advice_to_stream_is_for_models_that_can(insert, tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.data.demonstrations.MAX_IN_MEMORY", 1)
    assert "; use --stream to read them in parts" in refuse("fit", insert, *FIT, "--out", tmp_path / "out")
    for model in ("planner", "end2end"):
        said = refuse("fit", insert, "--model", model, "--device", "cpu", "--out", tmp_path / model)
        assert said.endswith("; use fewer, or a model that streams")


def test_settings_that_would_change_nothing_get_one_line(insert, tmp_path):
    out = ("--device", "cpu", "--out", tmp_path / "out")
    assert "field width: planner does not read it; leave it out" in refuse("fit", insert, "--width", 64, *out)
    said = refuse("fit", insert, "--model", "tagging", "--train-on", "augmented", *out)
    assert "field train_on: tagging learns from tags shards; leave it out" in said


def test_data_without_a_validation_split_is_another_dataset(run, insert, tmp_path):
    bare = shutil.copytree(insert, tmp_path / "bare")
    manifest = json.loads((bare / "manifest.json").read_text())
    manifest["files"] = {name: file for name, file in manifest["files"].items() if "/validation-" not in name}
    (bare / "manifest.json").write_text(json.dumps(manifest))
    result = json.loads(call("evaluate", run, "--data", bare, "--json", "--device", "cpu").stdout)
    assert result["pairs"] == 16 and result["own"] is False


def test_bad_input_gets_one_line(insert, datasets, run, tmp_path):
    out = tmp_path / "out"
    assert "no manifest.json" in refuse("fit", tmp_path, "--out", out)
    assert "nowhere: no such folder" in refuse("fit", tmp_path / "nowhere", "--out", out)
    assert "unknown model 'gpt'" in refuse("fit", insert, *FIT, "--model", "gpt", "--out", out)
    assert "field batch: expected int >= 1" in refuse("fit", insert, *FIT, "--batch", 0, "--out", out)
    assert "a multiple of 2" in refuse("fit", insert, *FIT, "--width", 15, "--out", out)
    assert "--resume" in refuse("fit", insert, *FIT, "--out", run)
    assert "another dataset" in refuse(*fit_on(run, datasets["edit"]))
    assert "field task is 'aec'" in refuse("evaluate", run, "--data", datasets["edit"])
    assert "unknown token 'x'" in refuse("edit", run, "3 x 5")
    assert "the agent reads at most 7" in refuse("edit", run, "2 " * 7 + "2")
    assert "no config.json" in refuse("edit", tmp_path, "3")
    assert "no such run folder" in refuse("edit", tmp_path / "none", "3")
    assert "hf://org/name or a folder" in refuse("publish", run, "--to", "s3://bucket")


def test_more_at_once_than_any_machine_has_is_wrong_use(insert, tmp_path):
    (tmp_path / "grid.toml").touch()
    many = 99999999999999999999
    fit = ("fit", insert, *FIT, "--out", tmp_path / "out")
    sweep = ("sweep", tmp_path / "grid.toml")
    for arguments in ((*fit, "--threads", many), (*sweep, "--threads", many), (*sweep, "--jobs", many)):
        assert "is not in the range 1<=x<=1024" in call(*arguments, code=2).stderr
    assert not (tmp_path / "out").exists()


def fit_on(run, data):
    """Go on with the run of the fixture."""
    return ("fit", data, *FIT, *LEARN, "--out", run, "--resume")


@pytest.mark.parametrize("damage", [b"\xff\xfe\n", b"[" * 200_000, b'{"epoch": ' + b"1" * 5000 + b"}\n"])
def test_lines_of_the_metrics_that_cannot_be_read_are_dropped(damage, run, insert, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    lines = (run / "metrics.jsonl").read_bytes()
    (copy / "metrics.jsonl").write_bytes(lines + damage)
    call(*fit_on(copy, insert))
    assert (copy / "metrics.jsonl").read_bytes() == lines


def test_folders_where_files_belong_get_one_line(run, insert, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / ".notes.aside").mkdir()  # none of ours: it is left alone
    call(*fit_on(copy, insert))
    assert (copy / ".notes.aside").is_dir()
    (copy / ".metrics.jsonl.aside").mkdir()
    assert ".metrics.jsonl.aside" in refuse(*fit_on(copy, insert))
    (copy / ".metrics.jsonl.aside").rmdir()
    (copy / "metrics.jsonl").unlink()
    (copy / "metrics.jsonl").mkdir()
    assert "metrics.jsonl: Is a directory" in refuse(*fit_on(copy, insert))


def test_folders_that_cannot_be_are_wrong_use(insert, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for out in (tmp_path / "file" / "run", tmp_path / "loop" / "run", tmp_path / ("x" * 300), "/proc/run"):
        assert f"{out}: cannot write: " in refuse("fit", insert, *FIT, "--out", out)


def test_a_refused_run_leaves_no_empty_folder(insert, tmp_path):
    refuse("fit", tmp_path, *FIT, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "mine").mkdir()
    refuse("fit", tmp_path, *FIT, "--out", tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()  # not made by us
    rival = RunFolder(tmp_path / "rival")
    rival.hold()
    assert "another process" in refuse("fit", insert, *FIT, "--out", tmp_path / "rival")
    assert (tmp_path / "rival").is_dir()  # not ours either, and in use
    rival.release()
    assert not (tmp_path / "rival").exists()


def start(command, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "trainer", *map(str, arguments)],
        env=command.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)


def test_killed_and_resumed_ends_with_the_same_bits(command, datasets, tmp_path):
    data, arguments = datasets["edit"], [*FIT, "--updates", 120, "--save-every", 7, "--seed", 3]
    call("fit", data, *arguments, "--out", tmp_path / "whole")
    process = start(command, "fit", data, *arguments, "--out", tmp_path / "cut")
    wait_for(tmp_path / "cut" / "last.safetensors", process)
    process.kill()
    process.communicate()
    updates = load_checkpoint(tmp_path / "cut" / "last.safetensors")[1]["updates"]
    call("fit", data, *arguments, "--resume", "--out", tmp_path / "cut")
    for name in ("best", "last"):
        one, two = (load_checkpoint(tmp_path / run / f"{name}.safetensors")[0] for run in ("whole", "cut"))
        assert one.keys() == two.keys() and all(one[key].equal(two[key]) for key in one)
    assert updates < 120, "the kill came too late to test anything"
    assert not [path for path in (tmp_path / "cut").iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_saves_and_says_so(command, insert, tmp_path):
    process = start(command, "fit", insert, *FIT, "--updates", 100_000, "--save-every", 5, "--out", tmp_path / "run")
    wait_for(tmp_path / "run" / "last.safetensors", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("Error: stopped in epoch")
    assert "Traceback" not in errors


ROWS = {
    "no beginning": (lambda row: row | {"step": 1}, "a row precedes the first step of its game"),
    "no action": (lambda row: row | {"action": None}, "null value in a row"),
    "half an action": (lambda row: row | {"action": [None, "1"]}, "null value in a row"),
    "an empty action": (lambda row: row | {"action": []}, "has no action"),
    "no step": (lambda row: row | {"step": None}, "null value in a row"),
}


@pytest.mark.parametrize("case", ROWS)
def test_an_expert_who_says_nothing_gets_one_line(run, insert, tmp_path, case):
    folder, name = shutil.copytree(insert, tmp_path / "data"), "expert/test-00000-of-00001.parquet"
    table, (change, message) = pq.read_table(folder / name), ROWS[case]
    first, *rest = table.to_pylist()
    manifest = json.loads((folder / "manifest.json").read_text())
    about = json.loads(table.schema.metadata[b"aegen"])
    manifest["files"][name] = write_shard(folder / name, [change(first), *rest], table.schema, about)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    said = refuse("evaluate", run, "--data", folder, "--device", "cpu")
    assert name in said and message in said


def test_a_run_that_names_its_files_strangely_is_evaluated(run, insert, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    values = json.loads((run / "config.json").read_text())
    values["data"]["files"] = 7
    (copy / "config.json").write_text(json.dumps(sealed(values)))
    call("evaluate", copy, "--data", insert, "--split", "validation", "--device", "cpu")
    assert not (copy / "evaluation-validation.json").exists()  # not known to be its own data


def test_every_missing_package_of_the_base_install_is_named():
    project = tomllib.loads((ROOT / "trainer" / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    assert {DISTRIBUTIONS.get(name, name) for name in REQUIRED} == needed - {"click", "msgspec"}
