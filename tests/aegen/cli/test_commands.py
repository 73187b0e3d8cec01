"""The command line as a user meets it: output, exit codes, one line of error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import click
import pytest

AOR = ("aor", "--n", 10, "--l", 4, "--d", 60)


def one_line(done):
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("Error: "), done.stderr
    return done.stderr


def test_from_spec_to_verified_demonstrations(invoke):
    assert "60 pairs" in invoke("build", *AOR, "--out", "d").stdout
    assert "nothing to do" in invoke("build", *AOR, "--out", "d").stdout
    shown = invoke("show", "d", "--rows", 1).stdout
    assert "POS_" in shown and "DONE DONE" in shown and "‹" in shown and "shifted" in shown
    assert "→" in invoke("show", "d", "--config", "pairs").stdout
    assert "T_max" in invoke("stats", "d").stdout
    assert "verified" in invoke("verify", "d").stdout
    assert json.loads(invoke("stats", "d", "--json").stdout)["pairs"]["train"] == 42
    assert json.loads(invoke("verify", "d", "--json").stdout)["files"] == 7
    row = json.loads(invoke("show", "d", "--json", "--rows", 1).stdout)
    assert row["origin"] == 0 and row["steps"][-1]["action"] == ["DONE", "DONE"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_config_that_is_not_there_is_not_shown(options, invoke):
    invoke("generate", *AOR, "--out", "d")
    for config in ("expert", "augmented", "tags"):
        said = one_line(invoke("show", "d", "--config", config, *options, check=2))
        assert f"no config {config}; existing: pairs" in said


@pytest.mark.parametrize("options", [(), ("--json",), ("--html", "x.html")])
def test_what_has_no_rows_is_not_shown(options, invoke, tmp_path):
    invoke("build", *AOR, "--out", "d")
    invoke("sources", *AOR, "--out", "free")
    for words, message in (
        (("d", "--config", "sources"), "d: no config sources; existing: pairs, expert, augmented"),
        (("d", "--config", "augmented", "--split", "test"), "no rows of augmented/test; existing: augmented/train"),
        (("free", "--config", "pairs"), "free: no config pairs; existing: sources"),
        (("free", "--split", "test"), "free: no rows of sources/test; existing: sources/train"),
    ):
        assert message in one_line(invoke("show", *words, *options, check=2))
    assert not (tmp_path / "x.html").exists()


def test_stages_and_import(invoke, tmp_path):
    (tmp_path / "a.csv").write_text("source,target\nhte,the\nteh,the\nadn,and\n")
    imported = json.loads(
        invoke("import", "a.csv", "--tokens", "chars", "--ratio", "100/0/0", "--out", "d", "--json").stdout
    )
    assert imported == {"folder": "d", "rows": {"pairs": 3}, "worked": True}
    assert "expert" in invoke("trajectories", "d", "--metric", "lcs").stdout
    assert "augmented" in invoke("augment", "d", "--algorithm", "released").stdout
    assert "verified" in invoke("verify", "d").stdout
    assert "expert.metric: existing value lcs, requested levenshtein" in one_line(invoke("trajectories", "d", check=2))


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_stages_one_by_one_make_what_build_makes(invoke, tmp_path):
    """With the dataset's seed in all of them; the card tells another one."""
    sampled, few = ("--max-states", 3), ("aor", "--n", 10, "--l", 4, "--d", 60, "--seed", 7)
    invoke("build", *few, *sampled, "--out", "whole")
    for name, seed in (("parts", ()), ("other", ("--seed", 0))):
        invoke("generate", *few, "--out", name)
        invoke("trajectories", name)
        invoke("augment", name, *sampled, *seed)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole") != contents(tmp_path / "other")
    page = (tmp_path / "other" / "README.md").read_text()
    assert "aegen augment aor-n10-l4-d60-s7 --max-states 3 --seed 0\n" in page


def test_a_stage_that_failed_does_not_block_the_next(invoke, tmp_path):
    (tmp_path / "a.csv").write_text("source,target\nab,ac\nb,c\n")
    invoke("import", "a.csv", "--tokens", "chars", "--ratio", "100/0/0", "--out", "d")
    assert "cannot express" in one_line(invoke("trajectories", "d", "--design", "insert", check=2))
    assert "verified" in invoke("verify", "d").stdout
    invoke("trajectories", "d")
    assert "verified" in invoke("verify", "d").stdout


