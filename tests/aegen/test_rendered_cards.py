"""The cards of the paper's benchmarks in cards/ are what `aegen card` renders today.

To render them again: python -m tests.aegen.test_rendered_cards
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aegen import pipeline
from aegen.card import CARD
from aegen.collection import collection
from aegen.engine import Local
from aegen.folder import Folder
from aegen.spec import Spec
from aegen.verify import verify

CARDS = Path(__file__).parents[2] / "cards"
BENCHMARKS = {"aor": Spec("aor", 10, 5, 10_000), "aes": Spec("aes", 100, 5, 10_000), "aec": Spec("aec", 10, 5, 10_000)}


def build(place: Path) -> dict[str, bytes]:
    """The benchmarks below ``place``, and every page of cards/ that is rendered, by name."""
    folders = {task: Folder(place / task) for task in BENCHMARKS}
    for task, spec in BENCHMARKS.items():
        pipeline.build(spec, folders[task], Local())
    pages = {f"{task}/{path.name}": path.read_bytes() for task in BENCHMARKS for path in folders[task].path.glob("*.*")}
    pages = {name: page for name, page in pages.items() if name.endswith((CARD, ".png"))}
    return pages | {"collection.md": collection(list(folders.values()), f"{{name}}/{CARD}").encode()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("benchmarks")
    return place, build(place)


def test_the_rendered_cards_are_current(built):
    _, pages = built
    again = "python -m tests.aegen.test_rendered_cards"
    there = {str(path.relative_to(CARDS)) for task in BENCHMARKS for path in (CARDS / task).iterdir()}
    assert there | {"collection.md"} == set(pages), again
    for name, page in pages.items():
        assert (CARDS / name).read_bytes() == page, f"cards/{name} is not current: {again}"


def test_the_benchmarks_are_sound(built):
    place, _ = built
    for task in BENCHMARKS:
        verify(Folder(place / task), Local())


def test_the_command_makes_the_same_page(built, run, tmp_path):
    place, pages = built
    run("collection", *(place / task for task in BENCHMARKS), "--link", f"{{name}}/{CARD}", "--out", "page.md")
    assert (tmp_path / "page.md").read_bytes() == pages["collection.md"]
    assert "(https://huggingface.co/datasets/org/aor)" in collection([Folder(place / "aor")], "hf://org/{name}")
    assert "expected {name}" in run("collection", place / "aor", "--link", "x", "--out", "p", check=2).stderr


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, page in build(Path(folder)).items():
            (CARDS / name).parent.mkdir(exist_ok=True)
            (CARDS / name).write_bytes(page)
