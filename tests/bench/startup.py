"""How long a user waits for the first sign of life."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.measure import best


def seconds(*arguments: object) -> float:
    return best(lambda: subprocess.run([sys.executable, *map(str, arguments)], check=True, capture_output=True), 5)


def run() -> None:
    print("start")
    click = seconds("-c", "import click")
    print(f"  aegen --help                       {seconds('-m', 'aegen', '--help') / click:5.2f} x `import click`")
    base = seconds("-c", "import numpy, pyarrow.parquet, click")
    with tempfile.TemporaryDirectory() as folder:
        count = iter(range(100))
        command = best(
            lambda: subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "aegen",
                    *["generate", "aor", "--n", "10", "--l", "5", "--d", "10000", "--out"],
                    Path(folder) / str(next(count)),
                ],
                check=True,
                capture_output=True,
            )
        )
    allowed = f"twice the bare imports and half a second: {2 * base + 0.5:.2f} s"
    print(f"  aegen generate aor, 10,000 pairs   {command:5.2f} s; {allowed}")
