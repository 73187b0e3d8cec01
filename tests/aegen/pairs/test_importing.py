from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aegen.core.errors import AegenError, BadData, FolderConflict, InvalidSpec
from aegen.core.format import MANIFEST, SPLITS, detokenize, split_state
from aegen.dataset.annotations import check_annotations
from aegen.dataset.commands import commands
from aegen.dataset.folder import Folder
from aegen.dataset.recipe import Recipe
from aegen.dataset.show import draw_pairs, draw_trajectories
from aegen.dataset.stats import stats
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.experts.augment import Augmentation
from aegen.pairs.importing import Import
from aegen.pairs.tables import Table
from aegen.pipeline import build as pipeline
from aegen.pipeline.imported import write_annotations, write_imported

PAIRS = [(f"the cat {i} sit", f"the cat {i} sits down") for i in range(40)] + [("POS_3 DONE", "\\s a\tb")]
UNTABBED = [(source, target.replace("\t", "|")) for source, target in PAIRS]  # a field of TSV cannot hold a tab


def write(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def bring(tmp_path, *paths, **options):
    folder = Folder(tmp_path / "out")
    wanted = Import(tuple(paths), **options)
    manifest, _ = pipeline.import_pairs(wanted, folder)
    return folder, manifest, wanted


def texts(folder, manifest, kind="words", split=None):
    splits = [split] if split else ["train", "validation", "test"]
    names = [name for part in splits for name in manifest.shards("pairs", part)]
    rows = [row for name in names for row in pq.read_table(folder / name).to_pylist()]
    assert [row["id"] for row in rows[1:]] == [row["id"] + 1 for row in rows[:-1]]
    return [tuple(detokenize(split_state(row[side]), kind) for side in ("source", "target")) for row in rows]


def demonstrated(folder, metric=None, design=None, task="text"):
    pipeline.add_demonstrations(folder, pipeline.demonstrator(task, metric, design), Local())
    pipeline.add_augmented(folder, Augmentation(), Local())
    verify(folder, Local())


FORMATS = {
    "parallel": lambda d: (write(d / "a.src", [p[0] for p in PAIRS]), write(d / "a.tgt", [p[1] for p in PAIRS])),
    "csv": lambda d: (write(d / "a.csv", ["source,target", *(f'{s},"{t}"' for s, t in PAIRS)]),),
    "tsv": lambda d: (write(d / "a.tsv", ["source\ttarget", *(f"{s}\t{t}" for s, t in UNTABBED)]),),
    "jsonl": lambda d: (write(d / "a.jsonl", [json.dumps({"source": s, "target": t}) for s, t in PAIRS]),),
    "parquet": lambda d: (_parquet(d / "a.parquet"),),
}


def _parquet(path):
    pq.write_table(pa.table({"source": [s for s, _ in PAIRS], "target": [t for _, t in PAIRS]}), path)
    return path


@pytest.mark.parametrize("tokens", ["words", "chars"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_brings_the_same_pairs_and_they_can_be_played(kind, tokens, tmp_path):
    folder, manifest, _ = bring(tmp_path, *FORMATS[kind](tmp_path), tokens=tokens)
    assert Counter(texts(folder, manifest, tokens)) == Counter(UNTABBED if kind == "tsv" else PAIRS)
    demonstrated(folder)


def test_datasets_from_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"wrong": [s for s, _ in PAIRS], "right": [t for _, t in PAIRS]})
    datasets.DatasetDict({"train": data, "test": data.select(range(3))}).save_to_disk(tmp_path / "set")
    folder, manifest, _ = bring(tmp_path, tmp_path / "set", source_column="wrong", target_column="right")
    assert texts(folder, manifest, split="train") == PAIRS
    assert texts(folder, manifest, split="test") == PAIRS[:3]


def saved(place, **splits):
    """A dataset of the package datasets, with the texts of each split."""
    datasets = pytest.importorskip("datasets")
    made = {
        name: datasets.Dataset.from_dict({"source": rows, "target": [f"{row} x" for row in rows]})
        for name, rows in splits.items()
    }
    datasets.DatasetDict(made).save_to_disk(place)
    return place


@pytest.mark.parametrize("name", ["validation", "val", "valid", "dev"])
def test_a_split_of_datasets_may_have_another_name(name, tmp_path):
    place = saved(tmp_path / "set", train=["a", "b"], **{name: [f"c {number}" for number in range(20)]})
    _, manifest, _ = bring(tmp_path, place)
    assert [manifest.rows("pairs", split) for split in SPLITS] == [2, 20, 0]


def test_an_unknown_split_of_datasets_is_not_scattered(tmp_path):
    place = saved(tmp_path / "set", train=["a", "b"], extra=["c"])
    with pytest.raises(InvalidSpec, match="split 'extra': expected one of train, validation, test, or use --ratio"):
        bring(tmp_path, place)
    assert not (tmp_path / "out").exists()
    assert bring(tmp_path, place, ratio="100/0/0")[1].rows("pairs", "train") == 3
    pipeline.import_sources(Import((place,), sources_only=True), Folder(tmp_path / "free"))
    assert bring(tmp_path / "alone", saved(tmp_path / "one", all=["a", "b"]))[1].rows("pairs") == 2


M2 = """S This are a sentence .
A 1 2|||R:VERB|||is|||REQUIRED|||-NONE-|||0
A 3 4|||R|||text|||REQUIRED|||-NONE-|||1

S Nothing wrong here .
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0

S He go to to school
A 1 2|||R:VERB|||goes|||REQUIRED|||-NONE-|||0
A 3 4|||U|||-NONE-|||REQUIRED|||-NONE-|||0
A 5 5|||M:PUNCT|||.|||REQUIRED|||-NONE-|||0
"""


@pytest.mark.parametrize(
    "annotator,targets",
    [
        (0, ["This is a sentence .", "Nothing wrong here .", "He goes to school ."]),
        (1, ["This are a text .", "Nothing wrong here .", "He go to to school"]),
    ],
)
def test_m2(annotator, targets, tmp_path):
    (tmp_path / "a.m2").write_text(M2)
    folder, manifest, _ = bring(tmp_path, tmp_path / "a.m2", annotator=annotator, ratio="100/0/0")
    assert [target for _, target in texts(folder, manifest)] == targets
    demonstrated(folder)


@pytest.mark.parametrize(
    "annotator,text",
    [(2, M2), (1, "S a b\n"), (0, M2.replace("|||0", "|||4")), (0, M2.replace("|||0", "|||4") + "\nS d e\n")],
)
def test_an_annotator_that_is_not_there_is_named(annotator, text, tmp_path):
    (tmp_path / "a.m2").write_text(text)
    with pytest.raises(InvalidSpec, match=rf"a\.m2: no annotator {annotator}; existing: "):
        bring(tmp_path, tmp_path / "a.m2", annotator=annotator)
    assert not (tmp_path / "out").exists()


def test_an_annotator_must_be_in_the_files_of_every_split(tmp_path):
    (tmp_path / "a.m2").write_text(M2)
    (tmp_path / "b.m2").write_text(M2.replace("|||0", "|||4"))
    named = (Path(f"train={tmp_path / 'a.m2'}"), Path(f"test={tmp_path / 'b.m2'}"))
    with pytest.raises(InvalidSpec, match=r"no annotator 4 in train; existing: "):
        bring(tmp_path, *named, annotator=4)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name, value", [("annotator", 1), ("target_column", "right"), ("split_by", "target")])
def test_sources_without_targets_have_no_settings_of_targets(tmp_path, name, value):
    with pytest.raises(InvalidSpec, match=f"^{name}: sources without targets have none; leave it out$"):
        Import((tmp_path / "a.m2",), sources_only=True, **{name: value})


def test_sources_without_targets_are_for_training_alone(tmp_path):
    with pytest.raises(InvalidSpec, match=r"a\.m2: sources without targets are for training alone; leave test= out"):
        Import((Path(f"test={tmp_path / 'a.m2'}"),), sources_only=True)


def test_only_m2_files_have_annotators(tmp_path):
    write(tmp_path / "a.csv", ["source,target", "a,b"])
    with pytest.raises(InvalidSpec, match="annotator=3: only M2 files have annotators, not csv"):
        bring(tmp_path, tmp_path / "a.csv", annotator=3)
    with pytest.raises(InvalidSpec, match="annotator=3: only M2 files have annotators"):
        bring(tmp_path, pairs=(("a", "b"),), annotator=3)


def test_two_tables_are_not_two_texts(tmp_path):
    one, two = (write(tmp_path / name, ["source,target", "a,b"]) for name in ("t.csv", "u.csv"))
    with pytest.raises(InvalidSpec, match="csv takes one path, not 2"):
        bring(tmp_path, one, two)
    _, manifest, _ = bring(tmp_path, one, two, kind="parallel")
    assert manifest.rows("pairs") == 2


def test_the_splits_that_are_there_are_kept(tmp_path):
    for name, count in (("train", 5), ("val", 2), ("test", 3)):
        write(tmp_path / f"{name}_x.txt", ["3 6 9"] * count)
        write(tmp_path / f"{name}_y.txt", ["3 + 6 == 9"] * count)
    folder, manifest, _ = bring(tmp_path, tmp_path, task="aor")
    assert [manifest.rows("pairs", split) for split in ("train", "validation", "test")] == [5, 2, 3]
    assert set(texts(folder, manifest)) == {("3 6 9", "3 + 6 = 9")}
    demonstrated(folder, task="aor")


@pytest.mark.parametrize("by", ["source", "target"])
def test_what_splits_must_not_share(by, tmp_path):
    many = [(f"w{i % 90}", f"v{i % 70}") for i in range(3000)]
    write(tmp_path / "a.csv", ["source,target", *(f"{s},{t}" for s, t in many)])
    folder, manifest, _ = bring(tmp_path, tmp_path / "a.csv", ratio="80/10/10", split_by=by)
    side = {"source": 0, "target": 1}[by]
    groups = [
        {pair[side] for pair in texts(folder, manifest, split=split)} for split in ("train", "validation", "test")
    ]
    assert all(groups) and not (groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])


