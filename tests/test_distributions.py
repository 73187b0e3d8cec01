"""The two wheels, each installed alone into an environment of its own, and used from another folder.

Downloading PyTorch for a clean environment would take minutes. Instead, each environment sees exactly the packages that
the wheel's metadata declares, and what those declare in turn, linked from the environment that runs the tests: a
dependency that is not declared cannot be imported there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import aegen
import trainer

ROOT = Path(__file__).parent.parent
PROJECTS = {"aegen": ROOT, "trainer": ROOT / "trainer"}
SCRATCH = (".?*", "build", "dist", "demo", "runs", "site", "__pycache__", "*.egg-info")
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels and the source distribution, built from a copy, so that nothing is left in the checkout."""
    place = tmp_path_factory.mktemp("wheels")
    source = shutil.copytree(ROOT, place / "source", ignore=shutil.ignore_patterns(*SCRATCH))
    shutil.copytree(ROOT / ".ci", source / ".ci")
    shutil.copyfile(ROOT / ".gitignore", source / ".gitignore")
    built = {}
    for name, project in PROJECTS.items():
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", place / name]
        kinds = ["--wheel", "--sdist"] if name == "aegen" else ["--wheel"]
        done = subprocess.run(
            [*command, *kinds, source / project.relative_to(ROOT)], env=CLEAN, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (built[name],) = (place / name).glob("*.whl")
    (built["sdist"],) = (place / "aegen").glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """The folder of commands of an environment that has one wheel and its declared dependencies, and nothing else."""
    return {name: environment(wheels[name], tmp_path_factory.mktemp(name)) for name in PROJECTS}


def environment(wheel: Path, place: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    python = place / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel]
    done = subprocess.run([*map(str, install)], capture_output=True, text=True, cwd=place, env=CLEAN)
    assert done.returncode == 0, done.stderr
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    linked = place / "declared"
    linked.mkdir()
    for name in declared(wheel):
        for file in metadata.distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (linked / top).is_symlink():
                (linked / top).symlink_to(Path(metadata.distribution(name).locate_file(top)))
    (packages / "declared.pth").write_text(f"{linked}\n")
    return python.parent


def declared(wheel: Path) -> set[str]:
    """What a wheel requires without any extra, and what that requires, as far as it is for this machine."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
    waiting = {
        (Requirement(line[len("Requires-Dist: ") :]), "") for line in lines if line.startswith("Requires-Dist: ")
    }
    seen: set[tuple[str, str]] = set()
    while waiting:
        required, extra = waiting.pop()
        if required.marker and not required.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *required.extras):
            if (key := (canonicalize_name(required.name), wanted)) not in seen:
                seen.add(key)
                waiting |= {(Requirement(line), wanted) for line in metadata.requires(required.name) or ()}
    return {name for name, _ in seen}


def importable(commands: Path, place: Path, *names: str) -> list[str]:
    """Those of the modules that an environment has."""
    code = f"import importlib.util; print([n for n in {names} if importlib.util.find_spec(n)])"
    return re.findall(r"'(\w+)'", run(commands, place, "python", "-c", code))


def run(commands: Path, place: Path, *command: object) -> str:
    name, *arguments = map(str, command)
    done = subprocess.run([commands / name, *arguments], cwd=place, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_aegen_alone_builds_and_verifies(installed, tmp_path):
    have = importable(installed["aegen"], tmp_path, "aegen", "trainer", "torch", "datasets", "msgspec", "tests")
    assert have == ["aegen", "msgspec"]
    run(installed["aegen"], tmp_path, "aegen", "build", "aes", "--n", 10, "--l", 4, "--d", 40, "--out", "aes")
    assert "verified: 7 files" in run(installed["aegen"], tmp_path, "aegen", "verify", "aes")
    assert (tmp_path / "aes" / "README.md").exists()
    assert run(installed["aegen"], tmp_path, "aegen", "--version") == f"aegen, version {aegen.__version__}\n"


def test_trainer_alone_trains_evaluates_and_edits(installed, tmp_path):
    others = "aegen", "Levenshtein", "rapidfuzz", "datasets", "matplotlib", "tests"
    assert importable(installed["trainer"], tmp_path, "trainer", "torch", *others) == ["trainer", "torch"]
    run(installed["aegen"], tmp_path, "aegen", "build", "aor", "--n", 10, "--l", 4, "--d", 40, "--out", "aor")
    fit = ("fit", "aor", "--model", "nar-star", "--preset", "cpu", "--width", 8, "--updates", 3, "--out", "run")
    assert json.loads(run(installed["trainer"], tmp_path, "trainer", *fit, "--json"))["updates"] == 3
    assert json.loads(run(installed["trainer"], tmp_path, "trainer", "evaluate", "run", "--json"))["pairs"]
    assert "3 6 2 9" in run(installed["trainer"], tmp_path, "trainer", "edit", "run", "3 6 2 9")
    assert run(installed["trainer"], tmp_path, "trainer", "--version") == f"trainer, version {trainer.__version__}\n"


def kept(folder: str) -> set[str]:
    """The files below a folder of the checkout that are not made by tools."""
    found = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path) for path in found if not any(path.match(f"**/{name}/*") for name in SCRATCH)}


@pytest.mark.parametrize("package", PROJECTS)
def test_a_wheel_holds_its_whole_package_and_nothing_else(package, wheels):
    with zipfile.ZipFile(wheels[package]) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
        notes = {name.partition(".dist-info/")[2] for name in archive.namelist()} - {""}
    assert files == kept(package) - {f"trainer/{name}" for name in ("pyproject.toml", "README.md", "LICENSE")}
    assert "licenses/LICENSE" in notes


def test_versions_and_licences_are_the_same():
    projects = {name: tomllib.loads((path / "pyproject.toml").read_text()) for name, path in PROJECTS.items()}
    for name, project in projects.items():
        assert "version" in project["project"]["dynamic"]
        assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": f"{name}.__version__"}
    assert aegen.__version__ == trainer.__version__
    assert metadata.version("aegen") == metadata.version("aegen-trainer") == aegen.__version__
    assert (ROOT / "trainer" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_a_package_that_both_require_is_required_in_the_same_range():
    ranges = {}
    for path in PROJECTS.values():
        project = tomllib.loads((path / "pyproject.toml").read_text())["project"]
        lines = [
            *project["dependencies"],
            *(line for extra in project["optional-dependencies"].values() for line in extra),
        ]
        others = [line for line in lines if Requirement(line).name != project["name"]]  # the extra "all" names its own
        assert not {"aegen", "aegen-trainer"} & {Requirement(line).name for line in others}
        for line in others:
            assert ranges.setdefault(Requirement(line).name, line) == line


@pytest.mark.faults
def test_a_source_distribution_can_run_its_own_tests(wheels, tmp_path):
    with tarfile.open(wheels["sdist"]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    needed = {
        "Makefile",
        "constraints.txt",
        "README.md",
        "SECURITY.md",
        "LICENSE",
        "pyproject.toml",
        ".ci/run",
        "mkdocs.yml",
    }
    assert not needed.union(*map(kept, ("aegen", "cards", "tests", "trainer"))) - held
    (source,) = tmp_path.iterdir()
    # Collecting imports every test module, and so every helper that it needs.
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=source, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
