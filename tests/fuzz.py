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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

MEMORY = 6 << 30  # addresses, of which torch alone reserves some
READERS = (*("aegen", "trainer", "run") * 2, *("evaluate", "publish", "resume") * 2, "fit")  # training takes longest


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


def mutated_shard(path: Path, rng: random.Random) -> tuple[bytes, int | None]:
    """A shard with damage, or a sound one that says something strange of itself or in its rows; how many it has."""
    choice = rng.random()
    if choice < 0.4:
        return mutate(path.read_bytes(), rng), None
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    about = json.loads(pq.read_metadata(path).metadata[b"aegen"])
    if choice < 0.7:
        about = mutate_json(about, rng)
    else:
        table = mutated_rows(table, rng)
    sink = pa.BufferOutputStream()
    table = table.slice(0, rng.randrange(len(table) + 1)) if rng.random() < 0.2 else table
    text = json.dumps(about).encode("utf-8", "surrogatepass")
    pq.write_table(table.replace_schema_metadata({"aegen": text}), sink)
    return sink.getvalue().to_pybytes(), len(table)


TEXTS = (
    *(None, "", " ", "  ", "x", "1", "DONE", "POS_0", "POS_99999", "INSERT", "é", "1 " * 300, "1 2 = 3", "\0"),
    *(b"\xff\xfe", b"1 \xc3", b"\xed\xa0\x80"),  # no UTF-8, which Arrow writes and reads all the same
)
NUMBERS = (None, 0, 1, -1, 7, 32767)


def mutated_rows(table: pa.Table, rng: random.Random) -> pa.Table:
    """Some cells become something strange, or rows change places."""
    import pyarrow as pa

    rows = table.to_pylist()
    for _ in range(rng.choice([1, 1, 2, 8]) if rows else 0):
        row, other = rng.choice(rows), rng.choice(rows)
        name = rng.choice(sorted(row))
        if rng.random() < 0.3:
            row[name] = other[name]
        elif name == "action":
            said = [*(row[name] or ["x"])]
            said[rng.randrange(len(said))] = rng.choice(TEXTS)
            row[name] = rng.choice([None, [], said, said, said * 2, said[1:]])
        else:
            row[name] = rng.choice(TEXTS if pa.types.is_string(table.schema.field(name).type) else NUMBERS)
    if rng.random() < 0.1:
        rng.shuffle(rows)
    kinds = {"string": pa.binary(), "list<element: string>": pa.list_(pa.binary())}
    loose = pa.schema([(field.name, kinds.get(str(field.type), field.type)) for field in table.schema])
    return pa.Table.from_pylist(rows, schema=loose).cast(table.schema, safe=False)


def mutated_checkpoint(path: Path, rng: random.Random) -> bytes:
    """A checkpoint with damage, with another header, or a sound one of something else: its hash is kept in step."""
    raw, choice = path.read_bytes(), rng.random()
    if choice < 0.2:
        return mutate(raw, rng)
    if choice < 0.4:
        size = int.from_bytes(raw[:8], "little")
        header = json.dumps(mutate_json(json.loads(raw[8 : 8 + size]), rng)).encode("utf-8", "surrogatepass")
        return len(header).to_bytes(8, "little") + header + raw[8 + size :]
    from trainer.training.checkpoint import load_checkpoint, save_checkpoint

    tensors, state = load_checkpoint(path)
    if choice < 0.6:
        strange = mutate_json(state, rng)
        # Half a surrogate pair, which no checkpoint can be written with, becomes a question mark.
        strange = json.loads(json.dumps(strange, ensure_ascii=False).encode("utf-8", "replace"))
        state = strange if isinstance(strange, dict) else {}
    elif choice < 0.75:
        numbers = [name for name in sorted(state) if isinstance(state[name], int | float | None)]
        state[rng.choice(numbers)] = rng.choice([-1, 0, 1, 2, 3, 500, 10**6, 1e300, -1e300, float("nan"), None])
    else:
        name = rng.choice(sorted(tensors))
        changed = mutated_tensor(tensors.pop(name), rng)
        tensors |= {} if changed is None else {rng.choice([name] * 9 + [name + "x"]): changed}
    aside = path.with_name("aside")
    save_checkpoint(aside, tensors, state)
    found = aside.read_bytes()
    aside.unlink()
    return found


