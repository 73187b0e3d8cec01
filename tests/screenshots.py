"""The pictures of the docs' pages, taken of what ``make demo`` made: ``python -m tests.screenshots [demo [FOLDER]]``.

``make screenshots`` runs the demo first. A Chromium is needed (see ``tests/browser.py``).
"""

from __future__ import annotations

import io
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner
from PIL import Image

from aegen.cli import main as aegen
from tests.browser import Browser, find_browser
from trainer.agents.agent import Agent
from trainer.playground.server import Server
from trainer.playground.session import Session, find_examples

OUT = Path(__file__).parent.parent / "cards" / "screenshots"
TEXT = "44 + 95 / ( 2 + 3 ) - ( 35 - 8 ) = 36"
WIDE, PHONE = (1000, 640), (400, 720)


def take(browser: Browser, path: Path, size: tuple[int, int], dark: bool = False) -> None:
    """A picture of what one sees in a window of this size, with a palette, so that it is small."""
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.look(size[0], dark, size[1])
    browser.call("Runtime.evaluate", expression="new Promise(requestAnimationFrame)", awaitPromise=True)
    picture = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    path.parent.mkdir(exist_ok=True)
    picture.quantize(256).save(path, optimize=True)
    print(f"{path}  {path.stat().st_size:,} bytes")


@contextmanager
def serving(session: Session) -> Iterator[Server]:
    """A playground in a thread."""
    server = Server(session)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join()


def report(browser: Browser, demo: Path, out: Path) -> None:
    """The report of the demo."""
    browser.open(demo / "report" / "report.html")
    take(browser, out / "report.png", (1000, 900))
    take(browser, out / "report-dark.png", PHONE, dark=True)


def playground(browser: Browser, demo: Path, out: Path) -> None:
    """The playground with the agent of the demo."""
    agent = Agent.from_pretrained(next((demo / "runs" / "aes").rglob("config.json")).parent)
    with serving(Session(agent, find_examples(agent, str(demo / "aes")))) as server:
        browser.open(server.address)
        browser.wait_for("document.querySelectorAll('#list button').length")
        browser.look(*WIDE[:1])
        browser.write("#text", TEXT)
        browser.press("Enter", 13)
        browser.wait_for("!document.getElementById('game').hidden")
        browser.ask("document.querySelector('.forward').click()")
        browser.ask("document.activeElement.blur()")
        take(browser, out / "playground.png", WIDE)
        take(browser, out / "playground-dark.png", PHONE, dark=True)


def dataset(browser: Browser, demo: Path, out: Path) -> None:
    """The data of the demo."""
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "aes.html"
        done = CliRunner().invoke(aegen, ["show", str(demo / "aes"), "--html", str(page)])
        assert done.exit_code == 0, done.output
        browser.open(page)
        take(browser, out / "dataset.png", WIDE)


def main(demo: str | Path = "demo", out: str | Path = OUT) -> None:
    """Take all pictures."""
    demo, out, program = Path(demo), Path(out), find_browser()
    if not program:
        sys.exit("no Chromium on this machine (apt-get install chromium, or AEGEN_BROWSER=/path/to/one)")
    if not (demo / "report" / "report.html").exists():
        sys.exit(f"{demo}: no report; run make demo first")
    with Browser(program) as browser:
        for page in (report, playground, dataset):
            page(browser, demo, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
