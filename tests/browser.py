"""A headless Chromium to look at pages with, spoken to over a pipe: no driver, no port, no package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 120  # seconds, on a machine that has other things to do
# Nothing of it may leave this machine.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
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

    def open(self, page: Path | str) -> None:
        """Load a file or an address and wait until everything in it is there."""
        where = page if isinstance(page, str) else page.resolve().as_uri()
        self.session = None
        target = self.call("Target.createTarget", url=where)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._wait(lambda: self._loaded(where), "the page does not load")

    def _wait(self, happened: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < until, otherwise
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

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        self._wait(lambda: bool(self.ask(expression)), f"never true: {expression}")

    def write(self, box: str, text: str) -> None:
        """Type a text into an element in place of what is there, as a person does."""
        self.ask(f"document.querySelector({json.dumps(box)}).select()")
        self.ask(f"document.querySelector({json.dumps(box)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press a key; its code is that of JavaScript."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def look(self, width: int, dark: bool = False, height: int = 800) -> None:
        """Show the page in a window of this size, in light or dark colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, whole: bool = False) -> bytes:
        """What one sees as a PNG, or the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])