def mutated_tensor(tensor: Tensor, rng: random.Random) -> Tensor | None:
    """Of another kind, another shape, with other values, or none."""
    import torch

    kinds = ("int64", "int32", "uint8", "bool", "float16", "bfloat16", "float64", "complex64", "float8_e4m3fn")
    choice = rng.random()
    if choice < 0.15:
        return None
    if choice < 0.5:
        return tensor.to(getattr(torch, rng.choice(kinds)))
    if choice < 0.65:
        return rng.choice([tensor[None], tensor.reshape(-1), tensor.reshape(-1)[:0], tensor.T.contiguous()])
    return torch.full_like(tensor, rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf"), -1e30]))


class Place:
    """A dataset and runs on it: each input changes one file, and all is as it was afterwards."""

    def __init__(self, root: Path) -> None:
        from trainer.agents.evaluation import evaluate_run
        from trainer.core.progress import Reporter
        from trainer.publishing.publish import publish
        from trainer.training.fit import train_run
        from trainer.training.presets import preset

        self.root, self.data, self.run = root, root / "data", root / "run"
        self.work, self.target = root / "work", root / "target"
        self.options = {"device": "cpu", "reporter": Reporter(quiet=True)}
        self.settings = {"memory": {}, "stream": {"stream": True, "stream_rows": 60}}
        self.config = lambda **changes: preset("cpu", width=8, layers=1, **{"updates": 2, **changes})
        self.fit = train_run
        if not (root / "stream").exists():
            evaluate_run(self.run, "cpu")
            publish(self.run, str(self.target))
            for name, changes in self.settings.items():
                train_run(self.data, self.config(**changes), root / name, **self.options)
                cut_short(root / name / "last.safetensors")

    def choose(self, what: str, rng: random.Random) -> tuple[str, Path]:
        """What is read, and the file that is changed."""
        if what in ("run", "publish"):
            names = ["config.json", "best.safetensors"]
            names += ["last.safetensors"] if what == "run" else ["evaluation-test.json"]
            return what, self.run / rng.choice(names)
        if what == "resume":
            name = rng.choice(["memory", "stream"])
            return name, self.root / name / rng.choice(["last.safetensors"] * 8 + ["config.json", "metrics.jsonl"])
        if rng.random() < 0.25:
            return what, self.data / "manifest.json"
        splits = {"aegen": "*", "trainer": "*", "fit": "[tv][ra]*", "evaluate": "[tv][ea]*"}  # train, validation, test
        return what, rng.choice(sorted(self.data.glob(f"*/{splits[what]}-*.parquet")))

    def change(self, path: Path, rng: random.Random) -> None:
        """Write something else; a hostile author keeps the manifest and the hashes in step."""
        if path.suffix == ".parquet":
            after, rows = mutated_shard(path, rng)
            listed = json.loads((self.data / "manifest.json").read_text())
            entry = listed["files"][str(path.relative_to(self.data))]
            entry |= {"sha256": hashlib.sha256(after).hexdigest(), "bytes": len(after)}
            entry |= {} if rows is None or rng.random() < 0.1 else {"rows": rows}
            (self.data / "manifest.json").write_text(json.dumps(listed))
        elif path.suffix == ".safetensors":
            after = mutated_checkpoint(path, rng)
        elif path.suffix == ".jsonl":
            after = mutate(path.read_bytes(), rng)
        else:
            after = mutated_text(path.read_bytes(), rng)
            if path.name == "config.json" and rng.random() < 0.7:
                after = resealed(after)
        path.write_bytes(after)

    def read(self, what: str, rng: random.Random) -> None:
        """Every reader that meets files of strangers, both packages; only the first error is seen."""
        if what in ("aegen", "trainer", "run"):
            read_everything(self.data, self.run, what)
        elif what == "evaluate":
            from trainer.agents.evaluation import evaluate_run

            evaluate_run(self.run, "cpu", str(self.data), rng.choice(["validation", "test"]))
        elif what == "publish":
            from trainer.publishing.publish import publish

            publish(self.run, str(self.work))
        elif what == "fit":
            changes = rng.choice([{}, {"stream": True}, {"train_on": "expert"}, {"model": "end2end"}])
            self.fit(self.data, self.config(updates=1, **changes), self.work, **self.options)
        else:
            self.fit(self.data, self.config(**self.settings[what]), self.work, resume=True, **self.options)


def cut_short(last: Path) -> None:
    """Make of a finished run's checkpoint one after its first update."""
    from trainer.training.checkpoint import load_checkpoint, save_checkpoint

    tensors, state = load_checkpoint(last)
    before = {"epoch": 0, "window": 0, "index": 1, "updates": 1, "best": None, "best_epoch": -1, "finished": ""}
    save_checkpoint(last, tensors, state | before)


def resealed(raw: bytes) -> bytes:
    """A config.json whose hash is right again, where it is one at all."""
    from trainer.core.errors import BadData
    from trainer.training.run import sealed

    try:
        return json.dumps(sealed(json.loads(raw))).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError, AttributeError, BadData):
        return raw


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} if folder.exists() else {}


