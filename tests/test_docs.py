"""The pages say what is true: their commands run, and print what is shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from aegen.actions import Refusal
from tests.hub import Hub

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder in which the README is followed from top to bottom, with a hub of its own."""
    place = tmp_path_factory.mktemp("readme")
    with Hub() as hub, pytest.MonkeyPatch.context() as patch:
        for name, setting in hub.settings(place / "hf").items():
            patch.setenv(name, setting)
        yield place


def shell(command: str, place: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=place, capture_output=True, text=True, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_print_what_the_readme_shows(block, place):
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, shown = part.split("\n", 1)
        assert shell(command, place) == shown


@pytest.mark.parametrize("block", [block for block in blocks("sh") if "make" not in block])
def test_commands_run(block, place):
    for command in block.splitlines():
        shell(command, place)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_runs(block, place):
    if "datasets" in block:  # which would ask a server of its own for an export
        block = f"import datasets\ndatasets.config.USE_PARQUET_EXPORT = False\n{block}"
    done = subprocess.run([sys.executable, "-c", block], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
