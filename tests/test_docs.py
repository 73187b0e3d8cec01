"""The pages say what is true: their commands run, and print what is shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from aegen.core.format import Refusal
from tests.hub import Hub

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> Iterator[tuple[str, str, str]]:
    """Where each block of the README begins, its kind and what is in it, from top to bottom."""
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE):
        yield f"README.md:{README.count(chr(10), 0, found.start()) + 1}", found[1], found[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder in which the README is followed from top to bottom, with a hub of its own."""
    place = tmp_path_factory.mktemp("readme")
    with Hub() as hub, pytest.MonkeyPatch.context() as patch:
        for name, setting in hub.settings(place / "hf").items():
            patch.setenv(name, setting)
        yield place


def shell(command: str, place: Path, where: str = "") -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=place, capture_output=True, text=True, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, f"{where} {command}\n{done.stderr}"
    return done.stdout


def test_the_readme_can_be_followed(place):
    """One test, since later blocks need the folders that earlier ones make."""
    ways = {"console": prints_what_is_shown, "sh": runs, "python": python_runs}
    followed = Counter()
    for where, kind, block in blocks():
        if kind in ways and not (kind == "sh" and "make" in block):
            ways[kind](block, place, where)
            followed[kind] += 1
    assert followed.keys() == ways.keys()


def prints_what_is_shown(block: str, place: Path, where: str) -> None:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, shown = part.split("\n", 1)
        assert shell(command, place, where) == shown, f"{where} {command}"


def runs(block: str, place: Path, where: str) -> None:
    for command in block.splitlines():
        shell(command, place, where)


def python_runs(block: str, place: Path, where: str) -> None:
    if "datasets" in block:  # which would ask a server of its own for an export
        block = f"import datasets\ndatasets.config.USE_PARQUET_EXPORT = False\n{block}"
    done = subprocess.run([sys.executable, "-c", block], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, f"{where}\n{done.stderr}"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_make_has_the_targets_that_the_readme_names():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", README)) | {"demo", "test", "lint", "clean"} <= set(targets)


def test_the_format_page_names_every_field(place):
    page = (ROOT / "cards" / "format.md").read_text(encoding="utf-8")
    shell("aegen build aec --n 10 --l 4 --d 40 --out fields", place)
    fields = set()
    for path in (place / "fields").glob("*/train-*.parquet"):
        fields |= set(json.loads(pq.read_metadata(path).metadata[b"aegen"]))
    table = page.split("under the key `aegen`")[1].split("## The environment")[0]
    assert fields == set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", table, flags=re.MULTILINE))))
    assert all(f"`{reason}`" in page for reason in Refusal)
