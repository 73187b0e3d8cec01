"""The paper's benchmarks: their cards in cards/ are what `aegen card` renders today, and they go to a hub and back.

To render them again: python -m tests.aegen.card.test_rendered_cards
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aegen.card.collection import collection
from aegen.card.companions import CARD
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.aegen.publishing.test_publish import files
from tests.hub import Hub

CARDS = Path(__file__).parents[3] / "cards"
BENCHMARKS = {"aor": Spec("aor", 10, 5, 10_000), "aes": Spec("aes", 100, 5, 10_000), "aec": Spec("aec", 10, 5, 10_000)}


def build(place: Path) -> dict[str, bytes]:
    """The benchmarks below ``place``, and every page of cards/ that is rendered, by name."""
    folders = {task: Folder(place / task) for task in BENCHMARKS}
    for task, spec in BENCHMARKS.items():
        pipeline.build(spec, folders[task], Local())
    pages = {f"{task}/{path.name}": path.read_bytes() for task in BENCHMARKS for path in folders[task].path.glob("*.*")}
    pages = {name: page for name, page in pages.items() if name.endswith((CARD, ".png"))}
    return pages | {"collection.md": collection(list(folders.values()), f"{{name}}/{CARD}").encode()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("benchmarks")
    return place, build(place)


def test_the_rendered_cards_are_current(built):
    _, pages = built
    again = "python -m tests.aegen.card.test_rendered_cards"
    there = {str(path.relative_to(CARDS)) for task in BENCHMARKS for path in (CARDS / task).iterdir()}
    assert there | {"collection.md"} == set(pages), again
    for name, page in pages.items():
        assert (CARDS / name).read_bytes() == page, f"cards/{name} is not current: {again}"


LOAD = """
import datasets, json, sys
import pyarrow as pa, pyarrow.parquet as pq
datasets.config.USE_PARQUET_EXPORT = False
int64, int32, int16, string = map(datasets.Value, ("int64", "int32", "int16", "string"))
pairs = {"id": int64, "source": string, "target": string}
steps = {"pair": int64, "origin": int32, "step": int16, "state": string, "action": datasets.List(string)}
loaded = {}
for name in sys.argv[1:]:
    task = name.rpartition("/")[2]
    for config in datasets.get_dataset_config_names(name):
        features = datasets.Features(pairs if config == "pairs" else steps)
        for split, rows in datasets.load_dataset(name, config).items():
            (path,) = map(str, __import__("pathlib").Path(task, config).glob(f"{split}-*.parquet"))
            made = pq.read_table(path).replace_schema_metadata(None)
            assert rows.features == features and rows.data.table.replace_schema_metadata(None).cast(made.schema) == made
            streamed = datasets.load_dataset(name, config, split=split, streaming=True)
            assert streamed.features == features
            assert pa.concat_tables(streamed.with_format("arrow")).cast(made.schema) == made
            loaded[f"{task}/{config}/{split}"] = len(rows)
    assert datasets.get_dataset_default_config_name(name) == "expert"
print(json.dumps(loaded))
"""


@pytest.mark.faults
@pytest.mark.parametrize("d", [300, 10_000])
def test_the_benchmarks_go_to_a_hub_and_back(d, run, tmp_path):
    """Published (and so verified), loaded in all configs and splits, streaming and not, and pulled byte for byte."""
    place = tmp_path / "made"
    for task, spec in BENCHMARKS.items():
        pipeline.build(replace(spec, d=d), Folder(place / task), Local())
    with Hub() as hub:
        environment = os.environ | hub.settings(tmp_path / "home")
        done = run("publish", *(place / task for task in BENCHMARKS), "--to", "hf://org", env=environment)
        assert done.stdout.count("published") == len(BENCHMARKS)
        names = [f"org/{task}" for task in BENCHMARKS]
        done = subprocess.run(
            [sys.executable, "-c", LOAD, *names], cwd=place, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert loaded == {
            f"{task}/{name.partition('-')[0]}": info.rows
            for task in BENCHMARKS
            for name, info in Folder(place / task).manifest().files.items()
        }
        for task in BENCHMARKS:
            splits = [loaded[f"{task}/pairs/{split}"] for split in ("train", "validation", "test")]
            assert sum(splits) == d and abs(splits[0] - 0.7 * d) < 0.02 * d
            run("pull", f"hf://org/{task}", "--out", tmp_path / task, env=environment)
            assert files(tmp_path / task) == files(place / task)


def test_the_command_makes_the_same_page(built, invoke, tmp_path):
    place, pages = built
    invoke("collection", *(place / task for task in BENCHMARKS), "--link", f"{{name}}/{CARD}", "--out", "page.md")
    assert (tmp_path / "page.md").read_bytes() == pages["collection.md"]
    assert "(https://huggingface.co/datasets/org/aor)" in collection([Folder(place / "aor")], "hf://org/{name}")
    assert "expected {name}" in invoke("collection", place / "aor", "--link", "x", "--out", "p", check=2).stderr


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, page in build(Path(folder)).items():
            (CARDS / name).parent.mkdir(exist_ok=True)
            (CARDS / name).write_bytes(page)
