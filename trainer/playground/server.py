"""The playground's server: on loopback alone, until Ctrl-C."""

from __future__ import annotations

import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from trainer.core.errors import InvalidConfig
from trainer.playground.app import Limits, application
from trainer.playground.session import Session

HOST = "127.0.0.1"
CONNECTIONS = 64
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """One playground; its address is known before it runs."""

    def __init__(self, session: Session, port: int = 0, limits: Limits | None = None) -> None:
        self.socket = listen(port)
        self.port: int = self.socket.getsockname()[1]
        super().__init__(
            uvicorn.Config(
                application(session, self.port, limits),
                http="h11",
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=3,
            )
        )

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/"

    def serve_until_stopped(self) -> None:
        """Answer until ``should_exit`` is set, as a signal does within :meth:`stopped_by_signals`."""
        with self.socket:
            self.run([self.socket])

    @contextmanager
    def stopped_by_signals(self) -> Generator[None, None, None]:
        """Within the block Ctrl-C and SIGTERM end the server, from before its address is said."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as in the background
                signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing of uvicorn's own, which would raise the signal once more at the end."""
        yield


def listen(port: int) -> socket.socket:
    """A socket on loopback; 0 is any port that is free."""
    try:
        return socket.create_server((HOST, port), backlog=CONNECTIONS)
    except OSError as error:
        raise InvalidConfig(f"--port {port}: {error.strerror or error}; --port 0 takes any that is free") from error
