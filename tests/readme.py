"""Follow a page from top to bottom in a folder: ``python -m tests.readme FOLDER PAGE [literally|update]``.

Later blocks need the folders that earlier ones make. ``console`` blocks are run and compared with what they show,
``sh`` and ``python`` blocks are run; before a command in any other block stands ``<!-- not run: why -->``. One
process runs all commands, with few updates of every training but on the pages in ``FULL``; ``literally`` gives each
command a process of its own and changes nothing; ``update`` writes what the commands of ``aegen`` print into the page.
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
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FULL = {"cards/quickstart.md"}  # pages whose trainings take seconds; what others show of them is shown there too
UPDATES = 20  # of a training that is cut short
RUN = ("console", "sh", "python")
# What a training gives, which is not the same on every machine: probabilities and other figures with decimals.
FIGURE = re.compile(r"\d+(?:\.\d+)?(?=%)|\d+\.\d{2,}")


class Block(NamedTuple):
    """A fenced block of a page: where it begins, its kind, its text, and why it is not run if that is said."""

    where: str
    kind: str
    text: str
    not_run: str


def blocks(name: str) -> Iterator[Block]:
    """The blocks of a page, from top to bottom."""
    page = (ROOT / name).read_text(encoding="utf-8")
    pattern = r"(?:^<!-- not run: (.+?) -->\n\n?)?^```(\w*)[^\n]*\n(.*?)^```"
    for found in re.finditer(pattern, page, flags=re.DOTALL | re.MULTILINE):
        yield Block(f"{name}:{page.count(chr(10), 0, found.start(2)) + 1}", found[2], found[3], found[1] or "")


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a ``console`` block, each with what it shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def alike(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for figures that are close; a line ``...`` stands for any lines.

    >>> alike("right 98.00 %\\n...\\n", "right 96.50 %\\nand so on\\n"), alike("right 98.00 %\\n", "right 60.00 %\\n")
    (True, False)
    """
    pattern, wanted = "", [float(figure) for figure in FIGURE.findall(shown)]
    for line in shown.splitlines():
        exact = FIGURE.split(line)
        pattern += r"(?:[^\n]*\n)*" if line == "..." else r"(\d+(?:\.\d+)?)".join(map(re.escape, exact)) + r"\n"
    found = re.fullmatch(re.sub(r"(\\ )+", r" +", pattern), printed)
    if not found:
        return False
    return all(abs(a - float(b)) <= max(0.15 * a, 0.05) for a, b in zip(wanted, found.groups(), strict=True))


def shell(command: str) -> str:
    """Run a command as it stands, with the commands of this environment first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def inside(command: str, cut: bool = True) -> str:
    """Run one of our commands in this process, with fewer updates; anything else as it stands."""
    from click.testing import CliRunner

    words = shlex.split(command, comments=True)
    if words[0] not in ("aegen", "trainer"):
        return shell(re.sub(r"updates = \d+", f"updates = {UPDATES // 4}", command))
    if "--updates" in words and cut:
        words[words.index("--updates") + 1] = str(UPDATES)
    done = CliRunner().invoke(import_module(f"{words[0]}.cli").main, words[1:], prog_name=words[0])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def python(block: str, cut: bool = True) -> None:
    """Run a block of Python in this process, with fewer updates."""
    block = re.sub(r"updates=\d+", f"updates={UPDATES}", block) if cut else block
    exec(compile(block, "page", "exec"), {"__name__": "__main__"})


def follow(name: str, run: Callable[[str], str], run_python: Callable[[str], object], cut: bool) -> Counter[str]:
    """Run every block that is a command, and compare what is printed with what is shown. How many of each kind."""
    followed: Counter[str] = Counter()
    for where, kind, block, _ in blocks(name):
        if "--8<--" in block:  # an example, which is run as a script
            continue
        if kind == "console":
            for command, shown in commands(block):
                printed = run(command)
                trained = command.startswith("trainer ")
                if not (cut or alike(shown, printed) if trained else printed == shown):
                    sys.exit(f"{where} {command}\n{printed}")
        elif kind == "sh":
            for command in block.splitlines():
                run(command)
        elif kind == "python":
            run_python(block)
        else:
            continue
        followed[kind] += 1
        print(where, kind, flush=True)
    return followed


def update(name: str) -> None:
    """Write into a page what its commands print, but for those of ``trainer``, which are not the same everywhere."""
    page = (ROOT / name).read_text(encoding="utf-8")
    for _, kind, block, _ in blocks(name):
        if kind == "console":
            new = [
                f"$ {command}\n{shown if command.startswith('trainer ') else inside(command)}"
                for command, shown in commands(block)
            ]
            page = page.replace(f"```console\n{block}```", "```console\n" + "".join(new) + "```")
    (ROOT / name).write_text(page, encoding="utf-8")


def main(folder: str, name: str = "README.md", how: str = "") -> None:
    """Follow it; exit code 0 if everything ran."""
    os.chdir(folder)
    Path("cards").symlink_to(ROOT / "cards")  # pages are read in a clone
    cut = name not in FULL
    if how == "update":
        return update(name)
    if how == "literally":
        off = "import datasets\ndatasets.config.USE_PARQUET_EXPORT = False\n"  # it would ask a server for an export
        followed = follow(name, shell, lambda block: shell(shlex.join([sys.executable, "-c", off + block])), False)
    else:
        warnings.simplefilter("ignore")
        if "load_dataset" in (ROOT / name).read_text(encoding="utf-8"):
            import datasets

            datasets.config.USE_PARQUET_EXPORT = False
        followed = follow(name, lambda line: inside(line, cut), lambda block: python(block, cut), cut)
    print(dict(followed))


if __name__ == "__main__":
    main(*sys.argv[1:])
