"""Fixtures of the trainer's tests: small dataset folders, written once a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import processes
from tests.trainer.reference import SLOTS, small_dataset

ROOT = Path(__file__).parents[2]

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def datasets(tmp_path_factory):
    """One small dataset folder per action design."""
    root = tmp_path_factory.mktemp("datasets")
    return {design: small_dataset(root / design, design) for design in SLOTS}


@pytest.fixture
def insert(datasets):
    return datasets["insert"]


@pytest.fixture
def command(tmp_path):
    """Run ``python -m trainer`` for real, with the package aegen made unimportable."""
    blocked = tmp_path / "blocked" / "aegen"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('the trainer must not import aegen')\n")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(blocked.parent), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "default",
    }

    def run(*arguments, code=0, stdin=None, extra=None, fresh=False):
        chosen = environment | (extra or {})
        if fresh:  # a Python that has imported nothing yet
            words = [sys.executable, "-m", "trainer", *map(str, arguments)]
            done = subprocess.run(words, capture_output=True, text=True, input=stdin, env=chosen, timeout=600)
        else:
            done = processes.call("trainer", *arguments, cwd=Path.cwd(), env=chosen, stdin=stdin, timeout=600)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    run.environment = environment
    return run
