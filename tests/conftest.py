"""What all tests share: the real command line, and the authors' files where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.s3 import bucket, s3, storage  # noqa: F401 - fixtures for all

settings.register_profile("aegen", deadline=None, max_examples=60, print_blob=True)
settings.load_profile("aegen")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``python -m <module> <arguments>`` in a fresh folder."""

    def call(*arguments: object, module: str = "aegen", check: int | None = 0, **options: object):
        command = [sys.executable, "-m", module, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, **options)
        if check is not None:
            assert done.returncode == check, done.stderr
        return done

    return call


@pytest.fixture
def released() -> Path:
    """The authors' released files; without them the test is skipped."""
    folder = os.environ.get("AEGEN_RELEASED")
    if not folder:
        pytest.skip("AEGEN_RELEASED is not set")
    return Path(folder)
