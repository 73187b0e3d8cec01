"""What misled a new user: each of these was silent, or said too little."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from aegen.cli.common import colours
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.hub import Hub
from tests.pages import code_blocks, head_and_body

NAME = "aor-n10-l4-d60-s0"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    pipeline.build(Spec("aor", 10, 4, 60), Folder(place / "aor"), Local())
    return place


@pytest.fixture
def here(built, tmp_path):
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


def load_section(page):
    return code_blocks(head_and_body(page)[1].partition("## Load")[2].partition("## Reproduce")[0])[0]


def test_a_published_card_names_the_place_it_is_published_to(run, here):
    """Its code runs as it stands, where nothing is but the hub."""
    with Hub() as hub:
        environment = os.environ | hub.settings(here / "home")
        run("publish", "aor", "--to", "hf://org/sums", "--tag", "v1", env=environment)
        assert "nothing to do" in run("publish", "aor", "--to", "hf://org/sums", "--tag", "v1", env=environment).stdout
        page = hub.repositories["datasets", "org/sums"][-1]["README.md"].decode()
        loading, reading, training = load_section(page)
        assert 'load_dataset("org/sums", "expert")' in loading and NAME not in loading + reading + training
        assert training == "trainer fit hf://org/sums --out run\n"  # the default agent
        assert "`aegen verify hf://org/sums`" in page and "Made with aegen" in page
        (here / "elsewhere").mkdir()
        off = "import datasets\ndatasets.config.USE_PARQUET_EXPORT = False\n"  # it would ask a server for an export
        count = "assert rows.groupby(actions).size()['DONE DONE'] == 42\n"
        code = off + loading + reading + count
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=here / "elsewhere", env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        run("publish", "aor", "--to", "hf://org/sums", "--revision", "dev", env=environment)
        page = hub.repositories["datasets", "org/sums"][-1]["README.md"].decode()
        loading, reading, training = load_section(page)
        assert 'load_dataset("org/sums", "expert", revision="dev")' in loading
        assert "hf://datasets/org/sums@dev/expert/" in reading and "hf://org/sums@dev " in training


def test_a_card_is_rendered_for_a_repository(invoke, here):
    invoke("card", "aor", "--repo", "org/sums")
    assert 'load_dataset("org/sums", "expert")' in (here / "aor" / "README.md").read_text()
    assert "expected hf://org/name" in invoke("card", "aor", "--repo", "sums", check=2).stderr
    invoke("card", "aor")
    page = (here / "aor" / "README.md").read_text()
    assert f'load_dataset("{NAME}", "expert")' in page and f"trainer fit {NAME} --out run" in page


ESC = "\x1b[31mred\x1b[0m"


def test_a_text_cannot_command_the_terminal(invoke, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"source": f"a {ESC} b", "target": f"a {ESC} c\u202e"}))
    invoke("import", "a.jsonl", "--ratio", "100/0/0", "--out", "words")
    invoke("import", "a.jsonl", "--ratio", "100/0/0", "--tokens", "chars", "--out", "chars")
    for folder in ("words", "chars"):
        invoke("trajectories", folder)
        for options in ((), ("--config", "pairs")):
            shown = invoke("show", folder, *options).stdout
            assert r"\x1b" in shown and not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
    assert r"\x1b[31mred" in invoke("show", "words", "--config", "pairs").stdout


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colours()
    monkeypatch.setenv("TERM", "dumb")
    assert not colours()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours()


def test_a_terminal_without_a_character_gets_another(run, here):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    assert "?-?" in run("show", "aor", "--rows", 1, env=ascii_only).stdout
    latin = os.environ | {"PYTHONIOENCODING": "latin-1"}
    assert "2 ? N+1" in run("build", "--help", env=latin).stdout


def test_datasets_are_read_wherever_they_are(run, here):
    shown = [run(command, "aor").stdout for command in ("show", "stats")]
    with Hub() as hub:
        environment = os.environ | hub.settings(here / "home")
        hub.add_folder("datasets", "org/sums", here / "aor")
        assert [run(command, "hf://org/sums", env=environment).stdout for command in ("show", "stats")] == shown
        assert run("verify", "hf://org/sums@main", env=environment).stdout.startswith("hf://org/sums@main verified: ")
        assert "no such" in run("show", "hf://org/none", env=environment, check=2).stderr


class Files(SimpleHTTPRequestHandler):
    """Files, and parts of them: what Parquet needs of a web server."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        part = content[int(wanted[1]) : int(wanted[2]) + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {wanted[1]}-{int(wanted[1]) + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


def test_datasets_are_read_from_a_web_server(invoke, here):
    shown = [invoke(command, "aor").stdout for command in ("show", "stats")]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(here))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_port}/aor"
        assert [invoke(command, where).stdout for command in ("show", "stats")] == shown
        assert invoke("verify", where, "--workers", 1).stdout.startswith(f"{where} verified: ")
        server.shutdown()


def test_split_means_one_thing(invoke, tmp_path):
    """A split by its name; what makes the splits has names of its own, and older commands still work."""
    from aegen.cli import main

    named = {name: [option.opts for option in command.params] for name, command in main.commands.items()}
    assert [name for name, options in named.items() if ["--split"] in options] == ["show"]
    spec = ("aor", "--n", 10, "--l", 4, "--d", 60)
    invoke("generate", *spec, "--split-by", "paper", "--out", "new")
    invoke("generate", *spec, "--split", "paper", "--out", "old")
    assert "--split-by paper" in (tmp_path / "new" / "README.md").read_text()
    (tmp_path / "a.csv").write_text("source,target\nhte,the\nteh,the\n")
    invoke("import", "a.csv", "--ratio", "100/0/0", "--out", "a-new")
    invoke("import", "a.csv", "--split=100/0/0", "--out", "a-old")
    assert "--ratio 100/0/0" in (tmp_path / "a-new" / "README.md").read_text()
    for one, two in (("new", "old"), ("a-new", "a-old")):
        assert (tmp_path / one / "manifest.json").read_bytes() == (tmp_path / two / "manifest.json").read_bytes()


def completions(*words, incomplete=""):
    from aegen.cli import main

    found = ShellComplete(main, {}, "aegen", "_AEGEN_COMPLETE").get_completions([*words], incomplete)
    return [(item.type, item.value) for item in found]


def test_a_shell_completes_tasks_and_folders(run):
    assert completions("build", incomplete="ae") == [("plain", "aes"), ("plain", "aec")]
    for words in (("show",), ("verify",), ("build", "aor", "--out"), ("augment",)):
        assert completions(*words, incomplete="d") == [("dir", "d")], words
    assert completions("import", incomplete="w") == [("file", "w")]
    asked = {"_AEGEN_COMPLETE": "bash_complete", "COMP_WORDS": "aegen build a", "COMP_CWORD": "2"}
    assert run(env=os.environ | asked).stdout == "plain,aor\nplain,aes\nplain,aec\n"