METRIC = """
from aegen import Splice

def metric(state, goal):
    if "2" not in goal:
        {otherwise}
    return [Splice(i, i, (t,)) for i, t in enumerate(goal) if t in "+-*/="]
"""


@pytest.mark.parametrize("command", [("trajectories", "d"), ("build", *AOR, "--rows-per-shard", 5, "--out", "d")])
def test_a_stage_that_failed_leaves_the_dataset_as_it_was(invoke, tmp_path, command):
    """Some shards are written before the pair that the metric cannot solve."""
    (tmp_path / "mine.py").write_text(METRIC.format(otherwise="return []"))
    invoke("generate", *AOR, "--rows-per-shard", 5, "--out", "d")
    before = contents(tmp_path / "d")
    assert "its edits end at" in one_line(invoke(*command, "--metric", "mine:metric", check=2))
    assert contents(tmp_path / "d") == before
    assert "verified" in invoke("verify", "d").stdout


def test_a_first_build_that_failed_does_not_block_another_one(invoke, tmp_path):
    (tmp_path / "mine.py").write_text(METRIC.format(otherwise="return []"))
    words = ("build", *AOR, "--rows-per-shard", 5, "--out", "d")
    assert "its edits end at" in one_line(invoke(*words, "--metric", "mine:metric", check=2))
    assert list((tmp_path / "d" / "pairs").glob("*.parquet")) and not [*(tmp_path / "d").glob("expert/*.parquet")]
    invoke(*words)
    assert "verified" in invoke("verify", "d").stdout


def test_a_build_is_not_stopped_by_what_an_interrupted_stage_left(invoke, tmp_path):
    """Its shards are of another expert than the next one's."""
    (tmp_path / "mine.py").write_text(METRIC.format(otherwise="raise KeyboardInterrupt"))
    invoke("generate", *AOR, "--rows-per-shard", 5, "--out", "d")
    invoke("trajectories", "d", "--metric", "mine:metric", check=130)
    assert list((tmp_path / "d" / "expert").glob("*.parquet"))
    assert "not in the manifest; rerun the command that was interrupted" in one_line(invoke("verify", "d", check=2))
    invoke("build", *AOR, "--rows-per-shard", 5, "--out", "d")
    assert "verified" in invoke("verify", "d").stdout


@pytest.mark.parametrize("body", ["return None", "return [(0, 1, ('x',))]", "raise KeyError('oops')", "return 3"])
def test_whatever_a_users_metric_does_the_pair_is_shown(invoke, tmp_path, body):
    (tmp_path / "mine.py").write_text(f"def metric(state, goal):\n    {body}\n")
    assert "mine:metric" in one_line(invoke("build", *AOR, "--metric", "mine:metric", "--out", "d", check=2))


def test_a_name_in_a_manifest_is_no_permission_to_run_it(invoke, tmp_path):
    code = "from pathlib import Path\n\ndef metric(state, goal):\n    Path('ran').touch()\n    return []\n"
    (tmp_path / "theirs.py").write_text(code)
    invoke("build", *AOR, "--out", "d")
    invoke("generate", *AOR, "--out", "e")
    manifest = json.loads((tmp_path / "d" / "manifest.json").read_text())
    manifest["spec"]["expert"]["metric"] = "theirs:metric"
    del manifest["spec"]["augmented"]
    (tmp_path / "d" / "manifest.json").write_text(json.dumps(manifest))
    assert "custom; add --metric theirs:metric" in one_line(invoke("augment", "d", check=2))
    for command in (("show", "d"), ("stats", "d"), ("verify", "d"), ("card", "d"), ("publish", "d", "--to", "there")):
        invoke(*command, check=None)
    assert not (tmp_path / "ran").exists()
    invoke("trajectories", "e")
    assert "the expert metric of e is levenshtein" in one_line(
        invoke("augment", "e", "--metric", "theirs:metric", check=2)
    )


