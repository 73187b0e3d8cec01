"""What stands before every answer: no other site may ask, and no page of ours may load or send anything elsewhere.

A page of another site can make a browser ask a server of this machine, and a name that it owns can resolve to
127.0.0.1 (DNS rebinding). Such requests carry the other site's ``Host`` or ``Origin``, and are refused.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def refusal(status: int, why: str, **headers: str) -> Response:
    """An answer that says why there is no other."""
    body = msgspec.json.encode({"error": why})
    return Response(body, status, {name.replace("_", "-"): text for name, text in headers.items()}, "application/json")


@dataclass
class Rate:
    """At most ``burst`` requests at once, and ``each_second`` over time."""

    each_second: float
    burst: int
    left: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.left, self.at = float(self.burst), time.monotonic()

    def allows(self) -> bool:
        """Whether there is one more request to give away, which is then gone."""
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self.at) * self.each_second)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Guard:
    """Refuses requests of other sites, and adds the headers that bind the page."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no websockets here
            raise RuntimeError(f"unexpected connection: {scope['type']}")

        async def bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        why = self.foreign(scope["method"], Headers(scope=scope))
        await (refusal(403, why) if why else self.app)(scope, receive, bound)

    def foreign(self, method: str, headers: Headers) -> str:
        """Why a request comes from elsewhere; empty for one of our own page, or of a program."""
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if host not in self.hosts:
            return f"unknown host {host[:100]!r}: open http://127.0.0.1 with the port of the command"
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self.hosts}:
            return "requests of other sites are refused"
        if method == "POST" and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests of other sites are refused"
        return ""
