"""The playground's answers over HTTP: the page and its files, ``GET /agent`` and ``POST /edit``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from trainer.core.errors import BadData, InvalidText
from trainer.core.records import decode
from trainer.pages.games import asset
from trainer.playground.guard import Guard, Rate, refusal
from trainer.playground.session import Question, Session

JSON = "application/json"
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
SHARED = ("page.css", "stepper.css", "stepper.js")
OWN = ("playground.css", "playground.js")


@dataclass(frozen=True)
class Limits:
    """What one may ask at most."""

    body: int = 1 << 16  # bytes of a question
    seconds: float = 10.0  # to send it
    each_second: float = 20.0  # questions
    burst: int = 40
    waiting: int = 8  # questions at the same time; games are played one after the other


def application(session: Session, port: int, limits: Limits | None = None) -> Starlette:
    """The whole playground, for requests to this port of 127.0.0.1."""
    return Starlette(
        routes=[
            Route("/", static("index.html"), methods=["GET"]),
            *(Route(f"/{name}", static(name), methods=["GET"]) for name in (*SHARED, *OWN)),
            Route("/agent", constant(msgspec.json.encode(session.about), JSON), methods=["GET"]),
            Route("/edit", Editor(session, limits or Limits()).answer, methods=["POST"]),
        ],
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={HTTPException: refused},
    )


def constant(body: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """An answer that is always the same."""

    async def answer(request: Request) -> Response:
        return Response(body, media_type=kind)

    return answer


def static(name: str) -> Callable[[Request], Awaitable[Response]]:
    """The answer with a file of the page."""
    folder = files("trainer.playground") / "static"
    text = asset(name) if name in SHARED else (folder / name).read_text(encoding="utf-8")
    return constant(text.encode(), KINDS[name.rpartition(".")[2]])


async def refused(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (404, 405), as JSON like all others."""
    assert isinstance(error, HTTPException)
    return refusal(
        error.status_code, error.detail, **{k.replace("-", "_"): v for k, v in (error.headers or {}).items()}
    )


class Editor:
    """Answers ``POST /edit``: one game after the other, each in a thread, so that the page stays awake."""

    def __init__(self, session: Session, limits: Limits) -> None:
        self.session, self.limits = session, limits
        self.rate = Rate(limits.each_second, limits.burst)
        self.one_by_one: CapacityLimiter | None = None  # belongs to the event loop, which is not there yet
        self.waiting = 0

    async def answer(self, request: Request) -> Response:
        """A game, or why there is none."""
        if not self.rate.allows():
            return refusal(429, f"at most {self.limits.each_second:g} requests a second", Retry_After="1")
        if self.waiting >= self.limits.waiting:
            return refusal(503, f"{self.waiting} requests are waiting already", Retry_After="1")
        self.waiting += 1
        try:
            return await self._answer(request)
        finally:
            self.waiting -= 1

    async def _answer(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            return refusal(415, f"expected Content-Type: {JSON}")
        try:
            async with asyncio.timeout(self.limits.seconds):
                raw = await self._read(request)
        except TimeoutError:
            return refusal(408, f"the request took more than {self.limits.seconds:g} seconds", Connection="close")
        except ClientDisconnect:
            return refusal(400, "the request has no end")
        if raw is None:
            return refusal(413, f"at most {self.limits.body:,} bytes", Connection="close")
        try:
            question = decode(raw, Question, "request")
        except BadData as error:
            return refusal(400, str(error))
        self.one_by_one = self.one_by_one or CapacityLimiter(1)
        try:
            game = await to_thread.run_sync(self.session.edit, question, limiter=self.one_by_one)
        except InvalidText as error:
            return refusal(422, str(error))
        return Response(msgspec.json.encode(game), media_type=JSON)

    async def _read(self, request: Request) -> bytes | None:
        """The body; None if it is too long, of which no more is read than that."""
        declared = request.headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > self.limits.body:
            return None
        raw = b""
        async for part in request.stream():
            raw += part
            if len(raw) > self.limits.body:
                return None
        return raw
