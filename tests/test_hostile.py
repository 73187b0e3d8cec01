"""What strangers send: refused in one line of ours, before memory is taken, and never outside the folder."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from aegen import pipeline
from aegen.engine import Local
from aegen.environment import Environment as Words
from aegen.folder import Folder
from aegen.shards import SCHEMAS
from aegen.spec import Spec
from tests.test_contract import both
from trainer.config import preset
from trainer.environment import Environment, Verdict
from trainer.progress import Reporter
from trainer.training import fit

ROOT = Path(__file__).parent.parent
TASKS = ("aor", "aes", "aec")
SPEC = ("aec", "--n", "10", "--l", "4", "--d", "20")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A dataset and a run on it."""
    place = tmp_path_factory.mktemp("hostile")
    pipeline.build(Spec("aec", 10, 4, 60, rows_per_shard=30), Folder(place / "data"), Local())
    config = preset("cpu", width=8, layers=1, updates=2)
    fit(place / "data", config, place / "run", device="cpu", reporter=Reporter(quiet=True))
    return place


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.faults)])
def test_only_our_errors_come_out_of_readers(place, count):
    command = [sys.executable, "-m", "tests.fuzz", place, "7", str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == count and outcomes["refused"] > count / 2


@pytest.mark.parametrize("count", [300, pytest.param(5_000, marks=pytest.mark.faults)])
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


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_metadata_is_refused_before_memory_is_taken(place, case, tmp_path):
    folder = tmp_path / "data"
    pipeline.build(Spec("aec", 10, 4, 60), Folder(folder), Local())
    path = folder / "augmented" / "train-00000-of-00001.parquet"
    table = pq.read_table(path)
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"]) | HOSTILE[case]
    text = json.dumps(about)
    if "BILLION" in text:  # as much of it as fits a file that one would still download
        text = text.replace('"BILLION"', "[" + ",".join(['"a"'] * 20_000_000) + "]")
    pq.write_table(table.replace_schema_metadata({"aegen": text}), path)
    manifest = json.loads((folder / "manifest.json").read_text())
    from aegen.shards import file_info

    info = file_info(path, len(table))
    manifest["files"]["augmented/train-00000-of-00001.parquet"] |= {"bytes": info.bytes, "sha256": info.sha256}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    commands = [["aegen", "verify", folder], ["trainer", "fit", folder, "--out", tmp_path / "run"]]
    for command in commands[: 1 if case == "code" else 2]:  # to the trainer these names are labels: it loads neither
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, preexec_fn=limited
        )
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr[-2000:]
        assert path.name in done.stderr or "augmented" in done.stderr


def test_deep_json_and_huge_manifests_are_refused(place, tmp_path, run):
    folder = tmp_path / "d"
    folder.mkdir()
    for raw in (b'{"a":' * 200_000, b"[" * 10**6, b"\xff\xfe", b"1", b"null", b'{"format": 1e999}', b'{"format": NaN}'):
        (folder / "manifest.json").write_bytes(raw)
        assert "manifest.json" in run("verify", folder, check=2).stderr
    with (folder / "manifest.json").open("wb") as file:
        file.truncate(300 << 20)  # a hole: nothing on the disk, and nothing in memory
    assert "expected at most" in run("verify", folder, check=2, preexec_fn=limited).stderr


MANIFESTS = {
    "no pairs": (lambda manifest: manifest["spec"].pop("pairs"), "how the pairs were made"),
    "half a character": (lambda manifest: manifest["spec"]["pairs"].update(task="\ud800"), "not valid JSON"),
    "depth": (lambda manifest: manifest["spec"]["pairs"].update(seed=json.loads("[" * 99 + "]" * 99)), "nested"),
}
SAID = {
    "a spec that is none": ({"spec": ["pairs"]}, ("build", *SPEC, "--out", "d"), "pairs is None there"),
    "no split": ({"split": None}, ("trajectories", "d", "--design", "tags"), "metadata field split"),
    "no task": ({"task": []}, ("trajectories", "d"), "metadata field task"),
    "no tokens": ({"tokens": 1}, ("show", "d", "--config", "pairs"), "metadata field tokens"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_nobody_could_use_is_refused_by_all(case, tmp_path, run):
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    path = tmp_path / "d" / "manifest.json"
    manifest = json.loads(path.read_text())
    change, message = MANIFESTS[case]
    change(manifest)
    path.write_text(json.dumps(manifest))
    for command in (("trajectories", "d", "--design", "tags"), ("card", "d"), ("pull", "d", "--out", "e")):
        assert message in run(*command, check=2).stderr
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("case", SAID)
def test_a_shard_that_says_nothing_useful_of_itself_is_named(case, tmp_path, run):
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    path = tmp_path / "d" / "pairs" / "train-00000-of-00001.parquet"
    change, command, message = SAID[case]
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"]) | change
    pq.write_table(pq.read_table(path).replace_schema_metadata({"aegen": json.dumps(about)}), path)
    errors = run(*command, check=2).stderr
    assert path.name in errors and message in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize("capped", ["many", [], None, 1.5, True])
def test_a_count_of_capped_pairs_is_a_number(capped, tmp_path, run):
    pipeline.build(Spec("aec", 10, 4, 20), Folder(tmp_path / "d"), Local())
    (tmp_path / "d" / "manifest.json").unlink()
    path = tmp_path / "d" / "augmented" / "train-00000-of-00001.parquet"
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"]) | {"capped_pairs": capped}
    pq.write_table(pq.read_table(path).replace_schema_metadata({"aegen": json.dumps(about)}), path)
    errors = run("build", *SPEC, "--out", "d", check=2).stderr
    assert path.name in errors and "capped_pairs" in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "pairs/../../x.parquet", "pairs/train-..", "pairs\\train-0", ""]
)
def test_names_in_a_manifest_cannot_leave_the_folder(place, name, tmp_path, run):
    folder = tmp_path / "d"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = next(iter(manifest["files"].values()))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for command in (("verify", folder), ("pull", folder, "--out", "back"), ("publish", folder, "--to", "there")):
        assert "not the name of a shard" in run(*command, check=2).stderr
    assert not (tmp_path / "back").exists() and not (tmp_path / "there").exists()


def test_a_link_in_place_of_a_config_leads_nobody_out_of_the_dataset(tmp_path, run):
    folder, outside = tmp_path / "d", tmp_path / "outside"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    outside.mkdir()
    (folder / "expert").symlink_to(outside)
    run("build", *SPEC, "--out", "whole")
    commands = (("trajectories", "d"), ("build", *SPEC, "--out", "d"), ("publish", "whole", "--to", "d"), ("card", "d"))
    for command in commands:
        (error,) = run(*command, check=2).stderr.splitlines()
        assert error.endswith("d/expert: a link; expected a folder")
    (folder / "manifest.json").unlink()
    assert "d/expert: a link" in run("pull", "whole", "--out", "d", check=2).stderr
    assert not list(outside.iterdir())


def test_a_footer_that_claims_everything_is_not_believed(tmp_path, run):
    folder = tmp_path / "d"
    pipeline.generate(Spec("aec", 10, 4, 20), Folder(folder), Local())
    path = folder / "pairs" / "train-00000-of-00001.parquet"
    raw = path.read_bytes()
    path.write_bytes(raw[:-8] + (2**32 - 1).to_bytes(4, "little") + b"PAR1")
    assert "train-00000" in run("verify", folder, check=2, preexec_fn=limited).stderr
    pq.write_table(pa.table({"id": [1]}), path)
    assert "train-00000" in run("verify", folder, check=2).stderr
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
