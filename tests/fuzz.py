"""Mutated real files for every reader: ``python -m tests.fuzz FOLDER SEED COUNT`` ends with 0 if only our errors came.

``python -m tests.fuzz FOLDER SEED COUNT commands`` gives mutated datasets to the commands instead. Both run
as a process of its own with little memory, so that a crash or a greedy reader is a failure and no accident.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import sys
import warnings
from collections import Counter
from pathlib import Path

MEMORY = 6 << 30  # addresses, of which torch alone reserves some


def mutate(raw: bytes, rng: random.Random) -> bytes:
    """Some damage: flips, cuts, repeats, zeros, noise."""
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at, size = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 4, 8, 64])
        kind = rng.randrange(7)
        if kind <= 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at : at + size] = rng.randbytes(size)
        elif kind == 3:
            data[at : at + size] = b"\xff" * size
        elif kind == 4:
            del data[at : at + size]
        elif kind == 5:
            data[at:at] = data[max(0, at - size) : at]
        elif rng.random() < 0.2:
            del data[at:]
    # Most of a Parquet file is compressed rows; what describes it is at the end and interesting.
    if rng.random() < 0.5 and len(data) > 64:
        data[rng.randrange(len(data) * 3 // 4, len(data))] = rng.randrange(256)
    return bytes(data)


STRANGE = (
    *(None, True, False, 0, -1, 1.5, 10**10, 10**30, float("inf"), "", "x", "POS_3", "..", "\ud800", "a b"),
    *([], {}, [[]], [1, "a"], {"a": {}}, ["x"] * 100_000, "y" * 100_000),
    *("http://127.0.0.1:9/x", "reference::/x", "file:///x", "/"),
    *(json.loads("[" * depth + "]" * depth) for depth in (40, 300, 600, 900)),
)


def mutate_json(value: object, rng: random.Random) -> object:
    """One value somewhere inside becomes something strange, or goes, or is there twice."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        choice = rng.random()
        if choice < 0.1:
            return {name: entry for name, entry in value.items() if name != key}
        if choice < 0.2:
            return {**value, rng.choice(["../" + key, "/etc/passwd", key + "\0", "x" * 3000]): value[key]}
        return {**value, key: mutate_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], mutate_json(value[at], rng), *value[at + 1 :]]
    return rng.choice(STRANGE)


def mutated_text(raw: bytes, rng: random.Random) -> bytes:
    """A JSON file with another structure, or with damage."""
    if rng.random() < 0.3:
        return mutate(raw, rng)
    return json.dumps(mutate_json(json.loads(raw), rng)).encode("utf-8", "surrogatepass")


def mutated_shard(path: Path, rng: random.Random) -> bytes:
    """A shard with damage, or a sound one that says something strange of itself."""
    if rng.random() < 0.5:
        return mutate(path.read_bytes(), rng)
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    about = json.dumps(mutate_json(json.loads(pq.read_metadata(path).metadata[b"aegen"]), rng))
    sink = pa.BufferOutputStream()
    table = table.slice(0, rng.randrange(len(table) + 1)) if rng.random() < 0.2 else table
    pq.write_table(table.replace_schema_metadata({"aegen": about.encode("utf-8", "surrogatepass")}), sink)
    return sink.getvalue().to_pybytes()


def mutated_checkpoint(raw: bytes, rng: random.Random) -> bytes:
    """A checkpoint with damage, or with another header."""
    if rng.random() < 0.5:
        return mutate(raw, rng)
    size = int.from_bytes(raw[:8], "little")
    header = json.dumps(mutate_json(json.loads(raw[8 : 8 + size]), rng)).encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + raw[8 + size :]


def read_everything(data: Path, run: Path, what: str) -> None:
    """Every reader that meets files of strangers, both packages; only the first error is seen."""
    from aegen.contract import read_contract
    from aegen.engine import Local
    from aegen.folder import Folder
    from aegen.verify import verify
    from trainer.agent import Agent
    from trainer.data import Dataset
    from trainer.run import Description
    from trainer.steps import load_pairs, load_steps

    if what == "aegen":
        folder = Folder(data)
        read_contract(folder, folder.manifest(), "augmented")
        verify(folder, Local())
    elif what == "trainer":
        dataset = Dataset(data)
        footers = dataset.footers("augmented", "train")
        contract = dataset.contract(footers)
        load_steps(dataset, footers, contract)
        load_pairs(dataset, "validation", contract)
    else:
        from trainer.checkpoint import load_checkpoint
        from trainer.fit import Position

        Description.read(run / "config.json")
        Position.parse(load_checkpoint(run / "last.safetensors")[1], "last")
        Agent.from_pretrained(run, "cpu").evaluate(split="validation", limit=2)


