"""The pages say what is true: their commands run, and print what is shown."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import yaml
from mkdocs.exceptions import PluginError

import aegen
import trainer
from aegen import __version__
from aegen.card.header import PAPER_URL
from aegen.core.format import Refusal
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from cards import hooks
from tests import processes
from tests.hub import Hub
from tests.readme import README, RUN, alike, blocks, commands
from trainer.pages.games import ShownGame, ShownMove

ROOT = Path(__file__).parent.parent


# Pages for readers, each followed from nothing; the others tell how things are, or take hours.
FOLLOWED = [
    "README.md",
    *(f"cards/{name}.md" for name in ("quickstart", "concepts", "gallery")),
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("cards/howto/*.md")),
]
LONG = ("cards/howto/train.md", "cards/howto/sweeps.md")  # long trainings
EXAMPLES = sorted(path.relative_to(ROOT) for path in ROOT.glob("cards/examples/*.py"))


@pytest.mark.parametrize("how", ["in one process", pytest.param("literally", marks=pytest.mark.faults)])
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.faults) if page in LONG else page for page in FOLLOWED]
)
def test_a_page_can_be_followed_in_a_clean_folder(page, how, tmp_path):
    with Hub() as hub:
        environment = os.environ | hub.settings(tmp_path / "hf")
        done = processes.call("tests.readme", tmp_path, page, how, cwd=ROOT, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]


def test_figures_of_a_training_are_compared_with_those_shown():
    shown = "best 0.9800 in epoch 0\n...\n  1  POS_4 97%   [5] = 6\n"
    assert alike(shown, "best 0.9600 in epoch 0\nand more\nof it\n  1  POS_4 100%  [5] = 6\n")
    assert not alike(shown, "best 0.7000 in epoch 0\n  1  POS_4 97%   [5] = 6\n")
    assert not alike(shown, "best 0.9800 in epoch 0\n  1  POS_4 97%   [5] = 7\n")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_shown_and_runs(example, tmp_path):
    """Those that a page runs are run with the page."""
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in FOLLOWED)
    assert f"examples/{example.name}" in pages
    if not re.search(rf"^(?:\$ )?python {example}", pages, flags=re.MULTILINE):
        (tmp_path / "cards").symlink_to(ROOT / "cards")
        done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, done.stderr


def test_the_site_builds_strictly_and_has_every_page(tmp_path):
    """As ``make docs``: a link that leads nowhere, or a page that is not in ``mkdocs.yml``, would fail it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    html = {path.relative_to(tmp_path / "site").with_suffix(".md") for path in (tmp_path / "site").rglob("*.html")}
    ours = {path.relative_to(ROOT / "cards") for path in ROOT.glob("cards/**/*.md")}
    assert {path.with_stem("index") if path.stem == "README" else path for path in ours} <= html
    commands_page = (tmp_path / "site" / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "--split-by" in commands_page and "--auxiliary" in commands_page and "UNSET" not in commands_page
    assert re.search(r"<p>Examples?:</p>\s*<div[^>]*highlight", commands_page) and "Example: " not in commands_page
    python_page = (tmp_path / "site" / "reference" / "python.html").read_text(encoding="utf-8")
    assert (
        'class="gp">&gt;&gt;&gt; ' in python_page and "<blockquote>" not in python_page and ":class:" not in python_page
    )
    assert not list((tmp_path / "site").rglob("hooks*"))
    media = re.findall(r'data-md-color-media="([^"]*)"', python_page)
    assert media[0] == "(prefers-color-scheme)" and len(media) == 3  # colours follow the system, and can be chosen


def test_the_reference_has_every_public_name():
    page = (ROOT / "cards" / "reference" / "python.md").read_text(encoding="utf-8")
    for package in (aegen, trainer):
        documented = re.findall(rf"^::: {package.__name__}\.(\w+)$", page, flags=re.MULTILINE)
        assert {*documented} == {*package.__all__} - {"__version__"} and len({*documented}) == len(documented)


def test_links_of_the_site_are_those_of_the_repository():
    assert doctest.testmod(hooks).attempted and not doctest.testmod(hooks).failed


@pytest.mark.parametrize(
    ("html", "other"),
    [
        ('<script src="https://cdn.example/x.js">', True),
        ('<img alt="" src="//images.example/x.png">', True),
        ('<link rel="stylesheet" href="https://fonts.example/css">', True),
        ('<link rel="canonical" href="https://docs.example/"> <a href="https://arxiv.org"> <img src="x.png">', False),
    ],
)
def test_a_page_that_loads_from_another_host_is_refused(html, other):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
    with pytest.raises(PluginError, match="another host") if other else nullcontext():
        assert hooks.on_post_page(html, page) == html


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("trainer/*.md"), *ROOT.glob("cards/**/*.md")]
# A file or a folder of this repository, wherever a page names it; aegen/Aor-v0 is a game.
PATH = re.compile(r"(?<![\w/.-])(?:aegen|trainer|cards|tests)/[\w./-]*(?:\.\w+|/)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for path in PATH.findall(text):
        assert (ROOT / path).exists(), path


COMMAND = re.compile(r"^(?:\$ )?(?:aegen|trainer|make|pip|python3?|dask|torchrun|git) \S", flags=re.MULTILINE)
RENDERED = [*ROOT.glob("cards/a??/README.md")]  # cards of datasets, whose commands are tested where they are rendered


@pytest.mark.parametrize("page", sorted({*PAGES} - {*RENDERED}), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_is_run_or_the_page_says_why_not(page):
    name = str(page.relative_to(ROOT))
    for block in blocks(name):
        code = block.kind in RUN or COMMAND.search(block.text)
        assert not code or block.not_run or (block.kind in RUN and name in FOLLOWED), block.where


RUN_FOLDER = re.compile(r"runs/\w+")


def test_what_the_readme_shows_of_trainings_is_held_by_the_quickstart():
    """The page whose trainings are run in full on every occasion."""
    shown, held = (
        {command: text for one in blocks(name) if one.kind == "console" for command, text in commands(one.text)}
        for name in ("README.md", "cards/quickstart.md")
    )
    # Each page has runs of its own, so that one can follow both.
    ours, theirs = (
        {RUN_FOLDER.sub("runs/…", command): RUN_FOLDER.sub("runs/…", text) for command, text in one.items()}
        for one in ({key: text for key, text in shown.items() if key.startswith("trainer ")}, held)
    )
    assert len(ours) > 4 and ours.items() <= theirs.items()


OUTPUT = re.compile(r"(?:--out |--html |> |out=\"|out = \")([\w./-]+)")


def lines_of(page):
    """The commands of a page, and the lines of its Python."""
    for block in blocks(page):
        if block.kind == "console":
            yield from (command for command, _ in commands(block.text))
        elif block.kind in RUN and "--8<--" not in block.text:
            yield from block.text.splitlines()


OUTPUTS = [(path, line) for page in FOLLOWED for line in lines_of(page) for path in OUTPUT.findall(line)]


def test_pages_can_be_followed_one_after_the_other():
    """In one folder, what a page writes is in no other's way: only the same data is made twice, by the same command."""
    made: dict[str, str] = {}
    for path, line in OUTPUTS:
        trains = line.startswith(("trainer fit", "trainer practise")) or "trainer.fit(" in line
        if path in made and not re.search(rf"> {re.escape(path)}$|aegen\.build\(", line):  # a file is written anew
            assert made[path] == line and not trains, (path, line, made[path])
        made.setdefault(path, line)
    assert {"aes", "runs/aes", "runs/quickstart", "phrases"} <= made.keys()


def test_git_ignores_what_the_pages_write():
    paths = sorted({path for path, _ in OUTPUTS})
    command = ["git", "check-ignore", "--no-index", *(path if "." in path else f"{path}/" for path in paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 128:
        pytest.skip("not in a git repository")
    assert {*paths} - {path.rstrip("/") for path in done.stdout.splitlines()} == set()


def test_the_playgrounds_page_names_every_field_of_an_answer():
    page = (ROOT / "cards" / "playground.md").read_text(encoding="utf-8").split("## POST /edit")[1]
    rows = dict(re.findall(r"^\| (`[^|]*) \| (.*) \|$", page, flags=re.MULTILINE))
    assert {*re.findall(r"`(\w+)`", "".join(rows))} == {*ShownGame.__struct_fields__}
    assert {*ShownMove.__struct_fields__} <= {*re.findall(r"`(\w+)`", rows["`moves`"])}


def test_installing_comes_first_and_every_extra_is_named():
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", README, flags=re.MULTILINE | re.DOTALL))
    assert next(iter(sections)) == "Install"
    page = sections["Install"]
    steps = (". .venv/bin/activate", "pip install --no-deps torch", 'pip install -c constraints.txt -e ".[all]"')
    assert sorted(steps, key=page.index) == [*steps]
    for place, file in ((".", "pyproject.toml"), ("./trainer", "trainer/pyproject.toml")):
        extras = tomllib.loads((ROOT / file).read_text())["project"]["optional-dependencies"]
        table = page.split("| to | install |")[1]
        assert {*extras} - {"all", "dev", "docs"} == {*re.findall(rf'`"{re.escape(place)}\[(\w+)\]"`', table)}


def test_the_tree_in_the_readme_is_that_of_the_repository():
    tree = README.split("## The tree")[1].split("```")[1]
    for package in ("aegen", "trainer", "cards"):
        part = re.search(rf"^{package}/.*?(?=^\S|\Z)", tree.removeprefix("text\n"), flags=re.MULTILINE | re.DOTALL)
        assert part
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        if package == "cards":
            folders = {path.name for path in (ROOT / package).iterdir() if path.is_dir()} - {"__pycache__"}
        named = " ".join(line[2:].partition("  ")[0] for line in part[0].splitlines()[1:])
        assert {*re.findall(r"(\w+)/", named)} == folders


def test_make_has_the_targets_that_the_readme_names():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)[ `]", README)) | {"demo", "test", "lint", "clean"} <= set(targets)


def test_the_format_page_names_every_field(tmp_path):
    page = (ROOT / "cards" / "format.md").read_text(encoding="utf-8")
    pipeline.build(Spec("aec", 10, 4, 40), Folder(tmp_path), Local())
    fields = set()
    for path in tmp_path.glob("*/train-*.parquet"):
        fields |= set(json.loads(pq.read_metadata(path).metadata[b"aegen"]))
    table = page.split("under the key `aegen`")[1].split("## The environment")[0]
    assert fields == set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", table, flags=re.MULTILINE))))
    assert all(f"`{reason}`" in page for reason in Refusal)


def test_the_walk_names_what_is_there():
    """Each step of CONTRIBUTING.md is a file with that name in it, and no room is entered twice but for the shards."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = re.findall(r"`((?:aegen|trainer)/[\w/]+\.py)::(\w+)`", page)
    assert len(steps) > 20
    rooms: list[str] = []
    for path, name in steps:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if hasattr(node, "name")}, f"{path} has no {name}"
        room = str(Path(path).parent)
        if path != "aegen/dataset/shards.py" and rooms[-1:] != [room]:
            assert room not in rooms, f"the walk returns to {room} with {name}"
            rooms.append(room)


def test_the_paper_is_cited_as_on_the_cards():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    paper = cited["preferred-citation"]
    card = (ROOT / "aegen" / "card" / "templates" / "dataset.md").read_text(encoding="utf-8")
    assert " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"]) in card
    assert paper["title"] in card and paper["collection-title"] in card and paper["url"] == PAPER_URL
    assert cited["cff-version"] and cited["message"] and cited["authors"] == [{"name": "The aegen authors"}]


def test_both_packages_say_who_made_them_and_what_has_changed():
    ours, trainers = (
        tomllib.loads((ROOT / path).read_text())["project"] for path in ("pyproject.toml", "trainer/pyproject.toml")
    )
    assert ours["authors"] == trainers["authors"] == [{"name": "The aegen authors"}]
    assert ours["urls"] == trainers["urls"] == {"Paper": PAPER_URL}
    assert ours["classifiers"] == trainers["classifiers"] and ours["keywords"] and trainers["keywords"]
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__)}$|^## Unreleased", page, flags=re.MULTILINE)


def test_the_completion_in_the_page_is_real():
    page = (ROOT / "cards" / "howto" / "completion.md").read_text(encoding="utf-8")
    for variable, name in re.findall(r'"\$\((_\w+=bash_source) (\w+)\)"', page):
        key, _, value = variable.partition("=")
        command = [sys.executable, "-m", name]
        done = subprocess.run(command, env=os.environ | {key: value}, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0 and f"complete -o nosort -F _{name}_completion {name}" in done.stdout, done.stderr
