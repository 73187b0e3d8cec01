"""The playground as programs meet it, good ones and bad ones."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from tests.trainer.playground.conftest import PAIRS, ask, serving
from trainer.cli import main
from trainer.game.play import Decision
from trainer.playground.app import Limits
from trainer.playground.server import Server
from trainer.playground.session import Question, Session
from trainer.playground.start import play

TEXT, TARGET = PAIRS[1]
GOOD = json.dumps({"text": TEXT})


def error(answer):
    status, headers, body = answer
    assert headers["content-type"] == "application/json"
    return status, json.loads(body)["error"]


def test_a_text_is_edited_step_by_step(server):
    status, headers, body = ask(server, body=json.dumps({"text": TEXT, "target": TARGET}))
    game = json.loads(body)
    assert status == 200 and headers["content-type"] == "application/json"
    assert (game["source"], game["text"], game["ended"], game["right"]) == (TEXT, TARGET, "done", True)
    first, second, done = game["moves"]
    assert first["state"] == TEXT.split() and first["action"] == ["POS_0", "POS_4", "5"]
    assert (first["removed"], first["written"]) == ([0, 1, 2, 3, 4], [0])
    assert " ".join(second["state"]) == "5 - ( 4 - 3 ) = 4" and done["state"] == TARGET.split() == game["result"]
    assert [move["verdict"] for move in game["moves"]] == ["applied", "applied", "done"]
    assert all(0 < chance <= 1 for move in game["moves"] for chance in move["probabilities"])
    assert game["holds"] is True and all(move["holds"] for move in game["moves"])
    both = json.loads(ask(server, body='{"text": "5 = ( 2 + 3 )"}')[2])
    assert both["moves"][0]["holds"] is True  # parentheses on the right are as good


def test_a_result_that_is_not_the_wanted_one_is_wrong(server):
    assert json.loads(ask(server, body=json.dumps({"text": TEXT, "target": "4 + 1 = 5"}))[2])["right"] is False
    assert json.loads(ask(server, body=GOOD)[2])["right"] is None


def test_a_refused_action_is_told(session, monkeypatch):
    """An agent that points behind the end of every text."""
    contract = session.agent.contract
    beyond = [contract.action_ids[token] for token in (*[f"POS_{contract.max_state}"] * 2, "5")]

    def decide(states, lengths, edits=1):
        scores = states.new_zeros((len(states), 3, len(contract.actions))).float()
        scores[:, range(3), beyond] = 5.0
        return Decision.best(scores)

    monkeypatch.setattr(session.agent.policy, "decide", decide)
    game = session.edit(Question(TEXT))
    assert game.ended == "out-of-range" and [move.verdict for move in game.moves] == ["out-of-range"]
    assert game.result == game.moves[0].state == TEXT.split() and not game.moves[0].removed


def test_the_agent_is_described_with_examples(server):
    about = json.loads(ask(server, "GET", "/agent")[2])
    assert (about["model"], about["task"], about["arithmetic"]) == ("planner", "aes", True)
    assert about["examples"] == [{"text": source, "target": target} for source, target in PAIRS]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 400, "not valid JSON"),
        ("", 400, "not valid JSON"),
        ("[" * 50_000, 400, "expected object, got array"),
        (b'{"text": "\xff"}', 400, "not valid JSON"),
        ("[]", 400, "expected object"),
        ("{}", 400, "missing required field text"),
        ('{"text": 5}', 400, "field text: expected str"),
        ('{"text": "1", "colour": 1}', 400, "unknown field colour"),
        ('{"text": "61+6-(81-73)=59"}', 422, 'write one space between tokens: "61 + 6 - ( 81 - 73 ) = 59"'),
        ('{"text": "12345"}', 422, "unknown token '12345'"),
        (json.dumps({"text": "5 " * 999 + "5"}), 422, "1000 tokens: the agent reads at most"),
        (json.dumps({"text": "5" * (1 << 16)}), 413, "at most 65,536 bytes"),
    ],
)
def test_a_bad_question_is_answered_with_what_is_wrong(server, body, status, message):
    found, said = error(ask(server, body=body))
    assert found == status and message in said


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/edit", {}, 405),
        ("PUT", "/edit", {"Content-Type": "application/json"}, 405),
        ("OPTIONS", "/edit", {"Access-Control-Request-Method": "POST"}, 405),
        ("POST", "/", {}, 405),
        ("GET", "/etc/passwd", {}, 404),
        ("GET", "/../static/index.html", {}, 404),
        ("POST", "/edit", {"Content-Type": "text/plain"}, 415),
        ("POST", "/edit", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/edit", {"Host": "evil.example"}, 403),
        ("GET", "/agent", {"Host": "evil.example:80"}, 403),
        ("GET", "/", {"Host": "127.0.0.1:1"}, 403),
        ("POST", "/edit", {"Origin": "http://evil.example"}, 403),
        ("POST", "/edit", {"Origin": "null"}, 403),
        ("POST", "/edit", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", "/edit", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", "/edit", {"Content-Length": "99999999999"}, 413),
    ],
)
def test_a_request_of_another_kind_or_site_is_refused(server, method, path, headers, status):
    assert error(ask(server, method, path, GOOD if method == "POST" else None, headers))[0] == status


def test_our_own_page_and_both_names_of_this_machine_are_answered(server):
    for name in ("127.0.0.1", "localhost"):
        own = {
            "Host": f"{name}:{server.port}",
            "Origin": f"http://{name}:{server.port}",
            "Sec-Fetch-Site": "same-origin",
        }
        assert ask(server, body=GOOD, headers=own)[0] == 200


@pytest.mark.parametrize("path", ["/", "/agent", "/stepper.js", "/nothing"])
def test_every_answer_binds_the_page(server, path):
    headers = ask(server, "GET", path)[1]
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and "unsafe" not in headers["content-security-policy"]
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert headers["x-content-type-options"] == "nosniff" and headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_body_that_hides_its_length_is_cut_off(server):
    body = b"11000\r\n" + b"x" * ((1 << 16) + 1)  # the first of several chunks, and not all of it
    with sending(server, "Transfer-Encoding: chunked", body) as line:
        assert line.recv(100).startswith(b"HTTP/1.1 413")


@contextmanager
def sending(server, header, body):
    """A question of which only a part is sent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        head = f"POST /edit HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n{header}"
        line.sendall(f"{head}\r\n\r\n".encode() + body)
        yield line


