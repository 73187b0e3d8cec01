from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from aegen.arithmetic.equation import value
from aegen.arithmetic.goals import goal_of, kept_integers
from aegen.core.errors import BadData, FolderConflict, InvalidSpec
from aegen.core.format import split_state
from aegen.dataset.dataset import Dataset
from aegen.dataset.folder import Folder
from aegen.dataset.shards import read_description_of
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline

SHARD = "sources/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("pairs") / "aor")
    pipeline.generate(Spec("aor", 4, 4, 200, split="paper"), folder, Local())
    return folder


def held_out(folder):
    dataset = Dataset.open(folder)
    return {source for split in ("validation", "test") for _, source, _ in dataset.pair_rows(split)}


def texts(folder):
    return [source for _, source in Dataset.open(folder).sources()]


def test_no_source_is_held_out_or_occurs_twice(pairs, tmp_path):
    spec = Spec("aor", 4, 4, 60, seed=1)
    everything, apart = Folder(tmp_path / "all"), Folder(tmp_path / "apart")
    pipeline.sources(spec, everything)
    pipeline.sources(spec, apart, pairs)
    assert set(texts(everything)) & held_out(pairs)  # or there would be nothing to leave out
    assert not set(texts(apart)) & held_out(pairs)
    assert len(set(texts(apart))) == len(texts(apart)) == 60
    assert verify(apart, Local()) == {"files": 1, "rows": 60}


def test_a_dataset_that_holds_nothing_out_is_refused(tmp_path, invoke):
    train, free = Folder(tmp_path / "train"), Folder(tmp_path / "free")
    pipeline.import_pairs(Import(pairs=(("1 1 2", "1 + 1 = 2"),), ratio="100/0/0", task="aor"), train)
    with pytest.raises(InvalidSpec, match="train: no pairs in its validation and test to hold out"):
        pipeline.sources(Spec("aor", 4, 4, 60), free, train)
    pipeline.sources(Spec("aor", 4, 4, 60), free)
    errors = invoke(
        "sources", "aor", "--n", 4, "--l", 4, "--d", 6, "--apart-from", "free", "--out", "d", check=2
    ).stderr
    assert "no config pairs; existing: sources" in errors and len(errors.splitlines()) == 1
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
def test_sources_are_the_tasks_own_and_say_what_wins(task, tmp_path):
    folder = Folder(tmp_path)
    pipeline.sources(Spec(task, 10, 4, 50), folder)
    described = read_description_of(folder / SHARD, "sources")
    assert described.goal == goal_of(task, 3, 4)
    for text in texts(folder):
        source = split_state(text)
        if task == "aes":
            assert value(source[: source.index("=")]) == value(source[source.index("=") + 1 :])
        if task != "aec":
            assert len(kept_integers(described.goal, source)) == 4
    assert pipeline.sources(Spec(task, 10, 4, 50), folder)[1] is False  # there already


def test_too_many_sources_are_an_error_that_counts_them(tmp_path):
    with pytest.raises(InvalidSpec, match="there are [0-9]+ sources for n=2, l=3"):
        pipeline.sources(Spec("aor", 2, 3, 1000), Folder(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_pairs_and_sources_do_not_mix(pairs, tmp_path):
    folder = Folder(tmp_path)
    spec = Spec("aor", 4, 4, 200, split="paper")
    with pytest.raises(FolderConflict, match="holds pairs, not sources without targets"):
        pipeline.sources(Spec("aor", 4, 4, 20), pairs)
    pipeline.sources(Spec("aor", 4, 4, 20), folder)
    for write in (
        lambda: pipeline.generate(spec, folder, Local()),
        lambda: pipeline.add_demonstrations(folder, pipeline.demonstrator("aor"), Local()),
    ):
        with pytest.raises(FolderConflict, match="holds sources without targets, not pairs"):
            write()


def test_other_sources_are_not_verified(tmp_path):
    folder = Folder(tmp_path)
    pipeline.sources(Spec("aor", 4, 4, 20), folder)
    other = Folder(tmp_path / "other")
    pipeline.sources(Spec("aor", 4, 4, 20, seed=1), other)
    # The rows of one, with the description of the other.
    about = pq.read_metadata(folder / SHARD).metadata
    table = pq.read_table(other / SHARD).replace_schema_metadata(about)
    pq.write_table(table, folder / SHARD)
    manifest = json.loads((folder / "manifest.json").read_text())
    import hashlib

    content = (folder / SHARD).read_bytes()
    manifest["files"][SHARD] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadData, match="is not a source of the spec, or not in its order"):
        verify(folder, Local())


def test_lines_are_imported_without_targets(pairs, tmp_path, run):
    (tmp_path / "more.txt").write_text(
        "\n".join([*sorted(held_out(pairs))[:5], "9 9 9 9", "9 9 9 9", "8 8 8 8"]) + "\n"
    )
    out = tmp_path / "more"
    options = ["--task", "aor", "--sources-only", "--apart-from", str(pairs.path), "--out", str(out)]
    assert run("import", str(tmp_path / "more.txt"), *options).returncode == 0
    assert texts(Folder(out)) == ["9 9 9 9", "8 8 8 8"]
    assert run("verify", str(out)).returncode == 0
    assert "8 8 8 8" in run("show", str(out)).stdout
    page = (out / "README.md").read_text()
    assert "aegen import more.txt" in page and "--sources-only --apart-from" in page
    with pytest.raises(InvalidSpec, match="kind=lines has no targets: use --sources-only"):
        pipeline.import_pairs(Import((tmp_path / "more.txt",), kind="lines"), Folder(tmp_path / "none"))


def test_a_table_needs_no_targets(tmp_path):
    (tmp_path / "more.csv").write_text("source\na b\nc\na b\n")
    wanted = Import((tmp_path / "more.csv",), sources_only=True)
    pipeline.import_sources(wanted, Folder(tmp_path / "more"))
    assert texts(Folder(tmp_path / "more")) == ["a b", "c"]
    assert read_description_of(tmp_path / "more" / SHARD).goal == goal_of("text")


def test_the_card_names_what_was_left_out_and_the_command_that_made_it(pairs, tmp_path, run):
    free, again = tmp_path / "free", tmp_path / "again"
    words = ["sources", "aor", "--n", "4", "--l", "4", "--d", "30", "--seed", "1", "--apart-from"]
    assert run(*words, str(pairs.path), "--out", str(free)).returncode == 0
    page = (free / "README.md").read_text()
    assert " ".join(["aegen", *words, Dataset.open(pairs).manifest.recipe.name]) in page
    assert all(name in page for name in Dataset.open(pairs).manifest.shards("pairs", "test"))
    run(*words, str(pairs.path), "--out", str(again))
    assert (free / SHARD).read_bytes() == (again / SHARD).read_bytes()
    assert json.loads(run("stats", str(free), "--json").stdout)["sources"] == 30
