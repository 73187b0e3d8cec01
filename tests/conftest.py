"""Fixtures for all tests: the commands, in a process of their own or in this one, and the authors' files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import settings

from tests import processes
from tests.s3 import bucket, s3, storage  # noqa: F401 - fixtures for all

# The same examples on every machine and every day, so that a failure is that of a change; others by make test-faults.
settings.register_profile("same", deadline=None, max_examples=60, print_blob=True, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=60, print_blob=True)

# One thread for each of the processes that tests start: several would fight for the cores that other tests use.
os.environ.setdefault("OMP_NUM_THREADS", "1")

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("random" if config.option.markexpr == "faults" else "same")


@pytest.hookimpl(tryfirst=True)  # before those without the mark are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr == "faults":
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker("faults")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in the foreground, also for what the test starts: a suite in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``python -m <module> <arguments>`` in a fresh folder."""

    def call(*arguments: object, module: str = "aegen", check: int | None = 0, **options: object):
        env = options.pop("env", None)
        changed = {key for key, text in (env or {}).items() if os.environ.get(key) != text}
        if options or any(key.startswith("PYTHON") for key in changed):  # these have their effect when Python starts
            command = [sys.executable, "-m", module, *map(str, arguments)]
            settings = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300, "env": env} | options
            done = subprocess.run(command, **settings)
        else:
            done = processes.call(module, *arguments, cwd=tmp_path, env=env)
        if check is not None:
            assert done.returncode == check, done.stderr
        return done

    return call


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """As ``run``, but inside this process: many times faster, for whatever a process adds nothing to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as python -m does, for metrics of users
    known = set(sys.modules)

    def call(*arguments: object, module: str = "aegen", check: int | None = 0, **options: object):
        command, words = import_module(f"{module}.cli").main, [*map(str, arguments)]
        done = CliRunner().invoke(command, words, prog_name=module, **options)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        if check is not None:
            assert done.exit_code == check, done.stderr
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    yield call
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def released() -> Path:
    """The authors' released files; without them the test is skipped."""
    folder = os.environ.get("AEGEN_RELEASED")
    if not folder:
        pytest.skip("AEGEN_RELEASED is not set")
    return Path(folder)
