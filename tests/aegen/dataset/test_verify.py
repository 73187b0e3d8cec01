"""Damage of every kind is found and named."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from Levenshtein import distance
from msgspec.structs import asdict

from aegen.columns.ragged import intern
from aegen.core.errors import BadData
from aegen.core.format import KEY as DESCRIPTION_KEY
from aegen.core.format import MANIFEST
from aegen.core.format import MAX_STATE as MAX_TOKENS
from aegen.core.records import plain
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import file_info
from aegen.dataset.stats import stats
from aegen.dataset.verify import overlaps, verify
from aegen.dataset.verify.distinct import _distinct_sources
from aegen.dataset.verify.tasks import equation_numbers
from aegen.engines.local import Local
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline

NAME = "expert/train-00000-of-00001.parquet"
PAIRS = "pairs/train-00000-of-00001.parquet"


@pytest.fixture(scope="module", params=["aor", "aes", "aec"])
def built(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("built") / request.param
    pipeline.build(Spec(request.param, 10, 4, 120), Folder(path), Local())
    return path


@pytest.fixture
def folder(built, tmp_path):
    shutil.copytree(built, tmp_path / "copy")
    return Folder(tmp_path / "copy")


INFO = json.dumps({"rows": 1, "bytes": 1, "sha256": "0" * 64})


def rewrite(folder, name, change=lambda table: table, describe=lambda about: about, recount=False, group=None):
    """Change a shard and make the manifest (and the counts) agree, so that only the meaning is wrong."""
    path = folder / name
    table = pq.read_table(path)
    about = describe(json.loads(pq.read_metadata(path).metadata[DESCRIPTION_KEY.encode()]))
    table = change(table.replace_schema_metadata(None))
    if recount:
        about["counts"] = plain(sum(map(count_rows, table.to_batches()), Counts()))
    pq.write_table(table.replace_schema_metadata({DESCRIPTION_KEY: json.dumps(about)}), path, row_group_size=group)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"][name] = asdict(file_info(path, len(table)))
    (folder / MANIFEST).write_text(json.dumps(manifest))


def replace(column, row, entry):
    def change(table):
        values = table[column].to_pylist()
        values[row] = entry(values) if callable(entry) else entry
        return table.set_column(
            table.schema.get_field_index(column), column, pa.array(values, table.schema.field(column).type)
        )

    return change


def test_a_sound_folder(folder):
    findings = verify(folder, Local())
    assert findings["files"] == 7 and findings["sources in two splits"] == 0
    rewrite(folder, NAME)
    verify(folder, Local())  # the helper itself changes nothing that matters


@pytest.mark.parametrize("name", [NAME, PAIRS])
def test_truncated_altered_missing_and_unlisted_files(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for damaged in (whole[:-7], whole[:50] + b"x" + whole[51:]):
        path.write_bytes(damaged)
        with pytest.raises(BadData, match=f"{name}: altered"):
            verify(folder, Local())
    path.unlink()
    with pytest.raises(BadData, match=f"{name}: missing"):
        verify(folder, Local())
    path.write_bytes(whole)
    (folder / "pairs" / "extra.parquet").write_bytes(whole)
    with pytest.raises(BadData, match=r"extra.parquet: not in the manifest"):
        verify(folder, Local())


def _duplicate(table):
    return pa.concat_tables([table.slice(0, 1), table.slice(0, 1).set_column(0, "id", pa.array([1])), table.slice(2)])


MEANING = {
    "an equation that does not hold": (PAIRS, replace("target", 3, "2 + 2 + 2 = 2"), "row 3: not an equation"),
    "an equation of another size": (PAIRS, replace("target", 3, "2 + 2 = 4"), "row 3: not an equation"),
    "ids": (PAIRS, replace("id", 3, 0), "ids do not ascend"),
    "a step that does not follow": (NAME, replace("state", 1, "7 7 7 7"), "does not follow|does not begin"),
    "an action that is refused": (NAME, lambda t: replace("action", 0, ["POS_9"] * len(t["action"][0]))(t), "refuses"),
    "a first step that is not 0": (NAME, replace("step", 0, 99), "begins with step 99"),
    "a missing step": (NAME, lambda t: t.slice(0, len(t) - 1), "end before"),
    "missing trajectories": (NAME, lambda t: t.slice(0, 0), "end before"),
    "another pair": (NAME, replace("pair", 0, 77), "pair 77"),
    "other columns": (NAME, lambda t: t.drop_columns("origin"), "columns"),
}


@pytest.mark.parametrize("case", MEANING)
def test_rows_that_mean_something_wrong(folder, case):
    name, change, message = MEANING[case]
    rewrite(folder, name, change)
    with pytest.raises(BadData, match=message):
        verify(folder, Local())


def raw(column, row, entry):
    """Bytes for a text, whatever they are."""

    def change(table):
        values = [value.encode() for value in table[column].to_pylist()]
        values[row] = entry
        texts = pa.array(values, pa.binary()).cast(pa.string(), safe=False)
        return table.set_column(table.schema.get_field_index(column), column, texts)

    return change


def _no_text(actions):
    lists = [[b"\xff" for _ in action] for action in actions.to_pylist()]
    return pa.array(lists, pa.list_(pa.binary())).cast(pa.list_(pa.string()), safe=False)


@pytest.mark.parametrize("command", [("show",), ("show", "--json"), ("card",)])
def test_a_step_without_an_action_is_found(folder, command, run):
    name = "augmented/train-00000-of-00001.parquet"
    rewrite(folder, name, replace("action", 0, []))
    errors = run(command[0], folder.path, *command[1:], check=2).stderr
    assert f"{name}: a step without an action" in errors and len(errors.splitlines()) == 1


NO_TEXT = {
    "action": lambda table: table.set_column(4, "action", _no_text(table["action"])),
    **{column: raw(column, 0, b"\xff\xfe") for column in ("state", "source", "target")},
}


@pytest.mark.parametrize("column", NO_TEXT)
def test_bytes_that_are_no_text_are_found(folder, column):
    rewrite(folder, NAME if column in ("state", "action") else PAIRS, NO_TEXT[column])
    with pytest.raises(BadData, match="damaged .*UTF8"):
        verify(folder, Local())


@pytest.mark.parametrize("name,column", [(PAIRS, "source"), (PAIRS, "target"), (NAME, "state")])
def test_a_text_of_too_many_tokens_is_not_split(folder, name, column):
    rewrite(folder, name, replace(column, 0, " " * (MAX_TOKENS - 1)))
    with pytest.raises(BadData, match="not an equation|source of|a state of 65,536 tokens"):
        verify(folder, Local())
    rewrite(folder, name, replace(column, 0, " " * MAX_TOKENS))
    with pytest.raises(BadData, match=f"{name}: a text of more than 65,536 tokens"):
        verify(folder, Local())


def test_what_is_too_long_for_an_equation_is_not_split(monkeypatch):
    split = []
    monkeypatch.setattr(
        "aegen.dataset.verify.tasks.intern", lambda texts, tokens: split.append(texts) or intern(texts, tokens)
    )
    numbers = equation_numbers(pa.array([" " * 10**6, "2 + 2 + 2 = 6", "11 + 10 - 11 = 10", ""]), Spec("aor", 10, 4, 9))
    assert (numbers >= 0).tolist() == [False, True, True, False] and split[0].nbytes < 100


@pytest.mark.parametrize(
    "describe,message",
    [
        (lambda about: about | {"format": 99}, "format 99, this version reads format 2: update the package"),
        (lambda about: about | {"config": "pairs"}, "config 'pairs'"),
        (lambda about: about | {"max_state": "10"}, "max_state"),
        (lambda about: about | {"writable": 3}, "writable"),
        (lambda about: about | {"design": "span3" if about["design"] == "edit" else "edit"}, "design"),
    ],
)
def test_descriptions_that_lie(folder, describe, message):
    rewrite(folder, NAME, describe=describe)
    with pytest.raises(BadData, match=message):
        verify(folder, Local())


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "not valid JSON"),
        ("[]", "expected object, got array"),
        ("[" * 100_000, "expected object, got array"),
        ('{"format": 1, "spec": {}, "files": {}}', "format 1, this version reads format 2: build the dataset again"),
        ('{"format": 2, "spec": [], "files": {}}', "field spec: expected object, got array"),
        ('{"format": 2, "spec": {"pairs": 3}, "files": {}}', "expected object, got int"),
        ('{"format": 2, "spec": {}, "files": {}}', "missing required field spec.pairs"),
        ('{"format": 2, "spec": {"pairs": {}}, "files": {}}', "field spec.pairs.made: expected generated or imported"),
        ('{"format": 2, "spec": {"pairs": {"made": "generated", "task": "aor", "n": 1}}, "files": {}}', "invalid spec"),
        (f'{{"format": 2, "spec": {{}}, "files": {{"../../secret": {INFO}}}}}', "is not a shard name"),
        (f'{{"format": 2, "spec": {{}}, "files": {{"pairs/../x/train-1.parquet": {INFO}}}}}', "is not a shard name"),
        ('{"format": 2, "spec": {}, "files": {"pairs/train-00000-of-00001.parquet": {"rows": "1"}}}', "got str"),
    ],
)
def test_manifests_are_not_trusted(folder, text, message):
    (folder / MANIFEST).write_text(text)
    with pytest.raises(BadData, match=message):
        verify(folder, Local())


@pytest.fixture
def pairs_only(tmp_path):
    folder = Folder(tmp_path / "pairs")
    pipeline.generate(Spec("aec", 10, 4, 120), folder, Local())
    return folder


@pytest.mark.parametrize("command", ["verify", "show", "card", "stats", "trajectories"])
def test_every_command_names_bytes_that_are_no_text(tmp_path, command, run):
    folder = Folder(tmp_path / "paper")  # whose splits may share sources, so that the card and stats compare these
    pipeline.generate(Spec("aec", 10, 4, 120, split="paper"), folder, Local())
    rewrite(folder, PAIRS, NO_TEXT["source"])
    errors = run(command, folder.path, check=2).stderr
    assert f"{PAIRS}: damaged (" in errors and len(errors.splitlines()) == 1


def test_a_duplicate_is_found(pairs_only):
    rewrite(pairs_only, PAIRS, _duplicate, recount=True)
    with pytest.raises(BadData, match="1 equations occur twice"):
        verify(pairs_only, Local())


@pytest.mark.parametrize("row", [9, 10, 11])
def test_an_id_that_comes_again_is_found_wherever_the_row_groups_end(pairs_only, row):
    rewrite(pairs_only, PAIRS, group=10)
    verify(pairs_only, Local())
    rewrite(pairs_only, PAIRS, replace("id", row, row - 1), group=10)
    with pytest.raises(BadData, match=f"{PAIRS}: ids do not ascend at row {row}$"):
        verify(pairs_only, Local())


@pytest.mark.parametrize("division", [False, True])
@pytest.mark.parametrize(
    "expression,right",
    [
        ("( 2 + 2 )", True),
        ("( - 2 + 6 )", True),
        ("( 8 / 2 )", None),  # with division
        ("( 4 )", False),
        ("( 1 + 3 )", False),
        ("( 02 + 2 )", False),
        ("( 15 - 11 )", False),
        ("( 2 + 4 - 2 )", False),
        ("( - 2 + 2 + 4 )", False),
        ("( ( 2 + 2 ) )", False),
        ("( - 4 )", False),
        ("( 2 +", False),
        (") 2 + 2 (", False),
        ("( 2 x 2 )", False),
    ],
)
def test_a_source_with_other_expressions_than_allowed_is_found(tmp_path, expression, right, division):
    folder = Folder(tmp_path / "aes")
    pipeline.generate(Spec("aes", 10, 4, 120, division=division), folder, Local())
    targets = pq.read_table(folder / PAIRS)["target"].to_pylist()
    row, target = next((row, target) for row, target in enumerate(targets) if " 4 " in target)
    rewrite(folder, PAIRS, replace("source", row, target.replace(" 4 ", f" {expression} ", 1)), recount=True)
    if division if right is None else right:
        verify(folder, Local())
        return
    with pytest.raises(BadData, match=f"row {row}: .* is not an aes source of"):
        verify(folder, Local())


def test_a_manifest_with_another_number_of_capped_pairs_is_found(folder):
    manifest = json.loads((folder / MANIFEST).read_text()) | {"capped_pairs": 7}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BadData, match=f"{MANIFEST}: field capped_pairs is 7, the shards say 0"):
        verify(folder, Local())


def fitting(folder, sources, name):
    """One of these sources, and the row of a shard to whose target it could belong."""
    return next(
        (row, source)
        for row, target in enumerate(pq.read_table(folder / name)["target"].to_pylist())
        for source in sources
        if source.split()[-1] == target.split()[-1] and distance(source.split()[:-1], target.split()[:-1]) <= 3
    )


def sources_of(folder, pattern):
    return [source for path in folder.path.glob(pattern) for source in pq.read_table(path)["source"].to_pylist()]


def test_a_leak_is_found(pairs_only):
    test = PAIRS.replace("train", "test")
    rewrite(pairs_only, test, replace("source", *fitting(pairs_only, sources_of(pairs_only, PAIRS), test)))
    with pytest.raises(BadData, match="1 sources occur in two splits"):
        verify(pairs_only, Local())


def test_shared_sources_are_counted_once_each_and_not_held(tmp_path):
    rows = {"train": [0, 0, 1, 2, 3], "validation": [3, 3, 4], "test": [0, 1, 1, 3, 5, 5]}
    texts = ["", "\N{GRINNING FACE} z", *(f"a rather long source {number}" for number in range(4))]
    lines = [
        json.dumps({"source": texts[one], "target": "t", "split": split})
        for split, many in rows.items()
        for one in many
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    folder = Folder(tmp_path / "d")
    manifest, _ = pipeline.import_pairs(Import((tmp_path / "a.jsonl",), rows_per_shard=2), folder)
    assert overlaps(folder, manifest) == {"train/validation": 1, "train/test": 3, "validation/test": 1}
    assert [_distinct_sources(folder, manifest, "pairs", split).nbytes for split in rows] == [4 * 16, 2 * 16, 4 * 16]
    assert not len(_distinct_sources(folder, manifest, "variants", "train"))


@pytest.mark.parametrize(
    "change",
    [
        lambda source, target: target[:3] + ["+"] * 4 + target[3:],  # more mistakes than allowed
        lambda source, target: [*target[:-1], "11" if target[-1] != "11" else "2"],  # the last token is never wrong
        lambda source, target: ["=", *target],  # nobody inserts this
        lambda source, target: ["12", *target],  # beyond N+1
        lambda source, target: ["02", *target],
        lambda source, target: [],
    ],
)
def test_a_source_with_other_mistakes_than_allowed_is_found(pairs_only, change):
    def spoil(table):
        source, target = (table[column][5].as_py().split() for column in ("source", "target"))
        return replace("source", 5, " ".join(change(source, target)))(table)

    rewrite(pairs_only, PAIRS, spoil)
    with pytest.raises(BadData, match="row 5: .* is not an aec source of"):
        verify(pairs_only, Local())


@pytest.fixture
def with_variants(tmp_path):
    folder = Folder(tmp_path / "variants")
    pipeline.generate(Spec("aec", 10, 4, 120, variants=2, rows_per_shard=50), folder, Local())
    verify(folder, Local())
    return folder


VARIANTS = "variants/train-00001-of-00002.parquet"


def test_a_variant_that_leaks_is_found(with_variants):
    """A pair of another split has a source that a variant has too, and is otherwise in order."""
    test = "pairs/test-00000-of-00002.parquet"
    trained = sources_of(with_variants, "pairs/train*")
    others = [source for source in sources_of(with_variants, "variants/*") if source not in trained]
    rewrite(with_variants, test, replace("source", *fitting(with_variants, others, test)), recount=True)
    with pytest.raises(BadData, match="1 sources of variants occur in validation or test"):
        verify(with_variants, Local())


@pytest.mark.parametrize(
    "change",
    [
        replace("target", 3, lambda values: values[10]),
        replace("id", 3, lambda values: values[4]),
        lambda table: table.slice(0, len(table) - 1),
        lambda table: pa.concat_tables([table, table.slice(len(table) - 1)]),
    ],
)
def test_variants_belong_to_their_pairs(with_variants, change):
    rewrite(with_variants, VARIANTS, change)
    with pytest.raises(BadData, match="variants that do not belong|variants of|rows of variants|not an aec source"):
        verify(with_variants, Local())


@pytest.mark.parametrize("name", [PAIRS, PAIRS.replace("train", "test"), NAME])
def test_a_manifest_that_leaves_something_out(folder, name):
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["files"][name]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (folder / name).unlink()
    with pytest.raises(BadData, match="does not list all|missing|rows of pairs"):
        verify(folder, Local())


def test_stats_count_what_is_there(folder):
    figures = stats(folder, distinct=True)
    assert figures["pairs"] == {"train": 84, "validation": 18, "test": 18}
    table = pq.read_table(folder / NAME)
    assert figures["expert"]["steps"]["train"] == len(table)
    assert figures["expert"]["trajectories"]["train"] == 84
    unique = {(s, *a) for s, a in zip(table["state"].to_pylist(), table["action"].to_pylist(), strict=True)}
    assert figures["expert"]["unique steps"] == len(unique)
    pairs = pq.read_table(folder / PAIRS).to_pylist()
    assert figures["unchanged"]["train"] == sum(row["source"] == row["target"] for row in pairs)
