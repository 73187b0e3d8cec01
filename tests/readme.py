"""Follow the README from top to bottom in a folder: ``python -m tests.readme FOLDER [literally]``.

Later blocks need the folders that earlier ones make. One process runs all commands, with few updates of every training;
``literally`` gives each command a process of its own and changes nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
UPDATES = 20  # of a training that is cut short


def blocks() -> Iterator[tuple[str, str, str]]:
    """Where each block of the README begins, its kind and its text, from top to bottom."""
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE):
        yield f"README.md:{README.count(chr(10), 0, found.start()) + 1}", found[1], found[2]


def shell(command: str) -> str:
    """Run a command as it stands, with the commands of this environment first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def inside(command: str) -> str:
    """Run one of our commands in this process, with fewer updates; anything else as it stands."""
    from click.testing import CliRunner

    words = shlex.split(command, comments=True)
    if words[0] not in ("aegen", "trainer"):
        return shell(re.sub(r"updates = \d+", f"updates = {UPDATES // 4}", command))
    if "--updates" in words:
        words[words.index("--updates") + 1] = str(UPDATES)
    done = CliRunner().invoke(import_module(f"{words[0]}.cli").main, words[1:], prog_name=words[0])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def python(block: str) -> None:
    """Run a block of Python in this process, with fewer updates."""
    block = re.sub(r"updates=\d+", f"updates={UPDATES}", block)
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


def follow(run: Callable[[str], str], run_python: Callable[[str], object]) -> Counter[str]:
    """Run every block that is a command, and compare what is printed with what is shown. How many of each kind."""
    followed: Counter[str] = Counter()
    for where, kind, block in blocks():
        if kind == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, shown = part.split("\n", 1)
                if (printed := run(command)) != shown:
                    sys.exit(f"{where} {command}\n{printed}")
        elif kind == "sh" and "make" not in block:
            for command in block.splitlines():
                run(command)
        elif kind == "python":
            run_python(block)
        else:
            continue
        followed[kind] += 1
        print(where, kind, flush=True)
    return followed


def main(folder: str, how: str = "") -> None:
    """Follow it; exit code 0 if everything ran."""
    os.chdir(folder)
    if how == "literally":
        off = "import datasets\ndatasets.config.USE_PARQUET_EXPORT = False\n"  # it would ask a server for an export
        followed = follow(shell, lambda block: shell(shlex.join([sys.executable, "-c", off + block])))
    else:
        import datasets

        warnings.simplefilter("ignore")
        datasets.config.USE_PARQUET_EXPORT = False
        followed = follow(inside, python)
    assert followed.keys() == {"console", "sh", "python"}


if __name__ == "__main__":
    main(*sys.argv[1:])
