"""Where the work runs changes nothing: the same bytes from every engine, to every place, after every loss."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import distributed
import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegen
from aegen.core.errors import BadData, Failed, FolderConflict, InvalidSpec, MissingExtra
from aegen.dataset.folder import Folder
from aegen.dataset.recipe import Recipe
from aegen.dataset.shards import open_shard, read_batches
from aegen.dataset.verify import verify
from aegen.engines.dask import WORKER, Dask
from aegen.engines.engine import BUNDLE, _bundles, in_order
from aegen.engines.local import Local, results
from aegen.engines.start import start
from aegen.files.atomic import AtomicFile
from aegen.files.places import Remote
from aegen.pairs.generate import part_of, plan, runs, stripe_batches, stripes
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from aegen.pipeline.working import working
from tests.aegen.pairs.test_generate import content
from tests.cluster import cluster

# One in which some things are left to find for workers: several shards, variants, the paper's leaks.
SPEC = Spec("aec", 10, 5, 300, variants=1, split="paper", rows_per_shard=80)
OPTIONS = ["aec", "--n", 10, "--l", 5, "--d", 300, "--variants", 1, "--split-by", "paper", "--rows-per-shard", 80]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The bytes that one process makes."""
    folder = tmp_path_factory.mktemp("wanted")
    pipeline.build(SPEC, Folder(folder), Local())
    return content(folder)


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_dask_makes_the_same_bytes(wanted, tmp_path, processes):
    with Dask(workers=2, processes=processes) as engine:
        pipeline.build(SPEC, Folder(tmp_path), engine)
        assert content(tmp_path) == wanted
        assert pipeline.build(SPEC, Folder(tmp_path), engine)[1] is False


@pytest.mark.faults
def test_separate_processes_and_stages_one_by_one(wanted, tmp_path, run):
    with cluster(tmp_path / "dask", workers=2, threads=2) as dask:
        run("generate", *OPTIONS, "--out", "d", "--scheduler", dask.address)
        run("trajectories", "d", "--engine", "dask", "--scheduler", dask.address)
        done = run("augment", "d", "--scheduler", dask.address)
    assert content(tmp_path / "d") == wanted and done.stderr == ""


