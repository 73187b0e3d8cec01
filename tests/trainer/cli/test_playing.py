"""`trainer evaluate --m2` and `trainer edit` as a filter, on an agent of words."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.trainer.cli.test_commands import FIT, call, refuse
from tests.trainer.reference import write_dataset
from trainer.agents.agent import Agent
from trainer.agents.lines import edit_all, read_lines
from trainer.core.format import tokenize
from trainer.data.m2 import parse_m2

WORDS = [
    "a", "\u0065\u0301te", "👩‍👩‍👧", "שלום", "مرحبا",
    "POS_3", "DONE", "INSERT", "\\e", "", "\tx", "||", "x\u202ey",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An agent that has learned to write ``the`` for ``teh`` at the beginning, and to leave all else as it is."""
    root = tmp_path_factory.mktemp("text")
    texts = [f"{first} {one} {two}" for one in WORDS for two in WORDS for first in ("teh", "a")]
    pairs = [(tokenize(text, "words"), tokenize(text.replace("teh ", "the ", 1), "words")) for text in texts]
    splits = {"train": pairs, "validation": pairs[:20], "test": pairs[:40]}
    data = write_dataset(root / "data", "edit", splits, arithmetic=False)
    settings = ["--model", "nar-star", "--updates", 120, "--learning-rate", 0.02]
    call("fit", data, *FIT, *settings, "--out", root / "run")
    return root / "run"


def lines(result) -> list[bytes]:
    return result.stdout_bytes.splitlines(keepends=True)


def test_lines_in_lines_out(run):
    """In order, each with its own ending, and byte for byte where nothing was edited."""
    given = [
        b"teh a a\r\n",
        b"\n",
        "a 👩‍👩‍👧 \u0065\u0301te\n".encode(),
        "a שלום مرحبا\r\n".encode(),
        b"a POS_3 DONE\n",
        b"a  \tx\n",
        b"a \\e x\xe2\x80\xaey\n",
        b"teh INSERT ||\n",
        b"a a a",
    ]
    result = call("edit", run, stdin=b"".join(given))
    found = lines(result)
    assert found == [given[0].replace(b"teh", b"the"), *given[1:7], b"the INSERT ||\n", given[8]]
    assert not result.stderr


@pytest.mark.parametrize(
    "line,problem",
    [
        (b"a pizza a\n", "unknown token 'pizza'"),
        (b"a \xff a\n", "not valid Unicode"),
        (b"a " * 99_999 + b"a\r\n", "100000 tokens: the agent reads at most 3"),
        (b"\x00\n", "unknown token"),
    ],
)
def test_a_bad_line_is_passed_on_and_reported(run, line, problem):
    result = call("edit", run, stdin=b"teh a a\n" + line + b"teh a a", code=1)
    assert lines(result) == [b"the a a\n", line, b"the a a"]
    assert result.stderr.startswith(f"Error: line 2: {problem}") and len(result.stderr.splitlines()) == 1
    record = json.loads(call("edit", run, "--json", stdin=line, code=1).stdout)
    assert record["ended"] == "unreadable" and record["text"] == record["source"]


def test_the_batch_changes_nothing(run):
    given = "".join(f"teh {one} {two}\n" for one in WORDS[:4] for two in ("a", "pizza"))
    found = {size: call("edit", run, "--batch", size, stdin=given, code=1).stdout_bytes for size in (1, 3, 4, 1000)}
    assert len(set(found.values())) == 1 and found[1].count(b"the") == 4


