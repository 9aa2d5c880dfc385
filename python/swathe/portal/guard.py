"""What no request may do, whoever makes it.

Web pages of others use no portal by way of a visitor's browser. Two ways are closed: requests that
change something from pages of another origin, and names that lead to this machine although they
are not its own (DNS rebinding). And no body is longer than the settings allow,
nobody sends more bodies at a time, or has more requests worked on, than their share.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack, suppress
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from swathe import _swathe, trace
from swathe.core.errors import LimitError
from swathe.core.host import in_url, is_loopback
from swathe.portal.access import visitor_of
from swathe.portal.config import LOOPBACK_NAMES
from swathe.portal.http.shares import Shares, Turns, share_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from swathe.portal.config import Config

REQUESTS = count(1)
"""Their numbers, in events."""
CLOSED = {"Connection": "close"}
"""Else the rest of the body would be waited for."""
DRAIN_S = 5.0
"""The rest of a refused body is discarded for so long."""
SMALL_BODY = 50_000
"""Bytes of a body without tables: it is parsed where it comes in."""
SAFE = ("GET", "HEAD", "OPTIONS")
EXPOSED = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Location",
    "Retry-After",
)
"""Headers of answers that pages of other origins may see: viewers read files by ranges."""
JOB = re.compile(r"/(?:jobs|async)/([\w-]+)$")
"""Of the address of a job."""
WATCHING = "/trace/data"
"""Not recorded: the page that shows what is recorded asks for it again and again."""


LONG = re.compile(
    r"/api/jobs/[^/]+(/(events|manifest(\.csv)?|archive\.\w+|files/[^/]+))?|/vo/async/[^/]+(/.*)?"
)
"""Paths of answers that may go on for long: those have places of their own."""
LARGE_BYTES = 65_536
"""A larger body takes a place among uploads."""
THREADS = 40
"""Of the server for short answers."""


def _made(path: str, headers: Headers) -> str:
    """Give the job that an answer leads to, if it is not the one that was asked for."""
    found = JOB.search(headers.get("location", ""))
    return found[1] if found and found[1] not in path else ""


def _is_large(scope: Scope) -> bool:
    """Tell whether a request brings a large body, or one of unknown length."""
    headers = Headers(scope=scope)
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or (length.isdecimal() and int(length[:20]) > LARGE_BYTES)


def _too_many(error: LimitError) -> JSONResponse:
    headers = {**CLOSED, "Retry-After": str(error.retry_after_s)}
    return JSONResponse({"error": str(error), "kind": "LimitError"}, 429, headers)


async def _answer_and_drain(
    answer: JSONResponse, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request whose body is still coming, and discard that for `DRAIN_S` at most.

    A client, or a proxy, that finds its connection closed while it sends may not read the answer.
    """

    async def discard() -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body"):
                return

    async def send_and_drain(message: Message) -> None:
        # Whoever asks whether to send the body learns that from the answer, and sends none.
        if message["type"] != "http.response.body" or "expect" in Headers(scope=scope):
            await send(message)
            return
        await send({**message, "more_body": True})
        with suppress(TimeoutError):  # the client had its time to read the answer
            await asyncio.wait_for(discard(), DRAIN_S)
        await send({"type": "http.response.body"})

    await answer(scope, receive, send_and_drain)


def _counted(receive: Receive, most: int) -> Receive:
    """Return what receives a body, and stops where it gets too long."""
    length = 0

    async def receive_some() -> Message:
        nonlocal length
        message = await receive()
        length += len(message.get("body", b""))
        if length > most:
            raise HTTPException(413, _too_long(most), CLOSED)
        return message

    return receive_some


def _too_long(most: int) -> str:
    return f"a body has at most {most:,} bytes here"


class Guard:
    """Refuses such requests."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        """Take the application behind, and the settings of the portal."""
        self._app = app
        self._origins = frozenset(config.access.origins)
        limits = config.limits
        self._body_bytes = round(limits.body_mb * 1e6)
        self._uploads = Shares(limits.uploads, limits.share, "uploads are under way")
        self._turns = Turns(share_of(THREADS, limits.share))
        server = config.server
        own = urlsplit(server.url).hostname
        # Of an address that all can reach it is not known what it is called, unless it is told.
        self._names: frozenset[str] | None = None
        if own or is_loopback(server.host):
            host = f"[{server.host}]" if ":" in server.host else server.host.lower()
            self._names = frozenset({*LOOPBACK_NAMES, host, *([in_url(own)] if own else [])})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 400, 403 or 413, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _swathe.trace_is_on() and scope["path"] != WATCHING:
            await self._told(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _told(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and record that: the path without its query."""
        came = {"status": 0, "bytes": 0}
        made = ""

        async def send_told(message: Message) -> None:
            nonlocal made
            came["status"] = message.get("status", came["status"])
            came["bytes"] += len(message.get("body", b""))
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                made = _made(scope["path"], Headers(raw=message.get("headers", [])))
            await send(message)

        path = scope["path"][:1000]
        with (
            trace.scope(portal=f"portal-{next(REQUESTS)}"),
            trace.event("PORTAL", method=scope["method"], path=path) as event,
        ):
            await self._answer(scope, receive, send_told)
            if made:
                trace.point("SUBMITTED", job=made)
            result = "ok" if came["status"] < 400 else "error"
            event.add(**came, result="missing" if came["status"] == 404 else result)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = Headers(scope=scope).get("content-length", "")
        most = self._most_bytes(scope)
        if refused := self._refused(scope):
            status, error = refused
            answer = JSONResponse({"error": error, "kind": "AccessError"}, status)
        elif told.isdecimal() and int(told[:20]) > most:
            answer = JSONResponse({"error": _too_long(most), "kind": "LimitError"}, 413, CLOSED)
            await _answer_and_drain(answer, scope, receive, send)
            return
        else:
            await self._pass_on(scope, _counted(receive, self._most_bytes(scope)), send)
            return
        await answer(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer when it is the visitor's turn."""
        if scope["method"] == "GET" and LONG.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(HTTPConnection(scope))
        with ExitStack() as stack:
            if _is_large(scope):
                try:
                    stack.enter_context(self._uploads.place(visitor))
                except LimitError as error:
                    await _too_many(error)(scope, receive, send)
                    return
            async with self._turns.turn(visitor):
                await self._app(scope, receive, send)

    def _most_bytes(self, scope: Scope) -> int:
        """Return how long a body may be; only POST sends tables."""
        return self._body_bytes if scope["method"] == "POST" else min(self._body_bytes, SMALL_BODY)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return 400, f"Host: expected one header, found {len(hosts)}"
        host = "".join(hosts)
        name = re.sub(r":[0-9]*$", "", host).lower()
        if self._names is not None and name not in self._names:
            return 400, f"this portal is not called {name[:100]!r}; see server.url of its settings"
        if scope["method"] in SAFE:
            return None
        origin = headers.get("origin")
        if origin is None:
            # Browsers that send no Origin with a POST may send this.
            alone = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            return None if alone else (403, "a page of another origin may not do this")
        if origin in self._origins or origin.partition("://")[2].lower() == host.lower():
            return None
        return 403, f"pages of {origin[:100]!r} may not do this; see access.origins"
