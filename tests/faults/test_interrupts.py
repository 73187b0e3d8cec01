"""Ctrl-C at any moment of any command: one line, exit code 130, soon, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.faults.test_kills import BUILD, FIT, finish
from tests.trainer.reference import small_dataset

ROOT = Path(__file__).parents[2]
SOON = 20  # seconds; it takes a few tenths, and longer on a machine with other things to do
LATE = 60  # where the suite itself keeps the machine busy, seconds say nothing: there it counts what was left undone
KEPT = "Error: interrupted; finished files are kept; rerun the command to continue\n"
RESUME = "Error: interrupted; saved checkpoints are kept; rerun with --resume to continue\n"
ANEW = "Error: interrupted; nothing was saved; rerun the command to start over\n"
# Tells when the command has taken over, since what comes before is Python's own start; or when it opens a certain file.
TOLD = """
import os, sys
sign = {1!r}
def watch(event, arguments):
    global sign
    if sign and event == "open" and str(arguments[0]).endswith(sign):
        sign = None
        os.write(1, b"ready\\n")
sys.addaudithook(watch)
from {0}.core import interrupt
install = interrupt.install
interrupt.install = lambda: (install(), sign or os.write(1, b"ready\\n"))
from {0}.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A dataset, one for the trainer, and a run on it."""
    place = tmp_path_factory.mktemp("place")
    finish(*BUILD, "--out", place / "data")
    small_dataset(place / "small", "edit")
    finish("trainer", "fit", place / "small", *FIT, "--updates", 5, "--out", place / "run")
    return place


@pytest.fixture
def scratch():
    """A folder for temporary files; its name must be short, since sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="t") as name:
        yield Path(name)


@pytest.fixture
def limit(request):
    """Within how many seconds a command has to be over."""
    return SOON if request.node.get_closest_marker("faults") else LATE


