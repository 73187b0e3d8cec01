import json
import shutil
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainer import reference
from trainer.core.description import read_manifest
from trainer.core.errors import BadData, TrainerError
from trainer.core.format import MAX_TOKEN, MAX_VOCABULARY, VERSION
from trainer.core.progress import Reporter
from trainer.data.contract import Contract, merge
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs, load_steps
from trainer.training.fit import train_run
from trainer.training.presets import preset


def load(folder, config="augmented", split="train"):
    dataset = Dataset(folder)
    footers = dataset.footers(config, split)
    contract = dataset.contract(footers)
    return contract, load_steps(dataset, footers, contract)


def copy(folder, to):
    return shutil.copytree(folder, to / "copy")


def rewrite(folder, name, **changes):
    """Replace fields of one shard's description, and keep the manifest in step."""
    path = folder / name
    table = reference.pq.read_table(path)
    description = json.loads(table.schema.metadata[b"aegen"]) | changes
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = reference.write_shard(path, table.to_pylist(), table.schema, description)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize("design", reference.SLOTS)
def test_ids_say_what_the_rows_say(datasets, design):
    contract, steps = load(datasets[design])
    names = ("", *contract.state_tokens)
    rows = reference.pq.read_table(next((datasets[design] / "augmented").iterdir())).to_pylist()
    batch = steps.batch(steps.taken)
    assert len(rows) == len(batch.states)
    for row, state, length, action in zip(
        rows, batch.states.tolist(), batch.lengths.tolist(), batch.actions.tolist(), strict=True
    ):
        assert " ".join(names[i] for i in state[:length]) == row["state"]
        assert [contract.actions[i] for i in action] == row["action"]
    assert len(steps) == len({(row["state"], *row["action"]) for row in rows})
    assert steps.trajectories == len({(row["pair"], row["origin"]) for row in rows})


def test_pooling_gives_the_unique_steps_of_the_trajectories(insert):
    _, steps = load(insert)
    chosen = torch.tensor([5, 0, 9])
    expected = {int(i) for t in chosen for i in steps.taken[steps.starts[t] : steps.starts[t + 1]]}
    assert set(steps.pooled(chosen).tolist()) == expected


def test_several_shards_are_one_dataset(tmp_path):
    one = reference.small_dataset(tmp_path / "one", "edit")
    five = reference.small_dataset(tmp_path / "five", "edit", shards=5, row_group_size=20)
    (contract, steps), (again, others) = load(one), load(five)
    assert contract == again
    assert torch.equal(steps.states, others.states) and torch.equal(steps.taken, others.taken)


def test_an_empty_state_has_no_tokens(tmp_path):
    pairs = [((), ("a",)), (("a",), ())]
    folder = reference.write_dataset(tmp_path, "edit", {"train": pairs, "validation": pairs}, arithmetic=False)
    contract, steps = load(folder, "expert")
    assert steps.batch(steps.taken).lengths.tolist() == [0, 1, 1, 0]
    assert load_pairs(Dataset(folder), "validation", contract).sources == [(), ("a",)]


def test_a_source_outside_the_vocabulary_is_marked(tmp_path):
    splits = {
        "train": [(("a",), ("b",))],
        "validation": [(("z",), ("b",)), (("a", "a"), ("b",)), (("b",), ("b",))],
    }
    folder = reference.write_dataset(tmp_path, "edit", splits, arithmetic=False)
    dataset = Dataset(folder)
    contract = dataset.contract(dataset.footers("expert", "train"))
    assert load_pairs(dataset, "validation", contract).playable.tolist() == [False, False, True]
    steps = load_steps(dataset, dataset.footers("expert", "validation"), contract, strict=False)
    assert (steps.skipped, len(steps), steps.trajectories) == (3, 1, 3)
    with pytest.raises(BadData, match="does not match the shard"):
        load_steps(dataset, dataset.footers("expert", "validation"), contract)


def test_merging_unites_and_refuses_what_differs(insert):
    contract, _ = load(insert)
    more = Contract.parse(contract.to_json() | {"state_tokens": sorted([*contract.state_tokens, "x"])}, "b")
    assert merge([("a", contract), ("b", more)]).state_tokens == more.state_tokens
    other = Contract.parse(contract.to_json() | {"metric": "lcs"}, "c")
    with pytest.raises(BadData, match=r"c: field metric differs from a"):
        merge([("a", contract), ("c", other)])


