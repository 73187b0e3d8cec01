"""Token-level tags: every round brings the goal nearer, and what is on disk is replayed like everything else."""

import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.core.errors import BadData, InvalidEdit
from aegen.core.format import KEEP, Refusal
from aegen.dataset.commands import commands
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import file_info
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.experts.metrics import METRICS, Custom, load_metric
from aegen.experts.tags import TaggingGame, apply_tags, next_tags, rounds, tag_batch
from aegen.experts.trajectory import Summary
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline

TEXTS = st.lists(st.sampled_from("12+=x"), max_size=7).map(tuple)


@pytest.mark.parametrize("metric", ["levenshtein", "lcs"])
@given(TEXTS, TEXTS)
def test_rounds_lead_to_the_goal_and_end_when_nothing_is_left(metric, source, goal):
    chosen = load_metric(metric)
    steps = rounds(source, goal, chosen)
    state = source
    left = [len(chosen.splices(state, goal)) for state, _ in steps]
    for number, (seen, tags) in enumerate(steps):
        assert seen == state and len(tags) == len(state) + 1
        assert (set(tags) == {KEEP}) == (number == len(steps) - 1)
        state = apply_tags(state, tags)
    assert state == goal
    assert all(after < before for before, after in pairwise(left))


def test_the_papers_example_needs_one_round():
    steps = rounds(tuple("36293"), ("-", "3", "-", "6", "/", "2", "+", "9", "=", "3"), load_metric("levenshtein"))
    assert steps[0][1] == ("INSERT_-", "INSERT_-", "INSERT_/", "INSERT_+", "INSERT_=", "KEEP") and len(steps) == 2


def test_a_span_becomes_one_substitution():
    tags = next_tags(("(", "2", "+", "2", ")", "=", "4"), ("4", "=", "4"), METRICS["span"]())
    assert tags == ("KEEP", "SUB_4", "DELETE", "DELETE", "DELETE", "DELETE", "KEEP", "KEEP")


def test_a_metric_that_leads_nowhere_is_named():
    idle = Custom("idle", lambda state, goal: [], {})
    with pytest.raises(InvalidEdit, match="idle"):
        rounds(("1",), ("2",), idle)


def test_more_rounds_than_a_shard_can_number_are_refused(monkeypatch):
    batch = pa.record_batch({"id": [5], "source": ["1 2"], "target": ["1 + 1 = 2"]})
    assert len(tag_batch(batch, load_metric("levenshtein"), Summary())) == 4
    monkeypatch.setattr("aegen.experts.tags.MAX_STEPS", 3)
    with pytest.raises(InvalidEdit, match="pair 5: 4 rounds of tags; at most 3"):
        tag_batch(batch, load_metric("levenshtein"), Summary())


REFUSALS = [
    (("KEEP",), Refusal.WRONG_KIND),
    (("DELETE", "KEEP", "KEEP"), Refusal.WRONG_KIND),
    (("KEEP", "POS_1", "KEEP"), Refusal.WRONG_KIND),
    (("KEEP", "SUB_9", "KEEP"), Refusal.NOT_WRITABLE),
    (("INSERT_+", "INSERT_+", "KEEP"), Refusal.TOO_LONG),
]


@pytest.mark.parametrize("tags,reason", REFUSALS)
def test_refusals_keep_the_state(tags, reason):
    outcome = TaggingGame(frozenset("+"), max_state=3).step(("1", "2"), tags)
    assert (outcome.refusal, outcome.state, outcome.done) == (reason, ("1", "2"), False)


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "aec")
    pipeline.build(Spec("aec", 10, 4, 80, variants=2), made, Local())
    pipeline.add_demonstrations(made, pipeline.demonstrator("text", design="tags"), Local())
    return made


def alter(folder, name, change):
    """Rewrite a shard and its entry in the manifest: only the replay can tell."""
    path = folder / name
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    described = {b"aegen": pq.read_metadata(path).metadata[b"aegen"]}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema.with_metadata(described)), path)
    manifest = json.loads((folder / "manifest.json").read_text())
    info = file_info(path, len(rows))
    manifest["files"][name] = {"rows": info.rows, "bytes": info.bytes, "sha256": info.sha256}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_verify_replays_tags_and_the_variants_trajectories(folder):
    verify(folder, Local())
    manifest = folder.manifest()
    assert {"tags", "variants_expert"} <= set(manifest.configs)
    assert [line for line in commands(manifest.recipe) if line.endswith("--design tags")]
    wanted = pq.read_table(folder / "variants/train-00000-of-00001.parquet")
    made = pq.read_table(folder / "variants_expert/train-00000-of-00001.parquet").to_pylist()
    assert [row["state"] for row in made if row["step"] == 0] == wanted["source"].to_pylist()
    assert [row["state"] for row in made if row["action"][0] == "DONE"] == wanted["target"].to_pylist()


@pytest.mark.parametrize("name", ["tags/test-00000-of-00001.parquet", "variants_expert/train-00000-of-00001.parquet"])
def test_verify_finds_an_altered_action(folder, name):
    def change(rows):
        row = next(row for row in rows if row["step"] == 0 and set(row["action"]) not in ({KEEP}, {"DONE"}))
        row["action"] = [KEEP] * len(row["action"]) if name.startswith("tags") else ["DONE"] * len(row["action"])

    alter(folder, name, change)
    with pytest.raises(BadData, match="does not end at its goal"):
        verify(folder, Local())


def test_tags_are_added_once_and_are_the_same_bytes_every_time(folder, tmp_path):
    again = Folder(tmp_path / "again")
    pipeline.build(Spec("aec", 10, 4, 80, variants=2), again, Local())
    assert pipeline.add_demonstrations(again, pipeline.demonstrator("text", design="tags"), Local(2))[1]
    assert again.manifest() == folder.manifest()
    assert not pipeline.add_demonstrations(again, pipeline.demonstrator("text", design="tags"), Local())[1]


def test_the_command_writes_and_shows_them(invoke, tmp_path):
    invoke("generate", "aor", "--n", 10, "--l", 4, "--d", 30, "--out", "aor")
    assert "tags" in invoke("trajectories", "aor", "--design", "tags").stdout
    assert "INSERT_=" in invoke("show", "aor", "--config", "tags", "--rows", 1).stdout
    assert "verified" in invoke("verify", "aor").stdout