BAD = {
    "empty line": ([b"a\n", b"\n", b"c\n"], "a.src:2: an empty line"),
    "bad UTF-8": ([b"a\n", b"b\n", b"\xff\xfe\n"], "a.src:3: not valid UTF-8"),
    "NUL": ([b"a\n", b"b\0b\n", b"c\n"], "a.src:2: a NUL character"),
    "long line": ([b"a\n", b"b " * 100_000 + b"\n", b"c\n"], "a.src:2: more than 1,024 tokens"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named_or_skipped_and_counted(case, tmp_path):
    lines, message = BAD[case]
    (tmp_path / "a.src").write_bytes(b"".join(lines))
    write(tmp_path / "a.tgt", ["x", "y", "z"])
    paths = tmp_path / "a.src", tmp_path / "a.tgt"
    with pytest.raises(BadData, match=message):
        bring(tmp_path, *paths)
    assert not (tmp_path / "out").exists()
    _, manifest, wanted = bring(tmp_path, *paths, skip_bad=True)
    assert manifest.rows("pairs") == 2 and sum(wanted.skipped.values()) == 1


@pytest.mark.parametrize("line", [b"\xff,y\n", b"a\0b,y\n", b"b " * 100_000 + b",y\n", b"1,2,3\n"])
def test_bad_rows_of_a_table_are_skipped_and_counted(line, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"source,target\na,b\n" + line + b"c,d\n")
    with pytest.raises(BadData, match="a.csv:3: "):
        bring(tmp_path, tmp_path / "a.csv")
    _, manifest, wanted = bring(tmp_path, tmp_path / "a.csv", skip_bad=True)
    assert manifest.rows("pairs") == 2 and sum(wanted.skipped.values()) == 1


def test_several_m2_files_go_to_the_splits_that_name_them(tmp_path):
    for name in ("one", "two", "dev", "held"):
        (tmp_path / f"{name}.m2").write_text("".join(f"S {name} {n}\n\n" for n in range(40)))
    paths = [tmp_path / "one.m2", tmp_path / "two.m2", tmp_path / "validation=dev.m2", tmp_path / "test=held.m2"]
    named = [Path(f"{path.name.split('=')[0]}={tmp_path / path.name.split('=')[1]}") for path in paths[2:]]
    folder, manifest, _ = bring(tmp_path, *paths[:2], *named, ratio="50/50/0")
    held = {split: {text.split()[0] for text, _ in texts(folder, manifest, split=split)} for split in SPLITS}
    assert held == {"train": {"one", "two"}, "validation": {"one", "two", "dev"}, "test": {"held"}}
    assert manifest.rows("pairs") == 160
    made = manifest.recipe.pairs
    assert [file.split for file in made.inputs] == [None, None, "validation", "test"]
    (again,) = commands(manifest.recipe)
    assert "import one.m2 two.m2 validation=dev.m2 test=held.m2 --kind m2 --ratio 50/50/0" in again


def annotations(folder, manifest):
    return [
        tuple(row.values())
        for name in manifest.shards("annotations")
        for row in pq.read_table(folder / name).to_pylist()
    ]


def test_all_annotators_are_kept(tmp_path):
    (tmp_path / "a.m2").write_text(M2)
    for size in (1, 1000):
        folder = Folder(tmp_path / f"out{size}")
        wanted = Import((tmp_path / "a.m2",), ratio="100/0/0", rows_per_shard=size)
        manifest, _ = pipeline.import_pairs(wanted, folder)
        rows = annotations(folder, manifest)
        assert {row[0] for row in rows} == {*range(manifest.rows("pairs"))}
        assert sum(len(edits) for *_, edits in rows) == sum("|||" in x and "noop" not in x for x in M2.splitlines())
        verify(folder, Local())
        demonstrated(folder)
    assert stats(folder)["annotations"]["train"] == len(rows)


@pytest.mark.parametrize(
    "change,problem",
    [
        (lambda rows: rows[1:], "pair 1, expected 0"),
        (lambda rows: rows[:-1], "has no annotator"),
        (lambda rows: [*rows[:-1], rows[-1] | {"edits": ["0 99|||R|||x"]}], "not an edit of pair"),
        (lambda rows: [*rows[:-1], rows[-1] | {"edits": ["0 1"]}], "not an edit of pair"),
        (lambda rows: [rows[0], *rows], "do not ascend"),
        (lambda rows: [rows[0] | {"edits": ["0 1|||R|||xy"]}, *rows[1:]], "counts"),
    ],
)
def test_verify_reads_annotations(change, problem, tmp_path):
    (tmp_path / "a.m2").write_text("S a b\nA 0 1|||R|||x|||R|||-|||0\n\nS c\n")
    folder, manifest, _ = bring(tmp_path, tmp_path / "a.m2", ratio="100/0/0")
    (name,) = manifest.shards("annotations", "train")
    table = pq.read_table(folder / name)
    about = {"aegen": pq.read_metadata(folder / name).metadata[b"aegen"]}
    changed = pa.Table.from_pylist(change(table.to_pylist()), table.schema.with_metadata(about))
    pq.write_table(changed, folder / name)
    with pytest.raises(BadData, match=problem):
        check_annotations(folder / name, folder / name.replace("annotations", "pairs"))


def test_only_m2_files_are_named_by_their_split(tmp_path):
    write(tmp_path / "a.csv", ["source,target", "a,b"])
    with pytest.raises(InvalidSpec, match="SPLIT=FILE is for M2 files only, not csv"):
        bring(tmp_path, Path(f"train={tmp_path / 'a.csv'}"))
    odd = tmp_path / "train=a.m2"  # a name like any other
    odd.write_text("S a\n")
    folder, manifest, _ = bring(tmp_path, odd, ratio="0/0/100")
    assert texts(folder, manifest, split="test") == [("a", "a")]


def test_a_bad_line_of_m2_spoils_its_own_sentence_only(tmp_path):
    good = b"S one two\nA 0 1|||R|||ONE||UNO|||REQUIRED|||-NONE-|||0\n\n"
    bad = b"S bad \xff here\nA 0 1|||R|||X|||REQUIRED|||-NONE-|||0\n\nS y\nA \xff 1|||R|||X|||R|||-|||0\n\n"
    (tmp_path / "a.m2").write_bytes(good + bad + good)
    folder, manifest, wanted = bring(tmp_path, tmp_path / "a.m2", skip_bad=True, ratio="100/0/0")
    assert texts(folder, manifest) == [("one two", "ONE two")] * 2 and sum(wanted.skipped.values()) == 2


def test_line_breaks_inside_fields_and_carriage_returns_are_kept(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'source,target\r\n"a\r\nb",c\r\n')
    folder, manifest, _ = bring(tmp_path, tmp_path / "a.csv", tokens="chars", ratio="100/0/0")
    assert texts(folder, manifest, "chars") == [("a\r\nb", "c")]


def test_a_quotation_mark_in_tsv_is_a_character(tmp_path):
    pairs = [('"a', 'b"'), ('c"', "d"), ('"e"', '""')]
    path = write(tmp_path / "a.tsv", ["source\ttarget", *("\t".join(pair) for pair in pairs)])
    folder, manifest, _ = bring(tmp_path, path, ratio="100/0/0")
    assert texts(folder, manifest) == pairs


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InvalidSpec, match=r"a.csv: import reads its input several times"):
        bring(tmp_path, tmp_path / "a.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("gone", ["train-00000", "train-00001", "train-00002", "validation", "test"])
def test_an_interrupted_import_keeps_what_is_there(gone, tmp_path):
    path = write(tmp_path / "a.csv", ["source,target", *(f"{i},{i} x" for i in range(60))])
    folder, manifest, _ = bring(tmp_path, path, rows_per_shard=15)
    assert len(manifest.shards("pairs", "train")) >= 3
    whole = {name: (folder / name).read_bytes() for name in manifest.files}
    (lost,) = (name for name in manifest.files if name.startswith(f"pairs/{gone}"))
    inodes = {name: (folder / name).stat().st_ino for name in manifest.files if name != lost}
    (folder / MANIFEST).unlink()
    (folder / lost).unlink()
    assert bring(tmp_path, path, rows_per_shard=15)[1] == manifest
    assert {name: (folder / name).read_bytes() for name in manifest.files} == whole
    assert {name: (folder / name).stat().st_ino for name in inodes} == inodes


@pytest.mark.parametrize("write_config", [write_imported, write_annotations])
def test_input_that_became_shorter_is_an_error(write_config, tmp_path):
    (tmp_path / "a.m2").write_text(M2)
    wanted = Import((tmp_path / "a.m2",), ratio="100/0/0")
    counts = {"train": 5, "validation": 0, "test": 0}
    with pytest.raises(BadData, match="the input has changed: 2 pairs fewer than when it was checked"):
        write_config(wanted, Recipe(wanted.recorded), counts, Folder(tmp_path / "out"))


@pytest.mark.parametrize("write_config", [write_imported, write_annotations])
def test_input_that_became_longer_is_an_error(write_config, tmp_path):
    (tmp_path / "a.m2").write_text(M2)
    wanted = Import((tmp_path / "a.m2",), ratio="100/0/0")
    counts = {"train": 2, "validation": 0, "test": 0}
    with pytest.raises(BadData, match="the input has changed: more pairs in train than when it was checked"):
        write_config(wanted, Recipe(wanted.recorded), counts, Folder(tmp_path / "out"))


def test_a_mistyped_name_does_not_go_to_the_network(tmp_path):
    with pytest.raises(BadData, match="No such file"):
        bring(tmp_path, tmp_path / "gone.txt")


def test_unequal_lengths(tmp_path):
    with pytest.raises(BadData, match="a.src:2: a.tgt has fewer lines"):
        bring(tmp_path, write(tmp_path / "a.src", ["a", "b"]), write(tmp_path / "a.tgt", ["x"]))


@pytest.mark.parametrize(
    "name,content,options,message",
    [
        ("a.csv", "x,y\n1,2\n", {}, "no column 'source'"),
        ("a.csv", '"x\ny",z\n1,2\n', {}, r"a.csv: no column 'source'; there are 'x\\ny', 'z'$"),
        ("a.csv", '"a"b,source,target\n1,2,3\n', {}, "a.csv:1: ',' expected after"),
        ("a.csv", 'source,target\n"a"b,c\n', {}, "a.csv:2: ',' expected after"),
        ("a.csv", "source,target\n1,2,3\n", {}, "a.csv:2: wrong number of columns"),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{\n', {}, "a.jsonl:2: not valid JSON"),
        ("a.jsonl", '{"source": 1, "target": "b"}\n', {}, "a.jsonl:1: column 'source' holds no text"),
        ("a.jsonl", "[" * 100_000 + "\n", {}, "a.jsonl:1: not valid JSON"),
        ("a.jsonl", '{"source": "\\ud800", "target": "b"}\n', {}, "a.jsonl:1: not valid UTF-8"),
        ("a.parquet", "no parquet", {}, "not a readable Parquet"),
        ("a.m2", "S a b\nA 1 9|||x|||y|||R|||-|||0\n", {}, "outside the sentence"),
        ("a.m2", "S a b\nA x|||y\n", {}, "an edit that cannot be read"),
        ("a.m2", "B a b\n", {}, "expected a line that begins with S or A"),
        ("a.csv", "source,target\n", {}, "no pairs"),
        ("a.xyz", "source,target\n", {}, "unknown format; choose --kind [a-z0-9 |]* m2 . datasets$"),
        ("a.csv", "", {"ratio": "50/50"}, "ratio=50/50"),
        ("a.csv", "", {"tokens": "bytes"}, "tokens=bytes"),
        ("a.csv", "", {"task": "xyz"}, "task=xyz"),
        ("a.csv", "", {"task": "aor", "tokens": "chars"}, "tokens=chars"),
        ("a.csv", "", {"kind": "xyz"}, "kind=xyz"),
        ("a.csv", "", {"kind": "parallel"}, "two files"),
        ("a.csv", "", {"max_tokens": 0}, "max_tokens=0"),
        ("a.csv", "", {"max_tokens": 1 << 21}, "max_tokens=2097152: expected int <= 32768"),
        ("a.csv", "", {"rows_per_shard": 0}, "rows_per_shard=0: expected int >= 1"),
        ("a.csv", "", {"rows_per_shard": 1 << 70}, "rows_per_shard=.*: expected int <="),
        ("a.csv", "", {"seed": -1}, "seed=-1: expected int >= 0"),
        ("a.csv", "", {"seed": 1 << 63}, "seed=9223372036854775808: expected int <="),
        ("a.csv", "", {"annotator": -1}, "annotator=-1: expected int >= 0"),
        ("a.csv", "", {"split_by": "other"}, "split_by=other: expected one of source, target, pair"),
        ("a.csv", "", {"pairs": (("a", "b"),)}, "cannot be combined with paths or a kind of file"),
    ],
)
def test_bad_files_and_options(name, content, options, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(AegenError, match=message) as caught:
        bring(tmp_path, tmp_path / name, **options)
    assert isinstance(caught.value, (BadData, InvalidSpec)) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("row", ["a," * 600, 'a,"b\n",' * 300, '"a\n","b"\n' * 3 + ",".join("c" * 600)])
def test_a_row_of_a_table_is_not_longer_than_a_line_may_be(row, tmp_path, monkeypatch):
    monkeypatch.setattr("aegen.pairs.rows.MAX_LINE", 1000)
    lines = ["source,target", *["a,b", ""] * 1000]  # all of them together are longer
    write(tmp_path / "a.csv", [*lines, row])
    with pytest.raises(BadData, match=r"a.csv:2\d\d\d: a row of more than 1,000 characters"):
        bring(tmp_path, tmp_path / "a.csv", skip_bad=True)
    _, manifest, _ = bring(tmp_path, write(tmp_path / "a.csv", lines))
    assert manifest.rows("pairs") == 1000


def test_a_file_of_one_line_is_not_read_whole(tmp_path):
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadData, match=r"a.csv:1: a row of more than 16,777,216 characters"):
        next(Table(tmp_path / "a.csv", "csv", "source", "target").rows())


def parquet_file(path, source, **options):
    cells = source if isinstance(source, pa.Array) else pa.array(source)
    pq.write_table(pa.table({"source": cells, "target": pa.array(["x"] * len(cells))}), path, **options)
    return path


def test_a_parquet_file_of_few_bytes_does_not_unfold_to_gigabytes(tmp_path):
    one = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), pa.array(["2 " * 500_000]))
    path = parquet_file(tmp_path / "a.parquet", one, store_schema=False, write_statistics=False, compression="zstd")
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(BadData, match=r"a.parquet: a row group decodes to [\d,]+ bytes"):
        bring(tmp_path, path)
    assert path.stat().st_size < 1 << 12 and pa.default_memory_pool().max_memory() - before < 1 << 27
    path.write_bytes(path.read_bytes()[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(BadData, match="a.parquet: not a readable Parquet file"):
        bring(tmp_path, path)


def test_bytes_of_parquet_that_are_no_text_are_named_or_skipped(tmp_path):
    cells = pa.array([b"a", b"\xff\xfe", "\u00e9 b".encode()]).cast(pa.string(), safe=False)
    path = parquet_file(tmp_path / "a.parquet", cells)
    with pytest.raises(BadData, match="a.parquet:2: not valid UTF-8"):
        bring(tmp_path, path)
    folder, manifest, _ = bring(tmp_path, path, skip_bad=True, ratio="100/0/0")
    assert texts(folder, manifest) == [("a", "x"), ("\u00e9 b", "x")]


@pytest.mark.parametrize(
    "source,message",
    [
        (["a", "b" * 2000], "a.parquet:2: a text of more than 1,000 bytes"),
        (["a", None], "a.parquet:2: column 'source' holds no text"),
        ([1, 2], "a.parquet: column 'source' holds no text"),
        ([["a"], ["b"]], "a.parquet: column 'source' holds no text"),
        ([b"a", b"b"], "a.parquet: column 'source' holds no text"),
    ],
)
def test_bad_cells_of_parquet(source, message, tmp_path, monkeypatch):
    monkeypatch.setattr("aegen.pairs.rows.MAX_LINE", 1000)
    with pytest.raises(BadData, match=message):
        bring(tmp_path, parquet_file(tmp_path / "a.parquet", source))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_parquet_of_every_type(kind, tmp_path):
    cells = pa.array(["a", "b", "a"])
    cells = cells.dictionary_encode() if pa.types.is_dictionary(kind) else cells.cast(kind)
    table = pa.table({"source.id": [1, 2, 3], "source": cells, "target": cells, "split": pa.nulls(3)})
    pq.write_table(table, tmp_path / "a.parquet")
    folder, manifest, _ = bring(tmp_path, tmp_path / "a.parquet", ratio="100/0/0")
    assert texts(folder, manifest) == [("a", "a"), ("b", "b"), ("a", "a")]


@pytest.mark.parametrize("page", ["foo: [1", "dataset_info:\n  features: 7", "configs:\n- config_name: [1]"])
def test_a_folder_that_datasets_cannot_read(page, tmp_path, invoke):
    pytest.importorskip("datasets")
    (tmp_path / "set").mkdir()
    write(tmp_path / "set" / "train.csv", ["source,target", "a b,a c"])
    (tmp_path / "set" / "README.md").write_text(f"---\n{page}\n---\n")
    errors = invoke("import", "set", "--out", "d", check=2).stderr
    assert "set: the package datasets cannot read it" in errors and len(errors.splitlines()) == 1


def test_no_secret_of_a_url_that_datasets_names_is_shown(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")

    def fail(*_):
        raise ConnectionError("no answer\nfrom https://me:word@host/x?key=word")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    (tmp_path / "set").mkdir()
    with pytest.raises(BadData, match=r"set: the package datasets cannot read it \(ConnectionError: ") as refused:
        bring(tmp_path, tmp_path / "set")
    assert "word" not in str(refused.value) and "\n" not in str(refused.value)


def test_rows_that_datasets_cannot_read(tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "set").mkdir()
    parquet_file(tmp_path / "set" / "train.parquet", pa.array([b"\xff"]).cast(pa.string(), safe=False))
    with pytest.raises(BadData, match="set: the package datasets cannot read it"):
        bring(tmp_path, tmp_path / "set")


def test_without_paths_and_pairs_there_is_nothing_to_import():
    with pytest.raises(InvalidSpec, match="nothing to import"):
        Import()


def test_a_missing_file(tmp_path):
    with pytest.raises(BadData, match=r"gone\.src: No such file"):
        bring(tmp_path, tmp_path / "gone.src", tmp_path / "gone.tgt")


def test_the_same_input_again_is_nothing_to_do_and_another_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", ["source,target", "a b,a c"])
    folder, manifest, _ = bring(tmp_path, path)
    assert pipeline.import_pairs(Import((path,)), folder) == (manifest, False)
    write(path, ["source,target", "a b,a d"])
    with pytest.raises(FolderConflict, match="inputs"):
        pipeline.import_pairs(Import((path,)), folder)


def test_show_prints_the_original_text(tmp_path):
    folder, _, _ = bring(tmp_path, *FORMATS["jsonl"](tmp_path), tokens="chars", ratio="100/0/0")
    assert any("POS_3 DONE  →  \\s a\\tb" in line for line in draw_pairs(folder, "train", 50))
    demonstrated(folder)
    assert "the cat 0 sit‹s›" in "\n".join(draw_trajectories(folder, "expert", "train", 1))


@pytest.mark.parametrize("share", [12, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("metric", ["levenshtein", "lcs"])
def test_a_corpus_that_nobody_here_wrote(metric, share, tmp_path):
    """The misspellings of codespell, by characters: imported, TG, TA, every trajectory replayed."""
    from pathlib import Path

    import codespell_lib

    lines = (Path(codespell_lib.__file__).parent / "data" / "dictionary.txt").read_text(encoding="utf-8").splitlines()
    pairs = [(wrong, right.split(",")[0].strip()) for wrong, right in (line.split("->") for line in lines[::share])]
    path = write(tmp_path / "a.jsonl", [json.dumps({"source": s, "target": t}) for s, t in pairs])
    folder, manifest, _ = bring(tmp_path, path, tokens="chars", ratio="90/5/5", split_by="target")
    assert manifest.rows("pairs") == len(pairs) > 30_000 // share
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text", metric), Local())
    pipeline.add_augmented(folder, Augmentation(max_edits=6, max_states=64), Local())
    findings = verify(folder, Local())
    assert findings["rows"] > 3 * len(pairs)


RELEASED = {  # rows of the paper's data table: trajectories with TA, T_max, m, n
    "aor": (145_176, 6, 10, 2),
    "aes": (65_948, 6, 35, 3),
    "aec": (19_764, 4, 13, 3),
}


@pytest.mark.released
@pytest.mark.parametrize("task", ["aec", *(pytest.param(task, marks=pytest.mark.faults) for task in ("aor", "aes"))])
def test_the_papers_data_table_from_the_released_files(task, released, tmp_path):
    folder, manifest, _ = bring(tmp_path, released / task, task=task)
    assert [manifest.rows("pairs", split) for split in ("train", "validation", "test")] == [7000, 1500, 1500]
    pipeline.add_demonstrations(folder, pipeline.demonstrator(task), Local())
    pipeline.add_augmented(folder, Augmentation("released"), Local())
    figures = stats(folder)
    augmented = figures["augmented"]
    assert (augmented["trajectories"]["train"], *(augmented[key] for key in ("T_max", "m", "n"))) == RELEASED[task]
    if task == "aor":
        assert figures["shared sources"]["train/test"] == 163
    verify(folder, Local())


def test_a_name_that_nobody_could_record_is_refused(tmp_path, invoke):
    path = tmp_path / "\udcff.csv"
    path.write_text("source,target\na b,a\n")
    errors = invoke("import", path, "--out", "d", check=2).stderr
    assert "expected a name in UTF-8" in errors and len(errors.splitlines()) == 1 and not (tmp_path / "d").exists()