def test_the_contract_survives_json(insert):
    contract, _ = load(insert)
    assert Contract.parse(json.loads(json.dumps(contract.to_json())), "again") == contract


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": VERSION + 1}, "update the package"),
        ({"format": str(VERSION)}, "build the dataset again"),
        ({"max_state": 10**10}, "field max_state: expected int <= 65536"),
        ({"max_state": True}, "field max_state: expected int, got bool"),
        ({"max_state": 1}, "exceeds max_state 1"),
        ({"max_steps": 0}, "no states to play from"),
        ({"action_length": 3}, "field action_length: expected 2, got 3"),
        ({"slots": ["token", "position"]}, "field slots: no such action"),
        ({"slots": [["position"], "token"]}, r"field slots\[0\]: expected str, got array"),
        ({"tokens": "bytes"}, "field tokens: invalid enum value 'bytes'"),
        ({"state_tokens": ["b", "a"]}, "sorted"),
        ({"state_tokens": ["a b"]}, "contains white space"),
        ({"state_tokens": ["DONE"]}, "reserved for actions"),
        ({"state_tokens": ["x"] * (MAX_VOCABULARY + 1)}, "field state_tokens: expected array of length <="),
        ({"state_tokens": ["x" * (MAX_TOKEN + 1)]}, "expected str of length <="),
        ({"writable": []}, "not in writable"),
        ({"arithmetic": 1}, "field arithmetic: expected bool, got int"),
        ({"spec": []}, "field spec: expected object, got array"),
    ],
)
def test_hostile_descriptions_are_refused(insert, tmp_path, changes, message):
    folder = rewrite(copy(insert, tmp_path), "augmented/train-00000-of-00001.parquet", **changes)
    with pytest.raises(BadData, match=message):
        load(folder)


def test_rows_that_contradict_their_description_are_refused(insert, tmp_path):
    name = "augmented/train-00000-of-00001.parquet"
    tokens = json.loads(reference.pq.read_schema(insert / name).metadata[b"aegen"])["state_tokens"]
    folder = rewrite(copy(insert, tmp_path), name, state_tokens=[t for t in tokens if t != "2"])
    with pytest.raises(BadData, match="does not match the shard's description"):
        load(folder)


def test_deep_json_is_refused():
    with pytest.raises(BadData, match="not valid JSON"):
        read_manifest(b'{"format": 2, "spec":' + b'{"a":' * 200_000, "x")


def test_damage_is_named(insert, tmp_path):
    folder = copy(insert, tmp_path)
    shard = folder / "expert/train-00000-of-00001.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[:-9])
    with pytest.raises(BadData, match="bytes, the manifest says"):
        load(folder, "expert")
    flipped = bytearray(content)
    flipped[40] ^= 1
    shard.write_bytes(bytes(flipped))
    with pytest.raises(BadData, match="altered"):
        load(folder, "expert")
    shard.unlink()
    with pytest.raises(BadData, match="missing"):
        load(folder, "expert")
    (folder / "manifest.json").unlink()
    with pytest.raises(BadData, match=r"no manifest\.json"):
        Dataset(folder)


def test_a_gap_in_the_shards_is_named(tmp_path):
    folder = reference.small_dataset(tmp_path / "gap", "insert", shards=3)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["expert/train-00001-of-00003.parquet"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadData, match="shard 1 of 3 of expert/train is missing"):
        load(folder, "expert")


def test_names_that_leave_the_folder_are_never_read(insert, tmp_path):
    folder = copy(insert, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["expert/../../secret/train-00000-of-00001.parquet"] = next(iter(manifest["files"].values()))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadData, match="is not a shard name"):
        Dataset(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_files_raise_only_named_errors(insert, tmp_path_factory, data):
    folder = copy(insert, tmp_path_factory.mktemp("fuzz"))
    name = data.draw(st.sampled_from(["manifest.json", "augmented/train-00000-of-00001.parquet"]))
    content = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / name).write_bytes(bytes(content))
    manifest = json.loads((insert / "manifest.json").read_text())
    if name != "manifest.json":  # a hostile author keeps the hash in step
        manifest["files"][name]["sha256"] = reference.hashlib.sha256(bytes(content)).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
    try:
        load(folder)
    except TrainerError as error:
        assert "\n" not in str(error)


