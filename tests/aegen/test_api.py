"""The Python API from outside: everything by ``import aegen`` alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aegen
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pipeline import build as pipeline
from tests.hub import Hub


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_name_is_exported():
    for name in aegen.__all__:
        assert getattr(aegen, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = aegen.nothing


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
def test_library_and_command_build_the_same_dataset(task, tmp_path, invoke):
    """Also with a seed: a command once refused what the library had made."""
    data = aegen.build(f"{task}-n10-l4-d60-s5", out=tmp_path / "library")
    done = invoke("build", task, "--n", 10, "--l", 4, "--d", 60, "--seed", 5, "--out", tmp_path / "library")
    assert "nothing to do" in done.stdout
    invoke("build", task, "--n", 10, "--l", 4, "--d", 60, "--seed", 5, "--out", tmp_path / "command")
    assert content(tmp_path / "library") == content(tmp_path / "command")
    assert data.rows("pairs") == 60 and data.configs == ["pairs", "expert", "augmented"]
    pipeline.build(aegen.Spec(task, 10, 4, 60, seed=5), Folder(tmp_path / "pipeline"), Local())
    assert content(tmp_path / "pipeline") == content(tmp_path / "command")


def test_trajectories_lead_from_source_to_goal(tmp_path):
    data = aegen.build(aegen.Spec("aes", n=100, l=5, d=50), out=tmp_path / "aes")
    pairs = list(data.pairs("train"))
    experts = list(data.trajectories("train"))
    assert [(game.source, game.goal) for game in experts] == pairs
    assert all(set(game.steps[-1].action) == {"DONE"} and game.origin == 0 for game in experts)
    shifted = [game for game in data.trajectories("train", "augmented") if game.origin]
    assert shifted and all(game.goal == pairs[game.pair][1] for game in shifted)
    with pytest.raises(aegen.InvalidSpec, match="no config tags"):
        next(data.trajectories("train", "tags"))
    for read in (data.trajectories, data.pairs, data.pair_rows):
        with pytest.raises(aegen.InvalidSpec, match="split=val: expected one of train, validation, test"):
            next(read("val"))
    with pytest.raises(aegen.InvalidSpec, match="split=val"):
        data.rows("pairs", "val")
    with pytest.raises(aegen.InvalidSpec, match="no config sources; existing: pairs, expert, augmented"):
        next(data.sources())


def test_any_iterable_of_pairs_can_be_imported(tmp_path):
    rows = ((text, text.upper()) for text in ("ab", "c d"))
    data = aegen.import_pairs(rows, out=tmp_path / "mine", tokens="chars", ratio="100/0/0")
    assert list(data.pairs("train")) == [(("a", "b"), ("A", "B")), (("c", "\\s", "d"), ("C", "\\s", "D"))]
    assert [len(game.steps) for game in data.trajectories("train")] == [3, 3]
    assert data.verify()["rows"] == 2 + 6
    again = aegen.import_pairs([("ab", "AB"), ("c d", "C D")], out=tmp_path / "mine", tokens="chars", ratio="100/0/0")
    assert again.manifest == data.manifest
    with pytest.raises(aegen.FolderConflict, match=r"pairs\.inputs"):
        aegen.import_pairs([("x", "y")], out=tmp_path / "mine", tokens="chars", ratio="100/0/0")


@pytest.mark.parametrize("rows", [["ab"], [("a", "b", "c")], [("a", 1)], [None]])
def test_what_is_not_a_pair_is_named(rows, tmp_path):
    with pytest.raises(aegen.InvalidSpec, match="expected a pair of texts"):
        aegen.import_pairs(rows, out=tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_no_pairs_and_pairs_of_a_kind_are_refused(tmp_path):
    with pytest.raises(aegen.BadData, match="no pairs"):
        aegen.import_pairs([], out=tmp_path / "mine")
    with pytest.raises(aegen.InvalidSpec, match="cannot be combined with paths or a kind of file"):
        aegen.import_pairs([("a", "b")], out=tmp_path / "mine", kind="csv")
    assert not (tmp_path / "mine").exists()


def test_sources_without_targets_are_not_pairs(tmp_path):
    with pytest.raises(aegen.InvalidSpec, match="use `aegen import --sources-only`"):
        aegen.import_pairs([("a", "b")], out=tmp_path / "mine", sources_only=True)
    assert not (tmp_path / "mine").exists()


def test_a_demonstrator_that_does_not_exist_leaves_no_folder(tmp_path):
    for wrong in ({"metric": "nothing"}, {"design": "nothing"}, {"metric": "nothing", "design": "tags"}):
        with pytest.raises(aegen.InvalidSpec, match="=nothing: expected one of"):
            aegen.import_pairs([("a", "b")], out=tmp_path / "mine", **wrong)
        assert not (tmp_path / "mine").exists()


def test_pairs_can_be_imported_with_tags(tmp_path):
    data = aegen.import_pairs([("teh", "the")], out=tmp_path / "d", tokens="chars", ratio="100/0/0", design="tags")
    assert data.configs == ["pairs", "tags"] and data.verify()["rows"] == 3
    (game,) = data.trajectories("train", "tags")
    assert game.goal == ("t", "h", "e") and set(game.steps[-1].action) == {"KEEP"}


def test_files_can_be_imported(tmp_path):
    (tmp_path / "words.csv").write_text("source,target\nteh,the\n")
    data = aegen.import_pairs(tmp_path / "words.csv", out=tmp_path / "words", ratio="100/0/0")
    assert list(data.pairs("train")) == [(("teh",), ("the",))]
    (tmp_path / "a.txt").write_text("x\n")
    (tmp_path / "b.txt").write_text("y\n")
    both = aegen.import_pairs([tmp_path / "a.txt", tmp_path / "b.txt"], out=tmp_path / "two", ratio="100/0/0")
    assert list(both.pairs("train")) == [(("x",), ("y",))]


def test_a_custom_metric_can_be_an_object():
    class Backwards:
        name, backend, shortest = "backwards", {}, False

        def splices(self, state, goal):
            return [aegen.Splice(0, len(state), goal)] if state != goal else []

        def scripts(self, states, goals, alphabet):
            raise NotImplementedError

    steps = aegen.trajectory(["a"], ["b"], metric=Backwards(), design="edit")
    assert [step.action for step in steps] == [("REPLACE", "POS_0", "b"), ("DONE",) * 3]


def test_a_dataset_is_loaded_from_a_folder_and_from_a_hub(tmp_path):
    with Hub() as hub:
        code = """
import sys, aegen
data = aegen.build("aor-n10-l4-d40", out="aor")
assert aegen.load("aor").manifest == data.manifest
from aegen.cli import main
try:
    main(["publish", "aor", "--to", "hf://org/aor"])
except SystemExit as end:
    assert not end.code
there = aegen.load("hf://org/aor")
assert list(there.trajectories("test")) == list(data.trajectories("test"))
assert there.verify() == data.verify()
"""
        environment = os.environ | hub.settings(tmp_path / "hf")
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment
        )
    assert done.returncode == 0, done.stderr


def test_an_unfinished_folder_is_named(tmp_path):
    with pytest.raises(aegen.BadData, match=r"no manifest\.json"):
        aegen.load(tmp_path)
