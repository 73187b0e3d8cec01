"""Playing against the plain loop, and the share of data loading, with a trainer's agent."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline.build import build
from tests.trainer.bench import measure


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for task, n in (("aes", 100), ("aor", 10)):
            data = Path(folder) / task
            build(Spec(task, n, 5, 10_000), Folder(data), Local())
            figures = measure(data, Path(folder) / f"run-{task}")
            print(f"playing {figures['games']:,} games of {task} after a short training")
            print(f"  {figures['ratio']:.2f} x faster than the plain loop ({figures['plain_seconds']:.2f} s)")
            print(f"  data loading is {figures['loading_percent']:.1f} % of an update")
