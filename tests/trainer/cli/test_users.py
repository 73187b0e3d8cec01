"""What misled a new user: each of these was silent, or said too little."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from click import Context
from click.shell_completion import ShellComplete

from tests.pages import head_and_body
from tests.trainer.cli.test_commands import FIT, call, refuse
from tests.trainer.reference import write_dataset, write_shard
from trainer.cli import main
from trainer.core.config import MODEL_NAMES, settings
from trainer.models.policy import PLANNING
from trainer.models.zoo import MODELS
from trainer.publishing.publish import publish
from trainer.training.run import sealed

PLANNER = ["--device", "cpu", "--threads", 1]


@pytest.fixture(scope="module")
def planner(datasets, tmp_path_factory):
    """A run with all defaults but for its length."""
    folder = tmp_path_factory.mktemp("runs") / "span"
    call("fit", datasets["span"], *PLANNER, "--updates", 6, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def run(datasets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "insert"
    call("fit", datasets["insert"], *FIT, "--updates", 4, "--out", folder)
    return folder


def test_config_and_card_record_what_was_computed(planner, tmp_path):
    """The planner has learning rates of its own; the config's would be a lie."""
    said = json.loads((planner / "config.json").read_text())
    rates = [json.loads(line)["learning_rate"] for line in (planner / "metrics.jsonl").read_text().splitlines()]
    assert "learning_rate" not in said["config"] and "width" not in said["config"]
    assert [(stage["part"], stage["learning_rate"]) for stage in said["recipe"]] == [("plan", 3e-3), ("token", 5e-3)]
    assert sum(stage["updates"] for stage in said["recipe"]) == said["config"]["updates"] == 6
    assert all(rate <= 5e-3 for rate in rates)
    publish(planner, str(tmp_path / "agent"))
    _, page = head_and_body((tmp_path / "agent" / "README.md").read_text())
    assert (
        "| learning_rate |" not in page and "| token | 5 | 0.005 | 2 | 512 | 0.0 |" in page
    )  # little data: much decay
    call("fit", said["data"]["where"], *PLANNER, "--updates", 6, "--out", planner, "--resume")


def test_a_run_does_not_go_on_by_another_recipe(planner, tmp_path):
    """Rules for the recipe can change with the version."""
    copy = shutil.copytree(planner, tmp_path / "run")
    said = json.loads((copy / "config.json").read_text())
    said["recipe"][1]["weight_decay"] *= 2
    (copy / "config.json").write_text(json.dumps(sealed(said)))
    publish(copy, str(tmp_path / "agent"))
    assert "| token | 5 | 0.005 | 4 | 512 | 0.0 |" in (tmp_path / "agent" / "README.md").read_text()
    words = ["fit", said["data"]["where"], *PLANNER, "--updates", 6, "--out", copy, "--resume"]
    assert "trained by another recipe, of another version; use another folder" in refuse(*words)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--stream"], "nar-star: {} (--stream: the planner reads its data into memory)"),
        (["--preset", "cpu"], "nar-star: {} (the model of --preset cpu; the default is planner)"),
        (["--preset", "fast"], "planner: {} (the model of --preset fast)"),
        ([], "planner: {} (the default without a GPU)"),
        (["--model", "planner"], "planner: {}"),
    ],
)
def test_the_log_says_why_it_is_this_model(insert, tmp_path, options, why):
    said = call("fit", insert, *options, *PLANNER, "--updates", 1, "--out", tmp_path / "run").stderr.splitlines()[0]
    name, _, rest = why.partition("{}")
    assert said.startswith(name) and said.endswith(rest or "cpu") and "parameters" in said


