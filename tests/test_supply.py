"""What is installed is what is locked, fits together, and may be used."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

from tests.licences import COMPATIBLE, EXCEPTIONS, ROOT, licence, locked


def test_the_installed_packages_fit_together():
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_requirement_is_locked_and_theirs_too():
    ours = {"aegen", "aegen-trainer"}
    known = {plain(name) for name in locked()} | ours | {"setuptools", "pip"}  # what comes with Python's venv
    found, waiting = set(), set().union(*map(requirements, ours))
    while waiting:
        found |= waiting
        waiting = {name for package in waiting for name in requirements(package) if installed(name)} - found
    assert len(found) > 80
    assert not found - known


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(package):
    try:
        return bool(metadata.distribution(package))
    except metadata.PackageNotFoundError:
        return False


def requirements(package):
    return {
        plain(re.match(r"[\w.-]+", line)[0])
        for line in (metadata.requires(package) if installed(package) else ()) or ()
    }


def test_every_licence_is_listed_and_permissive():
    page = (ROOT / "cards" / "licences.md").read_text()
    for package in locked():
        said = licence(package)
        if said is None:
            continue  # not for this platform
        assert re.search(rf"^\| {re.escape(package)} \|", page, flags=re.MULTILINE), f"{package} is not in the page"
        permissive = any(name in said for name in COMPATIBLE) and not re.search("GPL|GNU", said)
        assert package in EXCEPTIONS or permissive, f"{package}: {said}"
        assert package not in EXCEPTIONS or package in page.partition("| package")[0]


RUNS_CODE = r"\bimport pickle|\bpickle\.|(?<![\w.])eval\(|(?<![\w.])exec\(|torch\.load\("


@pytest.mark.parametrize("package", ["aegen", "trainer"])
def test_no_reader_can_run_code(package):
    """Neither pickle nor eval, in either package."""
    for path in (ROOT / package).rglob("*.py"):
        assert not re.search(RUNS_CODE, path.read_text()), path
