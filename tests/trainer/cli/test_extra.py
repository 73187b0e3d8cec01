"""The extra ``train`` is enough: a virtual environment that holds nothing else, and no package aegen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.hub import Hub
from tests.trainer.conftest import ROOT
from tests.trainer.publishing.test_publish import FIT, TEXT

COMMANDS = """
import json, sys
from trainer.cli.commands import main
for arguments in json.loads(sys.argv[1]):
    main(arguments, standalone_mode=False)
"""
ABSENT = ["aegen", "datasets", "pandas", "dask", "matplotlib", "gymnasium", "s3fs", "pytest"]


def closure(name: str, extra: str) -> dict[str, Distribution]:
    """What ``pip install "name[extra]"`` brings in beside the package itself, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extra)]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        found[one[0]] = distribution(one[0])
        for line in found[one[0]].requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": one[1]}):
                waiting += [(canonicalize_name(needed.name), more) for more in ("", *needed.extras)]
    del found[name]
    return found


def entries(package: Distribution) -> set[str]:
    """The files and folders that a distribution has at the top of site-packages."""
    return {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of the environment; its packages are links to the installed ones."""
    place = tmp_path_factory.mktemp("train-only")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (site,) = place.glob("lib/python*/site-packages")
    owners = defaultdict(set)
    for package in distributions():
        for entry in entries(package):
            owners[entry].add(canonicalize_name(package.metadata["Name"]))
    wanted = closure("aegen", "train")
    for name, package in wanted.items():
        for entry in entries(package):
            assert owners[entry] <= set(wanted), f"{name} shares {entry} with {owners[entry]}"
            if not (site / entry).exists():
                (site / entry).symlink_to(Path(str(package.locate_file(entry))))
    (site / "trainer").symlink_to(ROOT / "trainer")
    return place / "bin" / "python"


@pytest.fixture
def call(python, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["OMP_NUM_THREADS"] = "1"

    def call(*commands, **extra):
        command = [python, "-c", COMMANDS, json.dumps([[*map(str, one)] for one in commands])]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment | extra)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_nothing_else_is_there(python, tmp_path):
    code = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    done = subprocess.run([python, "-I", "-c", code, *ABSENT, "torch"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "['torch']\n", done.stderr


def test_from_a_folder(call, insert):
    shown = call(
        ["fit", insert, *FIT, "--out", "run"],
        ["evaluate", "run"],
        ["edit", "run", TEXT],
        ["models", "--data", insert],
    )
    assert "3 updates" in shown and "token accuracy" in shown and f"     {TEXT}\n" in shown and "nar-star" in shown


def test_from_the_hub(call, insert, tmp_path):
    with Hub() as hub:
        hub.add_folder("datasets", "org/insert", insert)
        shown = call(
            ["fit", "hf://org/insert", *FIT, "--out", "run"],
            ["publish", "run", "--to", "hf://org/agent"],
            ["evaluate", "hf://org/agent"],  # the dataset is the one that the agent names
            ["edit", "hf://org/agent", TEXT],
            **hub.settings(tmp_path / "home"),
        )
    assert "3 updates" in shown and "token accuracy" in shown and f"     {TEXT}\n" in shown
