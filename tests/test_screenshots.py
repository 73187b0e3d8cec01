"""The pictures of the docs' pages can be taken: here of a demo in miniature."""

from __future__ import annotations

import pytest
from PIL import Image

from tests import screenshots
from tests.browser import find_browser


@pytest.mark.faults
def test_every_picture_of_the_pages_is_taken_and_shows_something(invoke, tmp_path):
    if not find_browser():
        pytest.skip("no Chromium on this machine (apt-get install chromium, or AEGEN_BROWSER=/path/to/one)")
    invoke("build", "aes", "--n", 100, "--l", 5, "--d", 1000, "--out", "demo/aes")
    fit = ("fit", "demo/aes", "--model", "planner", "--updates", 20, "--device", "cpu", "--out", "demo/runs/aes")
    for command in (fit, ("evaluate", fit[-1]), ("report", "demo/runs", "--out", "demo/report")):
        invoke(*command, module="trainer")
    screenshots.main("demo", tmp_path / "pictures")
    taken = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert taken == {path.name for path in screenshots.OUT.iterdir()}
    for name in taken:
        with Image.open(tmp_path / "pictures" / name) as picture, Image.open(screenshots.OUT / name) as shown:
            assert picture.size == shown.size
            plain = max(count for count, _ in picture.convert("RGB").getcolors(1 << 20))
            assert plain < 0.95 * picture.width * picture.height, f"{name} is empty"
