"""Load an agent and show it on a page."""

from __future__ import annotations

from collections.abc import Callable

from trainer.agents.agent import Agent
from trainer.core.errors import MissingExtra, TrainerError
from trainer.playground.session import Session, find_examples


def play(
    run: str, *, port: int = 0, data: str | None = None, device: str = "cpu", say: Callable[[str], None] = print
) -> None:
    """Serve the playground of a run folder or a hub id on 127.0.0.1 until Ctrl-C; its address is said first."""
    try:
        from trainer.playground.server import Server
    except ModuleNotFoundError as error:
        if error.name in ("starlette", "uvicorn", "anyio"):
            raise MissingExtra(error.name, "play") from None
        raise
    agent = Agent.from_pretrained(run, device)
    try:
        examples = find_examples(agent, data)
    except TrainerError as error:
        if data:
            raise
        say(f"no examples: {error}")  # an agent can be tried without the data that it learned from
        examples = []
    server = Server(Session(agent, examples), port)
    with server.stopped_by_signals():
        say(f"{agent.description.config.model} on {agent.contract.task}: {server.address} (Ctrl-C to stop)")
        server.serve_until_stopped()
    say("stopped")