def interrupt(command, moment, scratch, cwd, limit, leader=False, sign=None, code=TOLD, **environment):
    """Start a command, send it the signal at a moment as a terminal does, and return what it said; None if it was over.

    To its whole group, that is, or as ``kill`` does to the leader alone. The moment is counted from when the command
    has taken over, or from when it opens a file whose name ends with ``sign``.
    """
    package, *arguments = map(str, command)
    process = subprocess.Popen(
        [sys.executable, "-c", code.format(package, sign) if code is TOLD else code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=os.environ | {"TMPDIR": str(scratch)} | environment,
        start_new_session=True,
        preexec_fn=not_ignored,  # noqa: PLW1509 - no thread of ours holds what it needs
    )
    assert process.stdout.readline() == "ready\n"
    try:
        process.wait(moment)
        process.communicate()
        assert process.returncode == 0
        return None
    except subprocess.TimeoutExpired:
        (os.kill if leader else os.killpg)(process.pid, signal.SIGINT)
    since = time.monotonic()
    _, errors = process.communicate(timeout=limit)
    if (process.returncode, errors) == (0, ""):  # it was over when the signal came
        return None
    assert process.returncode == 130, errors
    while running(process.pid):
        assert time.monotonic() - since < limit, "somebody works on"
        time.sleep(0.05)
    assert list(scratch.iterdir()) == []
    return errors


def not_ignored():
    """A suite in the background has it ignored, and what it starts inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def running(session):
    """The processes of a session that have not ended; one that has may wait for whoever inherits it to notice."""
    listed = subprocess.run(["ps", "-e", "-o", "sess=,stat=,args="], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(session) and line.split()[1][0] != "Z"]


# So many that no machine is done with them at any of the moments.
MANY = ["aegen", "build", "aes", "--n", 100, "--l", 5, "--d", 600_000, "--rows-per-shard", 5000, "--out", "d"]
ENGINES = {"local": ["--workers", 2], "dask": ["--engine", "dask", "--workers", 2]}
ONE = {"one": ["--workers", 1]}  # then it is the command itself that is met while it writes
LEADER = [False, pytest.param(True, marks=pytest.mark.faults)]  # whether the signal reaches the command alone


@pytest.mark.parametrize("leader", LEADER, ids=["group", "leader"])
@pytest.mark.parametrize(
    "engine,moments",
    [
        ("local", [0.5]),
        ("dask", [1.7]),
        pytest.param("one", [n / 20 for n in range(10, 60)], marks=pytest.mark.faults),
        pytest.param("local", [n / 20 for n in range(40)], marks=pytest.mark.faults),
        pytest.param("dask", [n / 10 for n in range(50)], marks=pytest.mark.faults),
    ],
)
def test_while_workers_start(engine, moments, leader, scratch, tmp_path, limit):
    for moment in moments:
        said = interrupt([*MANY, *(ENGINES | ONE)[engine]], moment, scratch, tmp_path, limit, leader)
        assert said == KEPT, f"after {moment} seconds: {said}"
        assert not (tmp_path / "d" / "manifest.json").exists()  # the rest of the work was dropped
        shutil.rmtree(tmp_path / "d", ignore_errors=True)  # else a later moment would find more and more of it done


# Takes its time to be imported, and to draw.
SLOW = """
import time
time.sleep(1)
rcdefaults = lambda: time.sleep(600)
from contextlib import nullcontext as rc_context
"""


@pytest.mark.parametrize("leader", LEADER, ids=["group", "leader"])
@pytest.mark.parametrize("engine", ENGINES)
def test_while_something_is_imported_late(engine, leader, scratch, tmp_path, limit):
    """For the card, when workers are there: they and their files are gone only after an end in good order."""
    package = tmp_path / "packages" / "matplotlib"
    files = {
        "__init__": SLOW,
        "figure": "Figure = 0",
        "backends/__init__": "",
        "backends/backend_agg": "FigureCanvasAgg = 0",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{name}.py").write_text(text)
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    command = [*BUILD, "--out", "d", *ENGINES[engine]]
    sign = "matplotlib/__init__.py"
    assert interrupt(command, 0.1, scratch, tmp_path, limit, leader, sign, PYTHONPATH=path) == KEPT


# A worker that is being started, and has to wait for what it reads first.
HALF = """
import os, time
from multiprocessing import util
spawn = util.spawnv_passfds
def slowly(path, arguments, descriptors):
    process = spawn(path, arguments, descriptors)
    if any("spawn_main" in str(argument) for argument in arguments):
        os.write(1, b"ready\\n")
        time.sleep(2)
    return process
util.spawnv_passfds = slowly
from aegen.__main__ import main
main()
"""


@pytest.mark.parametrize("leader", LEADER, ids=["group", "leader"])
def test_while_a_worker_is_half_started(leader, scratch, tmp_path, limit):
    command = [*MANY, *ENGINES["dask"]]
    assert interrupt(command, 0.1, scratch, tmp_path, limit, leader, code=HALF) == KEPT


COMMANDS = {
    "verify": (["aegen", "verify", "{0}/data"], KEPT),
    "publish": (["aegen", "publish", "{0}/data", "--to", "there"], KEPT),
    "pull": (["aegen", "pull", "{0}/data", "--out", "pulled"], KEPT),
    "evaluate": (["trainer", "evaluate", "{0}/run"], ANEW),
    "fit": (["trainer", "fit", "{0}/small", *FIT, "--out", "new"], RESUME),
    "report": (["trainer", "report", f"{ROOT}/cards/results/main/results.json", "--out", "report"], ANEW),
}


@pytest.mark.parametrize("moments", [(0,), pytest.param((0, 0.03, 0.1, 0.3, 0.6, 1.2), marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", COMMANDS)
def test_while_a_command_runs(name, moments, place, scratch, tmp_path, limit):
    words, line = COMMANDS[name]
    command = [word.format(place) for word in words]
    if name == "fit":
        moments = moments[:5]  # later it may train, and says where it stopped
    said = [interrupt(command, moment, scratch, tmp_path, limit) for moment in moments]
    assert said[0] == line and set(said) <= {line, None}


@pytest.mark.faults
def test_while_a_report_is_drawn(scratch, tmp_path, limit):
    """The others are met while they import what they need, and some at work; this one surely is at work."""
    command, line = COMMANDS["report"]
    for moment in (0, 0.2):  # since the first picture has begun
        assert interrupt(command, moment, scratch, tmp_path, limit, sign="DejaVuSans.ttf") == line
    assert not (tmp_path / "report").exists()


DESTRUCTOR = """
import os, signal, time
from aegen.core import interrupt

class Trap:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)  # the handler raises here, where Python drops the exception

interrupt.install()
try:
    with interrupt.raising():
        Trap()
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_in_a_destructor_is_not_lost():
    done = subprocess.run([sys.executable, "-c", DESTRUCTOR], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