def read_everything(data: Path, run: Path, what: str) -> None:
    """The readers that write nothing."""
    from aegen.dataset.contract import read_contract
    from aegen.dataset.folder import Folder
    from aegen.dataset.verify import verify
    from aegen.engines.local import Local
    from trainer.agents.agent import Agent
    from trainer.data.dataset import Dataset
    from trainer.data.encode import load_pairs, load_steps
    from trainer.training.run import Description

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
        from trainer.core.records import convert
        from trainer.training.checkpoint import load_checkpoint
        from trainer.training.loop import Position

        Description.read(run / "config.json")
        convert(load_checkpoint(run / "last.safetensors")[1], Position, "last")
        Agent.from_pretrained(run, "cpu").evaluate(split="validation", limit=2)


def run_readers(root: str, seed: str, count: str) -> None:
    """Mutate, read, undo; again."""
    import torch

    from aegen.core.errors import AegenError
    from trainer.core.errors import TrainerError

    torch.set_num_threads(1)
    place = Place(Path(root))
    manifest, target = (place.data / "manifest.json").read_bytes(), content(place.target)
    outcomes: Counter[str] = Counter()
    for number in range(int(count)):
        rng = random.Random(f"{seed}/{number}")
        what, path = place.choose(rng.choice(READERS), rng)
        before, kept = path.read_bytes(), {p: p.read_bytes() for p in place.run.glob("*-*.json") if p != path}
        shutil.rmtree(place.work, ignore_errors=True)
        place.change(path, rng)
        if what == "publish" or what in place.settings:
            shutil.copytree(place.target if what == "publish" else place.root / what, place.work)
        try:
            place.read(what, rng)
            outcomes["accepted"] += 1
        except (AegenError, TrainerError) as error:
            outcomes["refused"] += 1
            message = str(error)
            if "\n" in message or len(message) > 2000:
                sys.exit(
                    f"seed {seed}/{number}: {path.name}: a message of {len(message)} characters: {message[:300]!r}"
                )
            if what == "publish" and content(place.work) != target:
                sys.exit(f"seed {seed}/{number}: {path.name}: {message[:300]}: but something was published")
        except BaseException:
            print(f"seed {seed}/{number}: {what} reads {path.parent.name}/{path.name}", file=sys.stderr)
            shutil.copyfile(path, place.root / "found")
            raise
        finally:
            for one, raw in {path: before, place.data / "manifest.json": manifest, **kept}.items():
                one.write_bytes(raw)
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
    raw, rows = mutated_shard(shard, rng)
    shard.write_bytes(raw)
    if rng.random() < 0.3:
        manifest.unlink()
    else:
        listed = json.loads(manifest.read_text())
        entry = listed["files"][str(shard.relative_to(folder))]
        entry |= {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
        entry |= {} if rows is None else {"rows": rows}
        manifest.write_text(json.dumps(listed))
    return shard.name


def main(place: str, seed: str, count: str, what: str = "readers") -> None:
    """With little memory, one kind of them."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    {"readers": run_readers, "commands": run_commands}[what](place, seed, count)


if __name__ == "__main__":
    main(*sys.argv[1:])