def test_pipes_get_no_bars_and_no_colours(invoke):
    done = invoke("build", *AOR, "--out", "d")
    assert done.stderr == "" and "\x1b" not in invoke("show", "d").stdout


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("generate", "aor", "--n", 1, "--l", 5, "--d", 10), "n=1: expected int >= 2"),
        (("generate", "aor", "--n", 10, "--l", 2, "--d", 10), "l=2: expected int >= 3"),
        (("generate", "aor", "--n", 10, "--l", 5, "--d", 0), "d=0: expected int >= 1"),
        (("generate", "aor", "--n", 10, "--l", 5, "--d", 100_000), "only 82,342 valid equations exist"),
        (("generate", "xyz", "--n", 10, "--l", 5, "--d", 10), "task=xyz: expected one of aor, aes, aec"),
        (("generate", "aor", "--n", 10**6, "--l", 5, "--d", 10), "63 bits"),
        (("generate", "aor", "--n", 2, "--l", 3, "--d", 25), "only 0 valid equations exist"),
        (("generate", "aor", "--n", 10, "--l", 300, "--d", 1), "63 bits"),
        (("build", *AOR, "--metric", "nothing"), "metric=nothing"),
        (("build", *AOR, "--design", "nothing"), "design=nothing"),
        (("build", *AOR, "--algorithm", "nothing"), "algorithm=nothing"),
        (("build", *AOR, "--metric", "levenshtein", "--design", "span"), "design span cannot express"),
        (("build", *AOR, "--metric", "span", "--design", "span"), "metric span requires parentheses, and aor has none"),
        (("build", "aec", *AOR[1:], "--design", "insert"), "design insert cannot express"),
        (("build", "aes", *AOR[1:], "--metric", "lcs"), "design span cannot express"),
        (("build", *AOR, "--metric", "mine:lost"), "metric mine:lost: its edits end at"),
    ],
)
def test_bad_input(invoke, tmp_path, arguments, message):
    (tmp_path / "mine.py").write_text("def lost(state, goal):\n    return []\n")
    assert message in one_line(invoke(*arguments, "--out", "d", check=2))
    assert not list(tmp_path.rglob("manifest.json"))


def test_nothing_is_written_for_a_bad_spec(invoke, tmp_path):
    invoke("generate", "aor", "--n", 10, "--l", 5, "--d", 100_000, "--out", "d", check=2)
    assert not (tmp_path / "d").exists()


def test_folders_that_cannot_be(invoke, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    assert "file is not a folder" in one_line(invoke("generate", *AOR, "--out", "file/d", check=2))
    for out in ("loop/d", "x" * 300, "/proc/d"):
        assert out in one_line(invoke("generate", *AOR, "--out", out, check=2))
    for command in ("show", "stats", "verify", "trajectories", "augment", "card"):
        assert "nowhere: no such folder" in one_line(invoke(command, "nowhere", check=2))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "manifest.json").write_text('{"made by": "somebody else"}')
    assert "manifest.json: no format number" in one_line(invoke("generate", *AOR, "--out", "d", check=2))


def test_a_damaged_shard_is_named(invoke, tmp_path):
    invoke("generate", *AOR, "--out", "d")
    path = tmp_path / "d" / "pairs" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    assert "pairs/test-00000-of-00001.parquet: altered" in one_line(invoke("verify", "d", check=2))


def test_help_lists_every_command_with_an_example(invoke):
    from aegen.cli import main

    listed = invoke("--help").stdout
    assert {"build", "plan", "verify"} <= main.commands.keys()
    for name, command in main.commands.items():
        page = invoke(name, "--help").stdout
        assert (
            re.search(rf"^  {name} ", listed, flags=re.MULTILINE) and f"aegen {name} " in page.partition("Example")[2]
        )
        for option in command.params:
            assert isinstance(option, click.Argument) or option.help, f"{name} {option.name} has no help"


def test_wrong_use_is_two(invoke):
    assert invoke("generate", "aor", check=None).returncode == 2
    assert invoke("nonsense", check=None).returncode == 2


def test_processes_say_and_end_as_expected(run, tmp_path):
    """What the other tests see inside their own process."""
    assert run("build", *AOR, "--out", "d").stdout.endswith("-> d\n")
    assert "n=1: expected int >= 2" in one_line(
        run("generate", "aor", "--n", 1, "--l", 5, "--d", 10, "--out", "e", check=2)
    )
    reading, writing = os.pipe()
    os.close(reading)  # before anything is written, so that nothing can be
    command = [sys.executable, "-m", "aegen", "show", "d", "--rows", "40"]
    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")  # a closed pipe is no error
