"""A small agent that knows three equations by heart, and servers that show it."""

import threading
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from tests.trainer.reference import write_dataset
from tests.trainer.runs import QUIET
from trainer import Agent, fit
from trainer.playground.server import Server
from trainer.playground.session import Session, find_examples

PAIRS = [
    ("61 + 6 - ( 81 - 73 ) = 59", "61 + 6 - 8 = 59"),
    ("( 2 + 3 ) - ( 4 - 3 ) = 4", "5 - 1 = 4"),
    ("7 - ( 9 - 4 ) = 2", "7 - 5 = 2"),
]


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    """A run folder."""
    place = tmp_path_factory.mktemp("playground")
    pairs = [(tuple(source.split()), tuple(target.split())) for source, target in PAIRS]
    write_dataset(place / "aes", "span", dict.fromkeys(("train", "validation", "test"), pairs), task="aes")
    fit(place / "aes", model="planner", updates=60, out=place / "run", **QUIET)
    return place / "run"


@pytest.fixture(scope="package")
def session(run):
    agent = Agent.from_pretrained(run)
    return Session(agent, find_examples(agent))


@contextmanager
def serving(session, limits=None):
    """A server in a thread."""
    server = Server(session, limits=limits)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="package")
def server(session):
    with serving(session) as running:
        yield running


def ask(server, method="POST", path="/edit", body=None, headers=None):
    """One request: the status, the headers and the body of the answer."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    usual = {"Content-Type": "application/json"} if method == "POST" else {}
    try:
        connection.request(method, path, body, usual | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()
