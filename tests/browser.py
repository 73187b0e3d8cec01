"""A headless Chromium to look at pages with, spoken to over a pipe: no driver, no port, no package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 120  # seconds, on a machine that has other things to do
# Nothing of it may leave this machine.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip


def find_browser() -> str | None:
    """A Chromium on this machine; AEGEN_BROWSER names another."""
    return os.environ.get("AEGEN_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Refused(Exception):
    """The browser cannot answer: while one page makes way for another, for example."""


class Browser:
    """One page in one browser, gone at the end."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.answers, theirs_out = os.pipe()
        # The pipe is expected at 3 and 4; both ends move out of the way first.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        move = f"import os, sys; os.dup2({ends[0]}, 3); os.dup2({ends[1]}, 4); os.execvp(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", move, program, *FLAGS, f"--user-data-dir={self.profile.name}"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self.waiting, self.number, self.session = b"", 0, None

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            with suppress(AssertionError, Refused, OSError, subprocess.TimeoutExpired):  # it goes, this way or that
                self.call("Browser.close")
                self.process.wait(20)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, 9)
                self.process.wait()
            os.close(self.out)
            os.close(self.answers)
            self.profile.cleanup()

    def call(self, method: str, **parameters: object) -> dict:
        """One request, and its answer; events in between are of no interest."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.waiting:
                assert select.select([self.answers], [], [], PATIENCE)[0], f"no answer to {method}"
                part = os.read(self.answers, 1 << 16)
                assert part, "the browser is gone"
                self.waiting += part
            text, self.waiting = self.waiting.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until everything in it is there."""
        where = path.resolve().as_uri()
        target = self.call("Target.createTarget", url=where)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        until = time.monotonic() + PATIENCE
        while not self._loaded(where):
            assert time.monotonic() < until, "the page does not load"
            time.sleep(0.05)

    def _loaded(self, where: str) -> bool:
        # Both in one question: between two, the empty page that every tab begins with can make way for ours.
        try:
            return self.ask(f"location.href === {json.dumps(where)} && document.readyState === 'complete'") is True
        except Refused:
            return False

    def ask(self, expression: str) -> object:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")