def test_nothing_is_read_ahead_of_the_batch(run):
    """So memory is flat, however many lines come, and a line that is typed is answered."""
    agent, taken = Agent.from_pretrained(run), []

    def endless():
        while True:
            taken.append(1)
            yield "teh a a"

    edited = edit_all(agent, endless(), batch=5, moves=False)
    for number in range(1, 21):
        assert next(edited).text == "the a a"
        assert len(taken) == -(-number // 5) * 5
    edited = edit_all(agent, endless(), batch=1)
    assert next(edited).game.moves and len(taken) == 21


def test_memory_bounds_the_batch_too(run, monkeypatch):
    monkeypatch.setattr("trainer.agents.lines.TOKENS", 7)  # two texts of three tokens
    agent, sizes = Agent.from_pretrained(run), []
    plain = agent.play
    monkeypatch.setattr(agent, "play", lambda texts, *how: sizes.append(len(texts)) or plain(texts, *how))
    assert len(list(edit_all(agent, ["teh a a"] * 5))) == 5
    assert sizes == [2, 2, 1]


def test_json_and_m2(run):
    given = "teh a a\na a a\n"
    records = [json.loads(line) for line in call("edit", run, "--json", stdin=given).stdout.splitlines()]
    assert [record["text"] for record in records] == ["the a a", "a a a"]
    assert records[0]["moves"][0]["action"] == ["REPLACE", "POS_0", "the"]
    one, two = parse_m2(call("edit", run, "--m2", stdin=given).stdout.splitlines())
    assert [(edit.start, edit.stop, edit.corrections) for edit in one.annotators[0]] == [(0, 1, (("the",),))]
    assert two.annotators == ((),)
    assert json.loads(call("edit", run, "--json", stdin="\n").stdout)["ended"] == "empty"
    assert call("edit", run, "").stdout.split() == ["=", "(nothing", "to", "edit)"]
    assert call("edit", run, "--m2", "teh a a").stdout.startswith("S teh a a\nA 0 1|||replace|||the|||")
    assert "choose one" in refuse("edit", run, "--m2", "--json", "a")


def test_what_m2_and_lines_cannot_hold(run):
    edited = next(edit_all(Agent.from_pretrained(run), ["teh a a"]))
    other = type(edited)(edited.source, "|| a a", edited.game)
    assert other.as_m2.problem and other.as_m2.text == edited.source and edited.as_m2 is edited
    broken = type(edited)(edited.source, "a\nb", edited.game)
    assert broken.on_one_line.text == edited.source and broken.on_one_line.problem


def test_a_line_without_end_is_passed_on_in_pieces(monkeypatch):
    monkeypatch.setattr("trainer.agents.lines.MAX_LINE", 4)
    assert list(read_lines(io.BytesIO(b"abcdef\ngh"))) == [("abcd", ""), ("ef", "\n"), ("gh", "")]


def test_a_bar_on_a_terminal_alone(run, monkeypatch):
    from trainer.core import progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("TERM", "xterm")
    with progress.counter("lines") as advance:
        advance(3)
    assert "3 lines" in shown.getvalue()
    monkeypatch.setattr(sys, "stdout", Terminal())  # the lines would be drawn over
    before = shown.getvalue()
    with progress.counter("lines") as advance:
        advance(3)
    assert shown.getvalue() == before


M2 = """\
S teh a a
A 0 1|||R:SPELL|||the|||REQUIRED|||-NONE-|||0
A 0 1|||R:SPELL|||The|||REQUIRED|||-NONE-|||1

S a pizza a
A 1 2|||R:NOUN|||pie|||REQUIRED|||-NONE-|||0

S a a a
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0
"""


def test_evaluate_against_annotators(run, tmp_path):
    (tmp_path / "dev.m2").write_text(M2)
    found = json.loads(call("evaluate", run, "--m2", tmp_path / "dev.m2", "--json").stdout)
    assert (found["correct"], found["proposed"], found["gold"]) == (1, 1, 2)
    assert (found["precision"], found["recall"], found["f0.5"]) == (100.0, 50.0, 83.33)
    assert found["sentences"] == 3 and found["unreadable"] == 1
    assert found["types"]["R:SPELL"]["recall"] == 100.0
    shown = call("evaluate", run, "--m2", tmp_path / "dev.m2").stdout
    assert "F0.5" in shown and "R:NOUN" in shown and "unreadable" in shown
    one = json.loads(call("evaluate", run, "--m2", tmp_path / "dev.m2", "--limit", 1, "--json").stdout)
    assert one["sentences"] == 1 and one["f0.5"] == 100.0
    assert "--split" in refuse("evaluate", run, "--m2", tmp_path / "dev.m2", "--split", "test")
    assert "No such file" in refuse("evaluate", run, "--m2", tmp_path / "none.m2")


def test_evaluate_against_the_edits_of_the_data(run):
    found = json.loads(call("evaluate", run, "--json").stdout)
    assert found["sequence_accuracy"] == 100.0
    assert found["edits"]["f0.5"] == 100.0 and found["edits"]["gold"] == 20
    assert json.loads((run / "evaluation-test.json").read_text())["edits"] == found["edits"]
    assert "F0.5" in call("evaluate", run).stdout
