"""The wall between the packages, and what a light start may import."""

from __future__ import annotations

import ast
import subprocess
import sys
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
