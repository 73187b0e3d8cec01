"""The engine of many machines: dask.distributed, with its own local workers or on an existing cluster."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import metadata
from multiprocessing import active_children
from pathlib import Path
from typing import Any, TypeVar

from aegen.core.errors import AegenError, Failed, InvalidSpec, MissingExtra
from aegen.core.interrupt import uninterrupted
from aegen.engines.engine import in_order

Result = TypeVar("Result")
CONNECT = 10  # seconds until a scheduler or its first worker must have answered
CLOSE = 5  # seconds for a cluster to close
CHECK = 1  # seconds between two checks that workers are left
LOST = 60  # seconds without any worker until the work is given up
SAME = ("aegen", "numpy", "pyarrow", "Levenshtein", "rapidfuzz")  # packages that decide the bytes
RETRIES = 2  # of a call that failed for an outside reason, such as the network
WORKER = "Dask Worker"  # prefix of the process names of local workers
LOGS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application", "asyncio")
ADDRESS = re.compile(r"(?:tcp|tls|ws|wss)://(?:[\w.-]+|\[[\w:.%]+\]):([0-9]{1,5})")


@dataclass
class Dask:
    """Worker processes (or threads) of this machine, or the workers of a scheduler.

    >>> with Dask(workers=1, processes=False) as engine:
    ...     list(engine.map(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """

    workers: int = 1
    scheduler: str | None = None
    processes: bool = True
    client: Any = field(default=None, repr=False)
    _cluster: Any = field(default=None, repr=False)
    _scratch: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.scheduler is not None:
            check_address(self.scheduler)

    @property
    def parallel(self) -> bool:
        return True

    def __enter__(self) -> Dask:
        dask, distributed = _packages()
        for name in LOGS:  # children too: dask sets their levels
            logging.getLogger(name).setLevel(logging.CRITICAL)  # our errors say what is wrong
        with uninterrupted():
            self._scratch = tempfile.TemporaryDirectory(prefix="aegen-", ignore_cleanup_errors=True)
        settings = {
            "distributed.comm.timeouts.connect": CONNECT,
            "distributed.admin.tick.limit": "1h",
            # Monitoring that nobody reads costs small machines a few percent.
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
            "distributed.worker.memory.monitor-interval": "1s",
            "distributed.worker.profile.enabled": False,
            "temporary-directory": self._scratch.name,
        }
        try:
            with dask.config.set(settings):
                self._start(distributed)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, distributed: Any) -> None:
        if self.scheduler is None:
            with uninterrupted():  # the thread that starts the workers is started here
                self._cluster = distributed.LocalCluster(
                    n_workers=0,
                    threads_per_worker=1,
                    processes=self.processes,
                    dashboard_address="127.0.0.1:0",  # any free port
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                    host="127.0.0.1" if self.processes else None,
                    # Also here, for workers that start after an interrupt has ended the settings.
                    local_directory=self._scratch.name if self._scratch else None,
                )
            self._cluster.scale(self.workers)
        # By address: an interrupted client that knows the cluster cancels the cluster's start, and then dask cannot
        # close it.
        address = self.scheduler or self._cluster.scheduler_address
        try:
            self.client = connect(distributed, address)
        except (OSError, TimeoutError):
            raise Failed(f"{address}: no scheduler answers") from None
        except (ValueError, TypeError) as error:
            raise InvalidSpec(f"--scheduler {address}: {error}") from None
        if self.scheduler is not None:
            check_installed(self.client, self.scheduler)
        else:
            with suppress(TimeoutError):  # then continue with those that did start
                self.client.wait_for_workers(self.workers, timeout=LOST)

    def __exit__(self, *_: object) -> None:
        with uninterrupted():  # half a close would leave workers and their files
            if self.client is not None:
                with suppress(Exception):
                    self.client.close(timeout=0.5)
            if self._cluster is not None:
                self._close_cluster()
            if self._scratch is not None:
                self._clean_up(Path(self._scratch.name))
                self._scratch.cleanup()

    def _clean_up(self, folder: Path) -> None:
        """Remove a folder; a worker that is just being killed may still create a file in it."""
        until = time.monotonic() + CLOSE
        while folder.exists() and time.monotonic() < until:
            self.stop()
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.01)

    def _close_cluster(self) -> None:
        """Kill local workers as they appear: dask alone would wait until half-started workers have started."""

        def close() -> None:
            with suppress(Exception):
                self._cluster.close(timeout=CLOSE)

        self._cluster.shutdown_on_close = False  # not again when Python exits
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        until = time.monotonic() + CLOSE
        while closing.is_alive() and time.monotonic() < until:
            self.stop()
            closing.join(0.01)

    def stop(self) -> None:
        """Kill local workers, which loses nothing: a file has its name only when it is complete."""
        for worker in self._cluster.workers.copy().values() if self._cluster else ():
            worker.auto_restart = False
        killed = [process for process in active_children() if process.name.startswith(WORKER)]
        for process in killed:
            process.kill()
        for process in killed:
            process.join(1)

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """The results in the order of the calls; a call whose worker is lost is rerun on another worker."""
        _, distributed = _packages()
        versions, news, working = own_versions(), threading.Event(), set[Any]()

        def done(future: Any) -> None:
            working.discard(future)
            news.set()

        def submit(call: tuple[Any, ...]) -> Any:
            future = self.client.submit(_run, function, call, versions, pure=False, retries=RETRIES)
            working.add(future)
            future.add_done_callback(done)
            return future

        try:
            for outcome in in_order(submit, partial(self._wait, news), self.client.gather, calls, 2 * self._threads()):
                if isinstance(outcome, Refused):
                    until = time.monotonic() + LOST
                    while self.scheduler and working and time.monotonic() < until:  # its workers cannot be stopped
                        news.wait(CHECK)
                        news.clear()
                    raise outcome.error
                yield outcome
        except KeyboardInterrupt:
            self.stop()
            raise
        except distributed.KilledWorker:
            raise Failed("several workers died on the same shard (out of memory?)") from None
        except (distributed.CancelledError, distributed.comm.CommClosedError):
            raise Failed("lost the connection to the scheduler; rerun the command to continue") from None

    def _threads(self) -> int:
        """How many calls the workers run at once."""
        with suppress(TimeoutError):
            self.client.wait_for_workers(1, timeout=CONNECT)
        threads = sum(self.client.nthreads().values())
        if not threads:
            raise Failed(f"{self.scheduler or 'dask'}: the scheduler has no workers")
        return int(threads)

    def _wait(self, news: threading.Event, futures: list[Any]) -> None:
        """Wait until one of the futures is done, or the cluster has been empty for too long."""
        alone_since: float | None = None
        while not any(future.done() for future in futures):
            if news.wait(CHECK):
                news.clear()
            elif self.client.status == "running" and self.client.nthreads():
                alone_since = None
            else:
                alone_since = alone_since or time.monotonic()
                if time.monotonic() - alone_since > LOST:
                    raise Failed(f"no worker for {LOST} seconds; rerun the command to continue")


def check_address(address: str) -> None:
    """Reject an invalid scheduler address before anything is started; a password in it is never shown.

    >>> check_address("tcp://me:secret@host:8786")
    Traceback (most recent call last):
    aegen.core.errors.InvalidSpec: --scheduler tcp://…@host:8786: expected for example tcp://host:8786
    """
    found = ADDRESS.fullmatch(address)
    if found and 1 <= int(found[1]) <= 65535:
        return
    shown = re.sub(r"^([a-z]+://)?.*@", r"\1…@", address, flags=re.DOTALL) or '"" (unset variable?)'
    raise InvalidSpec(f"--scheduler {shown}: expected for example tcp://host:8786")


def connect(distributed: Any, where: Any) -> Any:
    """A client; closed here if it does not connect, since otherwise it waits long and logs errors when deleted."""

    class Client(distributed.Client):  # type: ignore[misc]
        def __init__(self) -> None:
            try:
                super().__init__(where, timeout=CONNECT, set_as_default=False)
            except BaseException:
                with suppress(Exception):
                    self.close(timeout=0.5)
                raise

    return Client()


def check_installed(client: Any, address: str) -> None:
    """Reject a cluster without this package before it gets work on which its workers would die."""
    there = client.get_versions(packages=["aegen"])
    for name, found in {"the scheduler": there["scheduler"], **there["workers"]}.items():
        if found and found["packages"].get("aegen") is None:
            raise InvalidSpec(f"--scheduler {address}: {name} lacks aegen: install it there, from the same clone")


@dataclass(frozen=True)
class Refused:
    """An error that a retry would not fix."""

    error: AegenError


def _run(function: Callable[..., Result], call: tuple[Any, ...], versions: dict[str, str]) -> Result | Refused:
    """One call, on a worker."""
    for package, version in own_versions().items():
        if versions.get(package) != version:
            asked = versions.get(package, "none")
            return Refused(
                InvalidSpec(f"a worker has {package} {version}, this machine {asked}: install the same version")
            )
    try:
        return function(*call)
    except Failed:
        raise  # a storage that did not answer may answer the next time
    except AegenError as error:
        return Refused(error)


@lru_cache(maxsize=1)
def own_versions() -> dict[str, str]:
    """Versions of the packages that decide the bytes."""
    found = {}
    for package in SAME:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _packages() -> tuple[Any, Any]:
    os.environ.setdefault("DASK_DISTRIBUTED__DIAGNOSTICS__NVML", "False")
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingExtra.of("dask", "cluster") from None
    return dask, distributed