def test_a_killed_worker_costs_time_and_nothing_else(wanted, tmp_path, run):
    with cluster(tmp_path / "dask") as dask:
        for attempt in range(30):  # until one is seen while a worker is at work
            out = tmp_path / str(attempt)
            command = ["build", *OPTIONS, "--out", out, "--scheduler", dask.address]
            build = subprocess.Popen(
                [sys.executable, "-m", "aegen", *map(str, command)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            while not (seen := list(out.glob("expert/.*"))) and build.poll() is None:
                time.sleep(0.001)
            if seen:
                break
            assert build.communicate()[1] == "" and build.returncode == 0
        assert seen
        dask.workers[0].kill()
        dask.add_worker()
        assert build.communicate(timeout=120)[1] == "" and build.returncode == 0
    assert content(out) == wanted


def test_clusters_side_by_side_say_nothing_of_each_other():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with Dask(workers=1, processes=False) as one, Dask(workers=1, processes=False) as two:
            assert [*one.map(divmod, [(7, 2)])] == [*two.map(divmod, [(7, 2)])] == [(3, 1)]
    assert not [str(warning.message) for warning in said if "in use" in str(warning.message)]


def test_what_dask_would_say_is_not_said():
    with Dask(workers=1, processes=False):
        for name in ("distributed.client", "distributed.gc", "distributed.worker", "tornado.application", "asyncio"):
            assert not logging.getLogger(name).isEnabledFor(logging.ERROR)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_until_the_cluster_is_closed(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), Dask(workers=1, processes=False) as engine:
        assert list(engine.map(divmod, [(7, 2)])) == [(3, 1)]
        assert list(tmp_path.iterdir())
        close = engine.client.close  # with time for an end in good order on a busy machine
        monkeypatch.setattr(engine.client, "close", lambda timeout: (signal.raise_signal(signal.SIGINT), close(30)))
    assert engine.client.status == "closed" and not list(tmp_path.iterdir())


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_workers_start_waits_until_they_are_gone():
    """One that is half started when nobody waits for it any more complains aloud."""

    def interrupt():
        while not any(process.name.startswith(WORKER) for process in active_children()):
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    engine = Dask(workers=2)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), engine:
        pytest.fail("not interrupted")
    assert engine._cluster.status.name == "closed"


def test_a_folder_that_cannot_be_removed_at_once_is_removed_later(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rmtree, busy = shutil.rmtree, [1, 2]  # as with a worker that makes a file while it is killed
    with Dask(workers=1, processes=False):
        monkeypatch.setattr(shutil, "rmtree", lambda *path, **how: busy.pop() if busy else rmtree(*path, **how))
    assert not busy and not list(tmp_path.iterdir())


def test_what_fails_once_is_tried_again(tmp_path):
    with Dask(workers=1, processes=False) as engine:
        assert list(engine.map(fail_once, [(tmp_path / "a",), (tmp_path / "b",)])) == ["a", "b"]
        with pytest.raises(BadData, match="^no$"):  # ours are not: they would fail again
            list(engine.map(refuse, [(tmp_path / "tried",)]))
    assert (tmp_path / "tried").read_text() == "x"


def test_a_storage_that_stumbles_is_asked_again(memory, monkeypatch, tmp_path):
    """Nothing is said of a file by a network that fails: it is neither damaged nor missing."""
    pipeline.generate(SPEC, Folder("memory://d"), Local())
    storage = type(fsspec.filesystem("memory"))
    # Once here, and twice for the engine, of whose calls one may meet both: that is as often as it asks again.
    opened, stumbles = storage.open, iter([False, True] * 3)

    def open_at_times(self, path, mode="rb"):
        if next(stumbles, False):
            raise ConnectionError("the peer has gone")
        return opened(self, path, mode)

    monkeypatch.setattr(storage, "open", open_at_times)
    shard = Remote("memory://d/pairs/train-00000-of-00003.parquet")
    with pytest.raises(Failed, match="the peer has gone"):
        open_shard(shard)
    with Dask(workers=1, processes=False) as engine:
        rows = list(engine.map(count_rows, [(shard,)] * 6))
    assert len(rows) == 6 and len(set(rows)) == 1


def count_rows(shard):
    return sum(len(batch) for batch in read_batches(shard, "pairs"))


def fail_once(path):
    if not path.exists():
        path.touch()
        raise ConnectionError("a network that stumbles")
    return path.name


def refuse(path):
    with path.open("a") as file:
        file.write("x")
    raise BadData("no")


def test_workers_have_the_environment_of_now(monkeypatch):
    """Not that of the process which forks them, and which an earlier engine may have started."""
    assert list(Local(2).map(os.getenv, [("AEGEN_NOW",)])) == [None]
    monkeypatch.setenv("AEGEN_NOW", "set")
    assert list(Local(2).map(os.getenv, [("AEGEN_NOW",)])) == ["set"]


@pytest.mark.faults
def test_a_storage_holds_the_same_bytes(wanted, s3, bucket):
    pipeline.build(SPEC, Folder(f"{bucket}/d"), Local(2))
    assert s3.files(f"{bucket}/d") == wanted
    assert verify(Folder(f"{bucket}/d"), Local())["files"] == len([n for n in wanted if n.endswith(".parquet")])


@pytest.mark.faults
def test_workers_write_to_a_storage(wanted, tmp_path, s3, bucket, run):
    with cluster(tmp_path / "dask") as dask:
        run("build", *OPTIONS, "--out", f"{bucket}/d", "--scheduler", dask.address)
        assert s3.files(f"{bucket}/d") == wanted
    assert "POS_" in run("show", f"{bucket}/d", "--rows", 1).stdout


@pytest.fixture
def memory():
    """A storage within this process."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    return lambda: {name.removeprefix("/d/"): file.getvalue() for name, file in files.store.items()}


def test_an_interrupted_build_in_a_storage_goes_on(wanted, memory, monkeypatch):
    folder, made = Folder("memory://d"), []
    pipeline.generate(SPEC, folder, Local())
    for name in ("manifest.json", "pairs/train-00001-of-00003.parquet"):
        (folder / name).unlink()
    put = Remote.put
    monkeypatch.setattr(Remote, "put", lambda self, file: (made.append(self.url), put(self, file)))
    pipeline.build(SPEC, folder, Local())
    assert memory() == wanted
    pairs = [url for url in made if "/pairs/" in url or "/variants/" in url]
    assert len(pairs) == 4 and all("00001-of" in url for url in pairs)  # one stripe and no other


def test_the_client_reads_no_rows_but_those_that_it_shows(memory, monkeypatch):
    """Every reading of a shard's rows happens within a call of the engine."""
    seen, inside = set(), []

    class Watched(Local):
        def map(self, function, calls):
            for call in calls:
                inside.append(function)
                outcome = function(*call)
                inside.pop()
                yield outcome

    opened = Remote.open

    def watch(place, mode="rb"):  # whichever module reads, it opens the file here
        if not inside and place.name.endswith(".parquet"):
            seen.add(place.name)
        return opened(place, mode)

    monkeypatch.setattr(Remote, "open", watch)
    pipeline.build(SPEC, Folder("memory://d"), Watched())
    assert seen == {"test-00000-of-00003.parquet", "train-00000-of-00003.parquet"}  # for the card: writer, example


def test_a_storage_in_which_another_spec_is_being_written_is_left_alone(memory):
    folder = Folder("memory://d")
    other = Recipe(replace(SPEC, seed=1))
    with folder.writing(other), pytest.raises(FolderConflict, match="another spec is being written"):
        pipeline.generate(SPEC, folder, Local())
    assert memory() == {}


@pytest.mark.faults
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_to_a_storage_leaves_nothing_here(wanted, s3, bucket, run, workers):
    """What waits to be sent lies in TMPDIR; the next build removes it, but nothing that is still in use."""
    with tempfile.TemporaryDirectory(prefix="t") as name:  # short, since sockets are made in it
        aside, env = Path(name), {**os.environ, "TMPDIR": name}
        for attempt in range(30):  # until a kill comes while a shard is being filled
            command = ["build", *OPTIONS, "--out", f"{bucket}/{attempt}", "--workers", workers]
            process = subprocess.Popen(
                [sys.executable, "-m", "aegen", *map(str, command)],
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while process.poll() is None and not list(aside.glob(".train-*.part")):
                time.sleep(0.001)
            process.kill()
            process.wait()
            if left := list(aside.glob(".train-*.part")):
                break
        assert left
        time.sleep(0.6 * (workers - 1))  # orphaned workers end when they see it
        run(*command, env=env)
        assert not list(aside.glob(".*")) and s3.files(f"{bucket}/{attempt}") == wanted


def test_files_that_are_being_sent_are_not_swept(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with AtomicFile(Remote("memory://d/one")) as one:
        one.write_bytes(b"1")
        with AtomicFile(Remote("memory://d/two")) as two:
            two.write_bytes(b"2")
            assert one.exists()
    assert memory() == {"one": b"1", "two": b"2"} and not list(tmp_path.iterdir())


def test_a_storage_that_refuses_is_named(s3, bucket, run):
    s3.broken = ("PUT .*augmented", 100)
    done = run("build", *OPTIONS, "--out", f"{bucket}/d", check=None)
    assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1 and done.stderr.startswith("Error: ")
    assert "s3_secret" not in done.stderr and not any(".part" in name for name in s3.files(f"{bucket}/d"))
    assert "manifest.json" not in s3.files(f"{bucket}/d")


def test_a_folder_that_workers_do_not_share_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("aegen.dataset.folder.VISIBLE", 0.3)

    class Elsewhere(Local):
        def map(self, function, calls):
            for made in super().map(function, calls):
                for path in tmp_path.glob("pairs/*"):
                    path.unlink()  # as seen from here, they are not there
                yield made

    with pytest.raises(Failed, match="written by a worker, not visible here"):
        pipeline.generate(SPEC, Folder(tmp_path), Elsewhere())


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("aegen.engines.dask.CONNECT", 1)
    with (
        pytest.raises(Failed, match="tcp://127.0.0.1:1: no scheduler answers"),
        Dask(scheduler="tcp://127.0.0.1:1"),
    ):
        pass


def test_a_scheduler_of_our_own_that_does_not_answer_is_named_too(monkeypatch):
    def late(distributed, address):
        raise TimeoutError

    monkeypatch.setattr("aegen.engines.dask.connect", late)
    with pytest.raises(Failed, match="^[a-z]+://.+: no scheduler answers"), Dask(workers=1, processes=False):
        pass


SCHEMES = ["127.0.0.1:1", "foo://a:1", "http://a:1", "inproc://a:1", "ucx://a:1"]
PARTS = ["", "tcp://:1", "tcp://a:0", "tcp://a:65536", "tcp://[::1:1", "tcp://a:1/x", "tcp://a b:1", "tcp://a:1\n"]
SECRETS = ["tcp://u:SECRET@127.0.0.1:1", "u:SECRET@a:1", "tcp://u:SEC\nRET@a:1"]


@pytest.mark.parametrize("address", [*SCHEMES, *PARTS, *SECRETS])
def test_what_is_no_address_is_refused_before_anything_starts(address, monkeypatch):
    monkeypatch.setattr("aegen.engines.dask._packages", lambda: pytest.fail("dask was asked"))
    for more in ((None, None), ("local", None), ("dask", 2)):  # also where another option is wrong as well
        with (
            pytest.raises(InvalidSpec, match="(?s)^--scheduler .*: expected for example tcp://host:8786$") as refused,
            start(*more, address, 1),
        ):
            pass
        assert "SEC" not in str(refused.value)


@pytest.mark.parametrize("address", ["tcp://host:8786", "tls://10.0.0.1:1", "wss://a-b.example:65535", "tcp://[::1]:1"])
def test_what_is_an_address_is_taken(address):
    assert Dask(scheduler=address).scheduler == address


def refuse_or_write(path):
    """A call that is refused, or one that writes a file a little later."""
    if path is None:
        raise InvalidSpec("refused")
    time.sleep(1)
    Path(path).touch()


class Denied(Local):
    """An engine whose third task meets a worker that lacks something."""

    def map(self, function, calls):
        for number, result in enumerate(super().map(function, calls)):
            if number == 2:
                raise MissingExtra("a worker needs the package numpy")
            yield result


def test_what_another_attempt_can_finish_is_kept(tmp_path):
    folder = Folder(tmp_path / "d")
    pipeline.generate(Spec("aor", 10, 4, 60, rows_per_shard=5), folder, Local())
    with pytest.raises(MissingExtra):
        pipeline.add_demonstrations(folder, pipeline.demonstrator("aor"), Denied())
    assert [*(tmp_path / "d" / "expert").glob("*.parquet")]
    pipeline.add_demonstrations(folder, pipeline.demonstrator("aor"), Local())
    verify(folder, Local())


def test_an_error_waits_for_what_the_workers_of_a_scheduler_still_write(tmp_path):
    """They cannot be stopped: a shard that came later would belong to no dataset."""
    with distributed.LocalCluster(1, 2, processes=False, protocol="tcp://", dashboard_address=None) as there:
        with Dask(scheduler=there.scheduler_address) as engine, pytest.raises(InvalidSpec, match="refused"):
            list(engine.map(refuse_or_write, [(None,), (str(tmp_path / "late"),)]))
        assert (tmp_path / "late").exists()


def test_a_worker_that_lacks_aegen_is_named_before_it_gets_work(run, tmp_path):
    with cluster(tmp_path / "dask", workers=1, lacking="aegen") as dask:
        done = run("generate", *OPTIONS, "--out", "d", "--scheduler", dask.address, check=2)
        assert re.fullmatch(
            r"Error: --scheduler tcp\S+: tcp\S+ lacks aegen: install it there, from the same clone\n", done.stderr
        )
        assert dask.workers[0].poll() is None


def test_a_scheduler_without_certificates_is_refused_without_waiting(run):
    done = run("generate", *OPTIONS, "--out", "d", "--scheduler", "tls://127.0.0.1:1", check=2)
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("Error: --scheduler tls://127.0.0.1:1: TLS ")


@pytest.mark.parametrize("number", [0, 1025, 99999999999999999999])
def test_more_workers_than_any_machine_has_are_wrong_use(number, run):
    done = run("generate", *OPTIONS, "--out", "d", "--workers", number, check=2)
    assert done.stderr == f"Error: workers={number}: expected a number from 1 to 1024\n"


@pytest.mark.parametrize("wrong", [{"engine": "ray"}, {"workers": -4}, {"workers": 0}, {"workers": True}])
def test_an_engine_that_does_not_exist_is_refused(wrong, tmp_path):
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(InvalidSpec, match=f"{name}={value}: expected"):
        aegen.build(SPEC, out=tmp_path / "d", **wrong)
    assert not (tmp_path / "d").exists()


def test_a_relative_folder_is_the_same_for_workers_in_another_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for engine, absolute in ((None, False), ("local", False), ("dask", True)):
        with working("d", engine, 1, None, 1) as (folder, _):
            assert folder.path == (tmp_path / "d" if absolute else Path("d"))
    assert Path(aegen.build(SPEC, out="d", engine="dask", workers=1).path) == tmp_path / "d"


def test_wrong_use_is_one_line(run, tmp_path):
    for options, message in (
        (("--scheduler", "tcp://127.0.0.1"), "expected for example tcp://host:8786"),
        (("--scheduler", ""), '--scheduler "" (unset variable?): expected for example tcp://host:8786'),
        (("--scheduler", "tcp://127.0.0.1:1", "--workers", 2), "cannot be combined"),
        (("--scheduler", "tcp://127.0.0.1:1", "--engine", "local"), "cannot be combined"),
    ):
        done = run("generate", *OPTIONS, "--out", "d", *options, check=None)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1 and message in done.stderr
    assert not (tmp_path / "d").exists()
    done = run("generate", *OPTIONS, "--out", "hf://org/name", check=2)
    assert "aegen publish" in done.stderr


def test_a_missing_package_names_the_extra(run, tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError\n")
    done = run("generate", *OPTIONS, "--out", "d", "--engine", "dask", check=2, env=os.environ | {"PYTHONPATH": "."})
    assert done.stderr == 'Error: this needs the package dask: in a clone of aegen, pip install ".[cluster]"\n'


def test_a_worker_of_another_version_is_refused():
    from aegen.engines.dask import _run, own_versions

    assert _run(divmod, (7, 2), own_versions()) == (3, 1)
    refused = _run(divmod, (7, 2), own_versions() | {"pyarrow": "1.0"})
    assert isinstance(refused.error, InvalidSpec) and "this machine 1.0" in str(refused.error)


def test_a_stripe_needs_only_its_part_of_the_layout():
    spec = Spec("aor", 100, 5, 300_000, rows_per_shard=10_000)
    layout = plan(spec, Local())
    for index in (0, 1, 17, stripes(spec, layout) - 1):
        part = part_of(layout, spec, index)
        assert len(part.before) < len(layout.before) / 4
        whole, mine = (list(stripe_batches(spec, one, index)) for one in (layout, part))
        assert [(*key, batch.to_pylist()) for *key, batch in whole] == [
            (*key, batch.to_pylist()) for *key, batch in mine
        ]


@given(st.integers(0, 3 * BUNDLE))
def test_bundles_hold_every_call_once_in_order_and_end_when_full(count):
    calls = [(number,) for number in range(count)]
    bundles = list(_bundles(calls))
    assert [call for bundle in bundles for call in bundle] == calls
    assert all(len(bundle) == BUNDLE for bundle in bundles[:-1]) and all(bundles)


def test_counting_covers_every_block_once():
    for blocks in (0, 1, 31, 5000):
        assert [block for first, last in runs(blocks) for block in range(first, last)] == list(range(blocks))


def test_order_is_kept_and_few_are_at_work():
    from concurrent.futures import Future

    at_work, most = [], 0

    def submit(call):
        nonlocal most
        future = Future()
        at_work.append((future, call))
        most = max(most, len(at_work))
        return future

    def ready(futures):
        future, call = at_work.pop()  # the newest first: the opposite of the order that is asked for
        future.set_result(call)

    assert list(in_order(submit, ready, results, ((n,) for n in range(100)), 4)) == [(n,) for n in range(100)]
    assert most <= 4


def test_urls_show_no_password():
    place = Remote("https://user:sec/ret@host/data")
    assert str(place) == repr(place) == "https://…@host/data"
    assert place / "a" == Remote("https://user:sec/ret@host/data/a")