@pytest.mark.parametrize("missing", ["empty", "absent"])
def test_data_without_validation_is_refused_before_anything_is_written(insert, tmp_path, missing):
    data = shutil.copytree(insert, tmp_path / "data")
    manifest = json.loads((data / "manifest.json").read_text())
    for name in [name for name in manifest["files"] if "/validation-" in name]:
        table = pq.read_table(data / name)
        about = json.loads(table.schema.metadata[b"aegen"])
        manifest["files"][name] = write_shard(data / name, [], table.schema, about)
        if missing == "absent":
            del manifest["files"][name]
    (data / "manifest.json").write_text(json.dumps(manifest))
    said = refuse("fit", data, *PLANNER, "--out", tmp_path / "run")
    assert "no " in said and "in the validation split, which training needs; `aegen import … --ratio 80/10/10`" in said
    assert not (tmp_path / "run").exists()
    call("fit", insert, *FIT, "--updates", 1, "--out", tmp_path / "run")  # the folder is free


def test_one_line_that_cannot_be_read_loses_no_other(run):
    result = call("edit", run, "--json", stdin="3 6 2 5\nfoo\n2 2 2 6\n", code=1)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["source"] for record in records] == ["3 6 2 5", "foo", "2 2 2 6"]
    assert [record["text"] == "foo" for record in records] == [False, True, False]
    assert result.stderr.startswith("Error: line 2: unknown token 'foo'") and len(result.stderr.splitlines()) == 1
    assert "text 1: unknown token" in call("edit", run, "foo", "3 6 2 5", code=2).stderr


def test_an_equation_without_spaces_is_told_how_to_write_it(run):
    assert '; write one space between tokens: "3 + 6 = 9"' in refuse("edit", run, "3+6=9")
    assert refuse("edit", run, "3 six 9").endswith("; tokens are separated by one space")