def run_readers(place: str, seed: str, count: str) -> None:
    """Mutate, read, undo; again."""
    import torch

    from aegen.errors import AegenError
    from trainer.errors import TrainerError

    torch.set_num_threads(1)
    data, run = Path(place) / "data", Path(place) / "run"
    shards = sorted(data.glob("*/train-*.parquet"))
    outcomes: Counter[str] = Counter()
    for number in range(int(count)):
        rng = random.Random(f"{seed}/{number}")
        what = rng.choice(["aegen", "trainer", "run"])
        if what == "run":
            path = run / rng.choice(["config.json", "last.safetensors", "best.safetensors"])
        else:
            path = data / "manifest.json" if rng.random() < 0.4 else rng.choice(shards)
        before, manifest = path.read_bytes(), (data / "manifest.json").read_bytes()
        if path.suffix == ".parquet":
            after = mutated_shard(path, rng)
            listed = json.loads(manifest)  # a hostile author keeps the manifest in step
            entry = listed["files"][str(path.relative_to(data))]
            entry |= {"sha256": hashlib.sha256(after).hexdigest(), "bytes": len(after)}
            (data / "manifest.json").write_text(json.dumps(listed))
        else:
            after = mutated_text(before, rng) if path.suffix == ".json" else mutated_checkpoint(before, rng)
        path.write_bytes(after)
        try:
            read_everything(data, run, what)
            outcomes["accepted"] += 1
        except (AegenError, TrainerError) as error:
            outcomes["refused"] += 1
            message = str(error)
            if "\n" in message or len(message) > 2000:
                sys.exit(
                    f"seed {seed}/{number}: {path.name}: a message of {len(message)} characters: {message[:300]!r}"
                )
        except BaseException:
            print(f"seed {seed}/{number}: {what} reads {path.name}", file=sys.stderr)
            shutil.copyfile(path, Path(place) / "found")
            raise
        finally:
            path.write_bytes(before)
            (data / "manifest.json").write_bytes(manifest)
    print(json.dumps(outcomes))


# "bad" is the mutated dataset, "good" the one that it was; the others do not exist yet.
COMMANDS = (
    *("verify bad", "stats bad", "stats bad --json", "show bad --rows 2", "show bad --config pairs", "show bad --json"),
    *("card bad", "collection bad --out page.md", "trajectories bad", "trajectories bad --design tags", "augment bad"),
    *("generate aec SPEC --out bad", "build aec SPEC --out bad", "pull bad --out new", "pull good --out bad"),
    *("publish bad --to new", "publish good --to bad", "publish good --to bad --force"),
)
SPEC = "--n 10 --l 4 --d 30 --rows-per-shard 15"


def run_commands(place: str, seed: str, count: str) -> None:
    """Mutate a copy of a dataset, give it to a command; again."""
    from click.testing import CliRunner

    from aegen.cli import main as aegen

    os.chdir(place)
    runner = CliRunner()
    for command in (f"generate aec {SPEC} --out good", "trajectories good"):
        assert runner.invoke(aegen, command.split()).exit_code == 0
    outcomes: Counter[str] = Counter()
    for number in range(int(count)):
        rng = random.Random(f"{seed}/{number}")
        for folder in ("bad", "new"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree("good", "bad")
        changed = mutate_dataset(Path("bad"), rng)
        command = rng.choice(COMMANDS)
        done = runner.invoke(aegen, command.replace("SPEC", SPEC).split())
        where = f"seed {seed}/{number}: aegen {command} with another {changed}"
        if done.exception and not isinstance(done.exception, SystemExit):
            print(where, file=sys.stderr)
            raise done.exception
        lines = done.stderr.splitlines()
        if done.exit_code not in (0, 1, 2) or (
            done.exit_code and not (len(lines) == 1 and lines[0].startswith("Error: "))
        ):
            sys.exit(f"{where}: {done.exit_code}: {done.stderr[:300]!r}")
        if left := [*Path().rglob(".*.part")]:
            sys.exit(f"{where}: left {left}")
        outcomes["refused" if done.exit_code else "accepted"] += 1
    print(json.dumps(outcomes))


def mutate_dataset(folder: Path, rng: random.Random) -> str:
    """Change the manifest, or a shard: then the manifest says so, or is missing. What was changed."""
    manifest = folder / "manifest.json"
    if rng.random() < 0.5:
        manifest.write_bytes(mutated_text(manifest.read_bytes(), rng))
        return manifest.name
    shard = rng.choice(sorted(folder.glob("*/*.parquet")))
    raw = mutated_shard(shard, rng)
    shard.write_bytes(raw)
    if rng.random() < 0.3:
        manifest.unlink()
    else:
        listed = json.loads(manifest.read_text())
        entry = listed["files"][str(shard.relative_to(folder))]
        entry |= {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
        manifest.write_text(json.dumps(listed))
    return shard.name


def main(place: str, seed: str, count: str, what: str = "readers") -> None:
    """With little memory, one kind of them."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    {"readers": run_readers, "commands": run_commands}[what](place, seed, count)


if __name__ == "__main__":
    main(*sys.argv[1:])
