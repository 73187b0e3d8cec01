"""The wall between the packages, and what a light start may import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = "import sys; sys.modules[{other!r}] = None; import pkgutil, importlib, {package}\n"
WALK = """
for module in pkgutil.walk_packages({package}.__path__, {package!r} + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


@pytest.mark.parametrize("package,other", [("aegen", "trainer"), ("trainer", "aegen")])
def test_each_package_imports_with_the_other_blocked(package, other):
    code = (BLOCK + WALK).format(package=package, other=other)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package,other", [("aegen", "trainer"), ("trainer", "aegen")])
def test_no_module_names_the_other_package(package, other):
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert not any(name.split(".")[0] == other for name in names), f"{path} imports {other}"


@pytest.mark.parametrize("package", ["aegen", "trainer"])
def test_help_starts_light(package):
    heavy = "torch", "datasets", "numpy", "pyarrow", "pandas", "huggingface_hub", "gymnasium"
    code = f"""
import sys
from {package}.cli import main
try:
    main(["--help"])
except SystemExit as end:
    assert not end.code
print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "Usage:" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_generating_does_not_import_pandas(tmp_path):
    code = f"""
import sys
from aegen.cli import main
try:
    main(["build", "aec", "--n", "10", "--l", "4", "--d", "50", "--out", {str(tmp_path / "d")!r}])
except SystemExit as end:
    assert not end.code
print([name for name in ("pandas", "torch", "datasets") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and (tmp_path / "d" / "manifest.json").exists(), done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def declared(package: str) -> dict[str, set[str]]:
    """What the rooms of a package may import, as the docstring of each says."""
    rooms = {}
    for path in (ROOT / package).glob("*/__init__.py"):
        said = re.search(r"^Imports: (.*)\.$", ast.get_docstring(ast.parse(path.read_text())) or "", re.MULTILINE)
        assert said, f"{path}: its docstring has no line 'Imports: ….'"
        rooms[path.parent.name] = set() if said[1] == "nothing" else set(said[1].split(", "))
    return rooms


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports when it is loaded or later, but for what only type checkers see."""
    tree = ast.parse(path.read_text())
    hidden = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {id(inner) for node in hidden for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def used(package: str, room: str, rooms: Collection[str]) -> dict[str, str]:
    """What a room imports of its package, and where: other rooms, and modules that are in no room."""
    found = {}
    for path in (ROOT / package / room).rglob("*.py"):
        for module in imported(path):
            top, _, rest = module.partition(".")
            name = rest.partition(".")[0]
            if top == package and name != room and not name.startswith("__"):
                found[name if name in rooms else f"{package}.{name}"] = f"{path} imports {module}"
    return found


@pytest.mark.parametrize("package", ["aegen", "trainer"])
def test_rooms_import_what_they_declare_and_in_one_direction(package):
    """What is in no room, such as the public functions, is for the command and for users."""
    rooms = declared(package)
    assert tuple(TopologicalSorter(rooms).static_order())  # a circle raises
    for room, allowed in rooms.items():
        found = used(package, room, rooms)
        if room == "cli":
            found = {name: where for name, where in found.items() if name in rooms}
        for name, where in found.items():
            assert name in allowed, f"{where}, and {room} declares no {name}"
        assert found.keys() == allowed, f"{room} declares {sorted(allowed - found.keys())}, and imports none of it"


def test_relative_imports_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    file = tmp_path / "trainer" / "data" / "x.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from . import y\nfrom .y import z\nfrom ..models.zoo import w\nfrom .. import api\nimport trainer.report\n"
    )
    assert [*imported(file)] == [
        "trainer.data.y", "trainer.data.y.z", "trainer.models.zoo.w", "trainer.api", "trainer.report",
    ]  # fmt: skip
    assert set(used("trainer", "data", {"data", "models", "report"})) == {"models", "trainer.api", "report"}