def test_too_many_requests_are_refused(session):
    with serving(session, Limits(each_second=0.001, burst=2)) as server:
        assert [ask(server, body=GOOD)[0] for _ in range(4)] == [200, 200, 429, 429]
        assert ask(server, "GET", "/")[0] == 200  # the page costs nothing


def test_one_game_is_played_at_a_time_and_few_wait(session):
    class Slow(Session):
        def edit(self, question):
            entered.release()
            assert goes_on.wait(60)
            return super().edit(question)

    entered, goes_on, found = threading.Semaphore(0), threading.Event(), []
    with serving(Slow(session.agent, []), Limits(waiting=2)) as server:
        threads = [threading.Thread(target=lambda: found.append(ask(server, body=GOOD)[0])) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert entered.acquire(timeout=60)
        while (refused := error(ask(server, body="{")))[0] == 400:  # until the second is waiting too
            time.sleep(0.01)
        assert refused == (503, "2 requests are waiting already")
        assert not entered.acquire(timeout=0.2)  # the second is not played before the first is over
        goes_on.set()
        for thread in threads:
            thread.join(60)
    assert found == [200, 200]


def test_a_question_that_never_ends_is_given_up(session):
    with serving(session, Limits(seconds=0.2)) as server, sending(server, "Content-Length: 100", b"{") as line:
        assert line.recv(100).startswith(b"HTTP/1.1 408")


def test_only_this_machine_is_answered(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_wrong_use_gets_one_line(run, server, tmp_path, monkeypatch):
    def call(*arguments):
        done = CliRunner().invoke(main, ["play", *map(str, arguments)])
        assert done.exit_code == 2 and len(done.stderr.splitlines()) == 1
        return done.stderr

    assert "in use" in call(run, "--port", server.port)
    assert "no such run folder" in call(tmp_path / "none")
    assert "none" in call(run, "--data", tmp_path / "none")
    monkeypatch.delitem(sys.modules, "trainer.playground.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert 'this needs the package uvicorn: in a clone of aegen, pip install "./trainer[play]"' in call(run)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_it_cleanly(run):
    command = [sys.executable, "-m", "trainer", "play", str(run), "--device", "cpu", "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert re.fullmatch(r"planner on aes: http://127\.0\.0\.1:\d+/ \(Ctrl-C to stop\)\n", line)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said == ("stopped\n", "") and process.returncode == 0


def test_an_agent_can_be_tried_without_its_data(run, monkeypatch, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (run.parent / "aes").rename(run.parent / "gone")
    monkeypatch.setattr(Server, "serve_until_stopped", lambda server: server.socket.close())
    said = []
    try:
        play(str(tmp_path / "run"), say=said.append)
    finally:
        (run.parent / "gone").rename(run.parent / "aes")
    assert said[0].startswith("no examples: ") and "http://127.0.0.1:" in said[1] and said[2] == "stopped"
