"""The licence of every package that ``constraints.txt`` locks: ``python -m tests.licences > cards/licences.md``."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
# May be used by software under the MIT licence, and distributed beside it, without a condition for that software.
COMPATIBLE = ("MIT", "BSD", "Apache", "PSF", "Python Software Foundation", "ISC", "Zlib", "MPL-2.0", "Mozilla")
# What is not so, and why it is there all the same; a new name here is a decision, not a formality.
EXCEPTIONS = {
    "codespell": "a spelling checker that developers run; nothing in aegen imports it",
    "Levenshtein": (
        "imported by `aegen.experts` and `aegen.dataset`: whoever distributes aegen with it is bound by the GPL"
    ),
    "python-Levenshtein": "the former name of Levenshtein, which it installs",
    "mlcroissant": "states none; only tests import it",
}
HEAD = """# Licences

The licence of every package in `constraints.txt`, as the package states it; aegen is under the MIT licence and ships
none of them. All are permissive (or, as the MPL, bind only their own files) except these:

{exceptions}

Written by `python -m tests.licences`, tested to be complete.

| package | licence |
|---|---|
"""


def locked() -> list[str]:
    """The packages of the constraints, in order."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line.partition("==")[0] for line in lines if "==" in line]


def licence(package: str) -> str | None:
    """What a package says; None where it is not installed."""
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    classifiers = [c for c in classifiers if c != "OSI Approved"]
    text = about.get("License-Expression") or ", ".join(classifiers) or about.get("License") or ""
    return re.sub(r"\s+", " ", text.strip().splitlines()[0] if text.strip() else "not stated")[:120]


def page() -> str:
    """The whole page."""
    exceptions = "\n".join(f"- **{package}** ({licence(package)}): {why}." for package, why in EXCEPTIONS.items())
    return HEAD.format(exceptions=exceptions) + "".join(
        f"| {package} | {said} |\n" for package in locked() if (said := licence(package))
    )


if __name__ == "__main__":
    print(page(), end="")
