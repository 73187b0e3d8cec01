"""The counts in the shards' footers are those of the rows, and the card and `stats` read nothing else."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.card.render import write_card
from aegen.columns.schemas import PAIRS as PAIRS_COLUMNS
from aegen.columns.schemas import STEPS
from aegen.core.actions import DESIGNS
from aegen.core.errors import BadData
from aegen.core.format import KEY, SPLITS
from aegen.core.records import plain
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.folder import Folder
from aegen.dataset.footers import read_counts, shard_counts
from aegen.dataset.stats import stats
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.aegen.dataset.test_verify import rewrite

AUGMENTED = "augmented/train-00000-of-00001.parquet"
PAIRS = "pairs/train-00000-of-00001.parquet"


def imported(path) -> Folder:
    text = path / "pairs.tsv"
    lines = (f"der Hund {n % 7} bellt\tdie Hunde {n % 5} bellen laut\n" for n in range(90))
    text.write_text("source\ttarget\na\ta\n" + "".join(lines))
    folder = Folder(path / "text")
    pipeline.import_pairs(Import((text,), seed=0), folder)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text"), Local())
    pipeline.add_augmented(folder, Augmentation(max_edits=2, max_states=5), Local())
    return folder


@pytest.fixture(scope="module", params=["aor", "aes", "aec", "paper", "text"])
def built(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("counts")
    if request.param == "text":
        return imported(path)
    spec = {
        "aor": Spec("aor", 10, 4, 200),
        "aes": Spec("aes", 50, 5, 200, rows_per_shard=60),
        "aec": Spec("aec", 10, 4, 200, variants=2, rows_per_shard=60),
        "paper": Spec("aec", 10, 4, 200, split="paper"),
    }[request.param]
    folder = Folder(path / request.param)
    pipeline.build(spec, folder, Local())
    if request.param == "aec":
        pipeline.add_demonstrations(folder, pipeline.demonstrator("text", design="tags"), Local())
    return folder


@pytest.fixture
def aes(tmp_path):
    folder = Folder(tmp_path / "aes")
    pipeline.build(Spec("aes", 10, 4, 60), folder, Local())
    return folder


def kind(action: list[str]) -> str:
    """In the words of a design: INSERT POS_1 x, or POS_1 x, or POS_1 POS_4 x."""
    operation, *places = action if action[0] in ("INSERT", "DELETE", "REPLACE") else ("", *action)
    left, right = (int(token.removeprefix("POS_")) for token in (places[0], places[-2]))
    if operation:
        return operation.lower()
    return "insert" if len(action) == 2 else "replace" if left == right else "replace a span"


def recount(paths) -> Counts:
    """Row by row."""
    rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
    texts = [cell for row in rows for cell in row.values() if isinstance(cell, str)]
    if rows and "source" in rows[0]:
        size = 8 * len(rows) + sum(4 + len(text.encode()) for text in texts)
        return Counts(size, unchanged=sum(row["source"] == row["target"] for row in rows))
    texts += [token for row in rows for token in row["action"]]
    size = (8 + 4 + 2 + 4) * len(rows) + sum(4 + len(text.encode()) for text in texts)
    steps = Counter(row["step"] for row in rows)
    tags = paths[0].parent.name == "tags"  # rounds of many edits
    kinds = Counter(kind(row["action"]) for row in rows if not tags and row["action"][0] != "DONE")
    return Counts(size, reached=tuple(steps[number] for number in range(len(steps))), kinds=dict(kinds))


def test_the_footers_count_the_rows(built):
    manifest = built.manifest()
    found = read_counts(built, manifest, Local())
    everything = {(config, split) for config in manifest.configs for split in SPLITS}
    assert set(found) == {key for key in everything if manifest.shards(*key)}
    for (config, split), counts in found.items():
        assert counts == recount([built / name for name in manifest.shards(config, split)]), (config, split)
    assert found["augmented", "train"].kinds
    verify(built, Local())


def test_lengths_are_those_of_the_trajectories(built):
    counts = read_counts(built, built.manifest(), Local())["augmented", "train"]
    rows = [row for path in sorted((built / "augmented").glob("*")) for row in pq.read_table(path).to_pylist()]
    steps = Counter((row["pair"], row["origin"]) for row in rows)
    assert counts.lengths == Counter(steps.values()) and counts.trajectories == len(steps)


counted = st.builds(
    Counts,
    bytes=st.integers(0, 9),
    unchanged=st.integers(0, 9),
    reached=st.lists(st.integers(0, 9), max_size=4).map(tuple),
    kinds=st.dictionaries(st.sampled_from(["insert", "delete"]), st.integers(1, 9)),
)


@given(counted, counted, counted)
def test_counts_add_up(a, b, c):
    assert a + b == b + a and (a + b) + c == a + (b + c) and a + Counts() == a


def test_counts_do_not_depend_on_the_batches(aes):
    table = pq.read_table(aes / AUGMENTED)
    whole = count_rows(table.combine_chunks().to_batches()[0], DESIGNS["span"])
    parts = (count_rows(batch, DESIGNS["span"]) for batch in table.to_batches(max_chunksize=7))
    assert sum(parts, Counts()) == whole == shard_counts(aes / AUGMENTED, "augmented")
    pairs = pq.read_table(aes / PAIRS)
    assert sum(map(count_rows, pairs.to_batches(max_chunksize=7)), Counts()) == shard_counts(aes / PAIRS, "pairs")


WRONG = {
    "bytes": lambda counts: counts["bytes"] + 1,
    "unchanged": lambda counts: counts["unchanged"] + 1,
    "reached": lambda counts: [counts["reached"][0] - 1, counts["reached"][1] + 1, *counts["reached"][2:]],
    "kinds": lambda counts: counts["kinds"] | {"insert": 1},
}


@pytest.mark.parametrize("name,field", [(AUGMENTED, field) for field in WRONG] + [(PAIRS, "unchanged")])
def test_verify_finds_a_wrong_count(aes, name, field):
    rewrite(
        aes,
        name,
        describe=lambda about: about | {"counts": about["counts"] | {field: WRONG[field](about["counts"])}},
    )
    with pytest.raises(BadData, match=f"{name}: field counts.{field} is "):
        verify(aes, Local())


@pytest.mark.parametrize(
    "counts,message",
    [
        (None, "expected object, got null"),
        ({"bytes": -1}, "expected int >= 0"),
        ({"bytes": [1]}, "field bytes: expected int, got array"),
        ({"reached": [3, "x"]}, "expected int, got str"),
        ({"reached": [1] * 32768}, "field reached: expected array of length <= 32767"),
        ({"kinds": [1]}, "field kinds: expected object, got array"),
        ({}, "0 steps, but the shard has"),
    ],
)
def test_counts_of_strangers_are_checked(aes, counts, message):
    rewrite(aes, AUGMENTED, describe=lambda about: about | {"counts": counts})
    for command in (stats, lambda folder: write_card(folder, folder.manifest())):
        with pytest.raises(BadData, match=f"{AUGMENTED}: .*field counts.*: {message}"):
            command(aes)


@pytest.fixture
def reads(monkeypatch):
    """What is read of any Parquet file beside its footer: (columns of the file, row groups, columns asked for)."""
    seen = []
    read = pq.ParquetFile.iter_batches

    def iter_batches(self, *arguments, **options):
        seen.append((self.schema_arrow.names[0], options["row_groups"], options["columns"]))
        return read(self, *arguments, **options)

    def refuse(*arguments, **options):
        raise AssertionError("rows are read by iter_batches alone")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    for name in ("read", "read_row_group", "read_row_groups"):
        monkeypatch.setattr(pq.ParquetFile, name, refuse)
    return seen


def sources_only(built) -> bool:
    """Whether two splits can share sources, so that these have to be compared."""
    return built.path.name in ("paper", "text")


def test_stats_reads_footers_alone(built, reads):
    figures = stats(built)
    assert {tuple(read[2]) for read in reads} == ({("source",)} if sources_only(built) else set())
    assert "unique steps" not in figures["augmented"]
    assert stats(built, distinct=True)["augmented"]["unique steps"] > 0


def test_the_card_reads_footers_and_one_example(built, reads, tmp_path):
    shutil.copytree(built.path, tmp_path / "copy")
    copy = Folder(tmp_path / "copy")
    write_card(copy, copy.manifest())
    steps = [read for read in reads if read[0] == "pair"]
    assert steps and all(groups == [0] for _, groups, _ in steps) and len(steps) <= 2  # the size guard, the example
    assert {tuple(read[2]) for read in reads if read not in steps} == ({("source",)} if sources_only(built) else set())


def test_the_description_is_plain_json(aes):
    about = json.loads(pq.read_metadata(aes / AUGMENTED).metadata[KEY.encode()])
    assert about["counts"] == json.loads(json.dumps(plain(shard_counts(aes / AUGMENTED, "augmented"))))


@pytest.mark.parametrize("schema", [PAIRS_COLUMNS, STEPS])
def test_an_empty_batch_counts_nothing(schema):
    assert count_rows(pa.RecordBatch.from_pylist([], schema=schema)) == Counts()