def test_a_folder_that_is_not_there_is_called_one(command, tmp_path):
    """It may be the name of a repository as well."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    for words in (("edit", "runs/gone", "3 6"), ("fit", "data/gone", "--out", tmp_path / "run")):
        said = command(*words, extra=offline, code=2).stderr
        assert said.startswith(f"Error: {words[1]}: no such folder; as a hub id: not in huggingface_hub's cache")
    named = command("edit", "hf://runs/gone", "3 6", extra=offline, code=2).stderr
    assert named.startswith("Error: hf://runs/gone: not in huggingface_hub's cache")


def test_a_run_is_not_written_into_a_dataset(insert, tmp_path):
    data = shutil.copytree(insert, tmp_path / "aes")
    before = sorted(data.rglob("*"))
    for out in (data, data / "run"):
        assert "is a dataset; choose another folder for the run" in refuse("fit", data, *PLANNER, "--out", out)
    assert sorted(data.rglob("*")) == before
    (tmp_path / "manifest.json").write_text("{}")  # that of a web page, say
    call("fit", data, *FIT, "--updates", 1, "--out", tmp_path / "run")


def test_a_longer_run_is_told_where_to_go(run, insert):
    said = refuse("fit", insert, *FIT, "--updates", 8, "--out", run, "--resume")
    assert "updates: existing value 4, requested 8: a run cannot be made longer" in said
    assert said.endswith("train in another folder")


def test_a_text_cannot_command_the_terminal(command, tmp_path):
    """Nor is a character that it cannot show the end of the command."""
    pairs = [(("a", "\\u001b", "é"), ("a", "b", "\\u001b", "é"))] * 4
    write_dataset(tmp_path / "data", "edit", dict.fromkeys(("train", "validation", "test"), pairs), arithmetic=False)
    call("fit", tmp_path / "data", *FIT, "--updates", 1, "--out", tmp_path / "run")
    for encoding, letter in (("ascii", "?"), ("latin-1", "é"), ("utf-8", "é")):
        extra = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "trainer", "edit", str(tmp_path / "run"), "a \x1b é"],
            env=command.environment | extra,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode(encoding).splitlines()[0] == rf"     a \x1b {letter}" and b"\x1b" not in done.stdout


def test_an_evaluated_run_is_a_row_of_a_report(datasets, tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "report"
    fit = ["fit", datasets["insert"], *FIT, "--updates", 2]
    call(*fit, "--out", runs / "first")
    said = refuse("report", runs, "--out", out)
    todo = "not evaluated: {0}; run `trainer evaluate {0}`"
    assert "no run that `trainer evaluate` has measured" in said and said.endswith(todo.format(runs / "first"))
    call("evaluate", runs / "first", "--device", "cpu")
    shown = call("report", runs, "--out", out).stdout
    assert "AOR equation NAR* + TA" in shown and "paper: 67.13" in shown  # in the main table, beside the paper's
    assert "not evaluated" not in shown
    page = (out / "report.md").read_text()
    assert "Device" not in page and "preset cpu.\n" in page  # a run does not record its device and threads
    for name, seed in (("second", 0), ("third", 7)):
        call(*fit, "--seed", seed, "--out", runs / name)
        assert todo.format(runs / name) in call("report", runs, "--out", out).stdout.splitlines()
        call("evaluate", runs / name, "--device", "cpu")
    call("report", runs, "--out", out)
    cells = {cell["name"]: cell for cell in json.loads((out / "results.json").read_text())["cells"]}
    # Equal ones stand apart by their names; another seed alone could be averaged with either, so it does too.
    assert {name: cell["label"] for name, cell in cells.items()} == {"first": "first", "second": "second", "third": ""}
    made = json.loads((runs / "third" / "evaluation-test.json").read_text())
    assert cells["third"]["scores"]["token"] == made["token_accuracy"] and cells["third"]["updates"] == 2
    again, measure = cells["third"]["commands"]
    call(*shlex.split(again)[1:-1], tmp_path / "again", "--device", "cpu")  # the last word is the folder
    one, two = (
        json.loads((path / "config.json").read_text())["config"] for path in (runs / "third", tmp_path / "again")
    )
    assert one == two and measure == f"trainer evaluate {runs / 'third'}"
    call("report", runs / "third", "--out", out)
    assert json.loads((out / "results.json").read_text())["cells"][0]["name"] == "third"
    call("report", out / "results.json", "--out", tmp_path / "more")
    call(*fit, "--seed", 8, "--out", runs / "other" / "third")
    call("evaluate", runs / "other" / "third", "--device", "cpu")
    said = refuse("report", runs / "third", runs / "other" / "third", "--out", out)
    assert said.endswith("another run is also named third; report the folder above both")


def completions(group, *words, incomplete=""):
    found = ShellComplete(group, {}, "trainer", "_TRAINER_COMPLETE").get_completions([*words], incomplete)
    return [(item.type, item.value) for item in found]


def test_the_help_of_fit_has_groups_defaults_and_choices():
    page = call("fit", "--help").stdout
    groups = re.findall(r"^(\w[\w ]*):$", page, flags=re.MULTILINE)
    assert groups == ["Options", "Data", "Model", "Training", "Planner only", "Editor and tagger only"]
    assert "\nOptions:\n  --" in page  # DATA is in the usage
    assert tuple(MODELS) == MODEL_NAMES and f"--model [{'|'.join(MODELS)}]" in " ".join(page.split())
    assert {one.name for one in settings() if one.group == "Planner only"} == PLANNING
    planner = page.partition("Planner only:")[2]
    assert "--beam" in planner and "--width" not in planner and "[default: (confidence)]" in " ".join(planner.split())
    for option in main.commands["fit"].params:
        required = option.required or option.name in ("resume", "compiled", "as_json")  # what is not given is not done
        assert required or "default:" in option.get_help_record(Context(main))[1], option.name
    assert "unknown model 'gpt'; models: ar, " in refuse("fit", "x", "--model", "gpt", "--out", "y")


def test_a_shell_completes_models_presets_and_folders(command):
    assert completions(main, "fit", "data", "--model", incomplete="nar") == [("plain", "nar"), ("plain", "nar-star")]
    assert ("plain", "core-hours") in completions(main, "fit", "data", "--preset")
    for words in (("fit",), ("fit", "data", "--out"), ("evaluate",), ("edit",), ("publish",), ("models", "--data")):
        assert completions(main, *words, incomplete="ru") == [("dir", "ru")], words
    asked = {"_TRAINER_COMPLETE": "bash_complete", "COMP_WORDS": "trainer fit x --model pl", "COMP_CWORD": "4"}
    assert command(extra=asked).stdout == "plain,planner\n"