def replaced(folder, name, rows, **changes):
    """Other rows in one shard, with the manifest in step."""
    path = folder / name
    schema = reference.pq.read_schema(path)
    manifest = json.loads((folder / "manifest.json").read_text())
    description = json.loads(schema.metadata[b"aegen"]) | changes
    manifest["files"][name] = reference.write_shard(path, rows, schema, description)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def in_step(folder, name):
    """A manifest that knows the bytes of a shard."""
    manifest, content = json.loads((folder / "manifest.json").read_text()), (folder / name).read_bytes()
    sha256 = reference.hashlib.sha256(content).hexdigest()
    manifest["files"][name] |= {"sha256": sha256, "bytes": len(content)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


LOADERS = """
import resource, sys, torch
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import pyarrow as pa
from trainer.core.device import Runtime
from trainer.core.errors import BadData
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.data.demonstrations import load_held_out
from trainer.data.encode import encode_actions, load_pairs
from trainer.data.stream import StreamSampler
from trainer.models.zoo import open_demonstrations
from trainer.training.presets import preset
data = Dataset(sys.argv[1])
contract = open_demonstrations(data, preset("cpu")).contract
text = open_demonstrations(data, preset("cpu", model="end2end")).contract
tags = Contract.parse(contract.to_json() | {
    "slots": ["tags"], "action_tokens": ["KEEP"], "action_length": contract.max_state + 1
}, "tags")
streamed = StreamSampler(
    data, data.footers("expert", "validation"), contract, preset("cpu", stream=True), Runtime(torch.device("cpu"))
)
loaders = {
    "expert": lambda: load_held_out(data, "validation", contract),
    "pairs/validation": lambda: load_pairs(data, "validation", contract),
    "pairs": lambda: load_held_out(data, "validation", text),
    "data/expert": lambda: next(streamed.updates(0)),
    "tags": lambda: encode_actions(pa.array([["KEEP"]] * 40_000), tags, "tags"),
}
for name, load in loaders.items():
    try:
        load()
        sys.exit(f"{name} was read")
    except BadData as error:
        assert f"{name}: the rows would need" in str(error), error
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) >> 10)
"""


def test_a_declared_size_takes_no_memory_for_rows_that_are_short(insert, tmp_path):
    folder = shutil.copytree(insert, tmp_path / "data")
    rewrite(folder, "augmented/train-00000-of-00001.parquet", max_state=1 << 16)
    texts = [" ".join(str(number)) for number in range(40_000)]
    pairs = [{"id": id, "source": text, "target": text} for id, text in enumerate(texts)]
    steps = [{"pair": id, "origin": 0, "step": 0, "state": s, "action": ["DONE"] * 2} for id, s in enumerate(texts)]
    replaced(folder, "pairs/validation-00000-of-00001.parquet", pairs)
    replaced(folder, "expert/validation-00000-of-00001.parquet", steps)
    replaced(folder, "pairs/train-00000-of-00001.parquet", [{"id": 0, "source": "1", "target": "1 " * 60_000 + "1"}])
    assert sum(path.stat().st_size for path in folder.rglob("*.parquet")) < 4 << 20
    done = subprocess.run([sys.executable, "-c", LOADERS, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1200  # megabytes, of which torch takes some hundred


def test_texts_are_counted_before_they_are_words(insert, monkeypatch):
    dataset = Dataset(insert)
    contract = dataset.contract(dataset.footers("augmented", "train"))
    monkeypatch.setattr("trainer.data.encode.GAME", 1)
    monkeypatch.setattr("trainer.data.encode.MAX_TABLE", 1 << 11)  # more than the ids need
    with pytest.raises(BadData, match="pairs/validation: the rows would need"):
        load_pairs(dataset, "validation", contract)


HOLLOW = """
import resource, sys
from pathlib import Path
from trainer.core.errors import BadData
from trainer.core.progress import Reporter
from trainer.training.fit import train_run
from trainer.training.presets import preset
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for number, changes in enumerate(({}, {"stream": True})):
    try:
        config = preset("cpu", width=8, layers=1, updates=1, **changes)
        train_run(sys.argv[1], config, Path(sys.argv[2], str(number)), device="cpu", reporter=Reporter(quiet=True))
        sys.exit("it was read")
    except BadData as error:
        print(error)
"""


def test_a_hole_in_a_shard_takes_no_memory(insert, tmp_path):
    folder, name = copy(insert, tmp_path), "pairs/validation-00000-of-00001.parquet"
    content = (folder / name).read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    with (folder / name).open("r+b") as file:  # the footer says where the rows are: they may lie before a hole
        file.truncate((30 << 30) - footer)
        file.seek(0, 2)
        file.write(content[-footer:])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] |= {"bytes": 30 << 30}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = subprocess.run([sys.executable, "-c", HOLLOW, folder, tmp_path], capture_output=True, text=True)
    said = f"{folder}/{name}: {30 << 30:,} bytes, too many to hold at once\n"
    assert done.returncode == 0 and done.stdout == 2 * said, done.stderr


def no_text(column):
    """Texts of which the first is not UTF-8."""
    first, *rest = (text.encode() for text in column.to_pylist())
    cells = reference.pa.array([b"\xff\xfe" + first, *rest], reference.pa.binary())
    return reference.pa.StringArray.from_buffers(len(cells), *cells.buffers()[1:])


@pytest.mark.parametrize(
    ("name", "column", "changes"),
    [
        ("augmented/train", "state", {}),
        ("augmented/train", "state", {"stream": True}),
        ("pairs/validation", "source", {}),
        ("pairs/train", "target", {"model": "end2end"}),
    ],
)
def test_texts_that_are_none_are_named(insert, tmp_path, name, column, changes):
    folder, file = copy(insert, tmp_path), f"{name}-00000-of-00001.parquet"
    table = reference.pq.read_table(folder / file)
    place = table.schema.get_field_index(column)
    reference.pq.write_table(table.set_column(place, table.schema.field(place), no_text(table[column])), folder / file)
    in_step(folder, file)
    config = preset("cpu", width=8, layers=1, updates=1, **changes)
    with pytest.raises(BadData, match=rf"{file}: .*UTF8"):
        train_run(folder, config, tmp_path / "run", device="cpu", reporter=Reporter(quiet=True))


@pytest.mark.parametrize("tags", [False, True])
def test_an_empty_cell_is_named(tmp_path, tags):
    folder = reference.small_dataset(tmp_path / "data", "edit", tags=True)
    name = f"{'tags' if tags else 'augmented'}/train-00000-of-00001.parquet"
    rows = reference.pq.read_table(folder / name).to_pylist()
    for column in rows[0]:
        with pytest.raises(BadData, match="null value in a row"):
            load(replaced(folder, name, [rows[0] | {column: None}, *rows[1:]]), name.partition("/")[0])


GAMES = {
    "no end": lambda rows: rows[:-1],
    "an end too early": lambda rows: [rows[0] | {"action": rows[-1]["action"]}, *rows[1:]],
    "a word for a place": lambda rows: [rows[0] | {"action": ["INSERT", "+", "+"]}, *rows[1:]],
    "a place beyond the text": lambda rows: [rows[0] | {"action": ["REPLACE", "POS_7", "+"]}, *rows[1:]],
    "another state": lambda rows: [rows[0], rows[1] | {"state": rows[0]["state"]}, *rows[2:]],
}


@pytest.mark.parametrize("case", GAMES)
def test_demonstrations_that_are_no_games_are_not_followed(tmp_path, case):
    folder, name = reference.small_dataset(tmp_path / "data", "edit"), "augmented/train-00000-of-00001.parquet"
    rows = reference.pq.read_table(folder / name).to_pylist()
    train_run(folder, preset("fast", updates=1), tmp_path / "sound", device="cpu", reporter=Reporter(quiet=True))
    long = next(at for at in range(len(rows)) if rows[at]["step"] == 0 and rows[at + 1]["step"] == 1)
    replaced(folder, name, GAMES[case](rows[long:]))
    with pytest.raises(BadData, match="data/augmented: the actions of a trajectory do not lead"):
        train_run(folder, preset("fast", updates=1), tmp_path / "run", device="cpu", reporter=Reporter(quiet=True))
