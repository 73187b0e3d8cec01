"""Commands in processes of their own, without waiting for Python and PyTorch each time.

One server for each package imports what its commands import, and a fork of it runs a command: with the environment,
folder, output and exit code of a process that a shell starts, in a fraction of the time. What is about the start or the
end of a process (signals, a missing package, an encoding) starts a real one.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Not huggingface_hub and datasets: they read the environment when they are imported, and tests give them another.
PRELOADED = {
    "aegen": ["aegen.api", "aegen.cli", "aegen.card.render", "aegen.dataset.verify", "aegen.pairs.importing"],
    "trainer": ["trainer.api", "trainer.cli", "torch._dynamo", "torch.utils.tensorboard"],
}
PRELOADED["tests.readme"] = [*PRELOADED["aegen"], *PRELOADED["trainer"]]
WARNINGS = {"trainer": {"PYTHONWARNINGS": "default"}}
SERVER = """
import importlib, json, os, runpy, sys

for name in sys.argv[1:]:
    importlib.import_module(name)
early = {"huggingface_hub", "datasets"} & {*sys.modules}
assert not early, f"{early}: imported before a test has set their environment"
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            flags = os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY
            os.dup2(os.open(asked["streams"][name], flags), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.argv = [asked["module"], *asked["words"]]
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class _Server:
    def __init__(self, package: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *PRELOADED[package]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | WARNINGS.get(package, {}),
        )
        atexit.register(self.process.kill)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def run(self, asked: dict[str, object], timeout: float) -> int:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.kill()
            _server.cache_clear()
            raise subprocess.TimeoutExpired(str(asked["words"]), timeout)
        return int(self.process.stdout.readline())


@cache
def _server(package: str) -> _Server:
    return _Server(package)


def call(
    package: str,
    *arguments: object,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 300,
    terminal: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m <package> <arguments>``, with its errors on a terminal if one is named."""
    words = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        streams = {name: Path(folder) / name for name in ("stdin", "stdout", "stderr")}
        for name, path in streams.items():
            path.write_text(stdin or "" if name == "stdin" else "")
        asked: dict[str, Any] = {"module": package, "words": words, "folder": str(cwd)}
        asked["environment"] = dict(env or os.environ)
        asked["streams"] = {name: str(path) for name, path in streams.items()}
        if terminal:
            asked["streams"]["stderr"] = terminal
        code = _server(package).run(asked, timeout)
        said, errors = streams["stdout"].read_text(), streams["stderr"].read_text()
    return subprocess.CompletedProcess([package, *words], code, said, errors)
