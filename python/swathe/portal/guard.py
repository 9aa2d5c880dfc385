"""Checks of every request, from any sender.

A web page of another site must not use the portal through a visitor's browser. So two kinds of
request are refused: changes from pages of another origin, and requests to a host name that is not
the portal's (DNS rebinding). The size of a body is limited, and so are a visitor's parallel uploads
and requests.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack, suppress
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
from swathe.portal.http.access_log import without_key
from swathe.portal.http.problem_documents import error_content, has_problems, problem_response
from swathe.portal.http.request_ids import request_id
from swathe.portal.http.shares import Shares, Turns, share_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from swathe.portal.config import Config

CLOSE = {"Connection": "close"}
"""Without this header the server would wait for the rest of the body."""
DRAIN_S = 5.0
"""Time for which the rest of a refused body is read and discarded."""
SMALL_BODY = 50_000
"""Maximum size of a body without tables, which is parsed in the portal's process."""
SAFE = ("GET", "HEAD", "OPTIONS")
EXPOSED_HEADERS = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Link",
    "Location",
    "Preference-Applied",
    "Retry-After",
    "Volume-Block",
    "Volume-Blank",
    "Volume-Dims",
    "Volume-High",
    "Volume-Low",
    "Volume-Offset",
    "Volume-Region",
    "Volume-Scale",
    "Volume-Shape",
    "Volume-Units",
    "X-Request-Id",
)
"""Response headers that pages of other origins may read: viewers read files by ranges."""
JOB = re.compile(r"/(?:jobs|async)/([\w-]+)$")
"""The id of a job, at the end of its URL."""
WATCHING = re.compile(r"/trace/data|/runs/[^/]+/trace")
"""Paths that are not traced: pages that show the trace poll them."""


LONG = re.compile(
    r"/api/jobs/[^/]+(/(events|manifest(\.csv)?|archive\.\w+|files/[^/]+))?|/vo/async/[^/]+(/.*)?"
    r"|/api/runs/[^/]+/(pictures(/\d+)?|[^/]+/\d+/(volume|slice\.png))"
    r"|/ogc/jobs/[^/]+/results(/[^/]+)?"
)
"""Paths of long responses, which have slots of their own."""
LARGE_BYTES = 65_536
"""A larger body takes one of the slots for uploads."""
THREADS = 40
"""Number of the server's threads for short responses."""


def _new_job(path: str, headers: Headers) -> str:
    """Return the id of the job that a response points to, if it is not the requested one."""
    match = JOB.search(headers.get("location", ""))
    return match[1] if match and match[1] not in path else ""


def _is_large(scope: Scope) -> bool:
    """Return whether a request has a large body, or one of unknown length."""
    headers = Headers(scope=scope)
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or (length.isdecimal() and int(length[:20]) > LARGE_BYTES)


def _error_response(
    scope: Scope, status: int, text: str, kind: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error in the form of the interface that the request is for."""
    if has_problems(scope["path"]):
        return problem_response(status, text, headers=headers)
    return JSONResponse(error_content(text, kind), status, headers)


async def _answer_and_drain(
    answer: JSONResponse, scope: Scope, receive: Receive, send: Send
) -> None:
    """Respond to a request whose body is still arriving, and discard its rest.

    A client or proxy whose connection is closed while it sends may not read the response. So the
    connection stays open until the end of the body, but for `DRAIN_S` at most.
    """

    async def discard() -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body"):
                return

    async def send_and_drain(message: Message) -> None:
        # A client with `Expect: 100-continue` sees the response first, and sends no body.
        if message["type"] != "http.response.body" or "expect" in Headers(scope=scope):
            await send(message)
            return
        await send({**message, "more_body": True})
        with suppress(TimeoutError):  # the client had its time to read the answer
            await asyncio.wait_for(discard(), DRAIN_S)
        await send({"type": "http.response.body"})

    await answer(scope, receive, send_and_drain)


def _limit_body(receive: Receive, most: int) -> Receive:
    """Return a `receive` that raises an error when the body becomes too long."""
    length = 0

    async def receive_some() -> Message:
        nonlocal length
        message = await receive()
        length += len(message.get("body", b""))
        if length > most:
            raise HTTPException(413, _too_long(most), CLOSE)
        return message

    return receive_some


def _too_long(most: int) -> str:
    return f"the request body: expected at most {most:,} bytes, found more"


class Guard:
    """Middleware that checks every request."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        """Set the application to protect, and the limits from the portal's settings."""
        self._app = app
        self._origins = frozenset(config.access.origins)
        limits = config.limits
        self._body_bytes = round(limits.body_mb * 1e6)
        self._uploads = Shares(limits.uploads, limits.share, "uploads in progress")
        self._turns = Turns(share_of(THREADS, limits.share))
        server = config.server
        own_name = urlsplit(server.url).hostname
        # The names of a public address are unknown, unless server.url gives one.
        self._names: frozenset[str] | None = None
        if own_name or is_loopback(server.host):
            host = f"[{server.host}]" if ":" in server.host else server.host.lower()
            self._names = frozenset(
                {*LOOPBACK_NAMES, host, *([in_url(own_name)] if own_name else [])}
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 400, 403 or 413, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _swathe.trace_is_on() and not WATCHING.fullmatch(scope["path"]):
            await self._answer_in_trace(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer_in_trace(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and record it as an event, with its path but not its query."""
        facts = {"status": 0, "bytes": 0}
        new_job = ""

        async def send_and_count(message: Message) -> None:
            nonlocal new_job
            facts["status"] = message.get("status", facts["status"])
            facts["bytes"] += len(message.get("body", b""))
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                new_job = _new_job(scope["path"], Headers(raw=message.get("headers", [])))
            await send(message)

        path = without_key(scope["path"])[:1000]
        with (
            trace.scope(portal=request_id()),
            trace.event("PORTAL", method=scope["method"], path=path) as event,
        ):
            await self._answer(scope, receive, send_and_count)
            if new_job:
                trace.point("SUBMITTED", job=new_job)
            result = "ok" if facts["status"] < 400 else "error"
            event.add(**facts, result="missing" if facts["status"] == 404 else result)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        content_length = Headers(scope=scope).get("content-length", "")
        most = self._most_bytes(scope)
        if refusal := self._refusal(scope):
            status, error = refusal
            answer = _error_response(scope, status, error, "AccessError")
        elif content_length.isdecimal() and int(content_length[:20]) > most:
            answer = _error_response(scope, 413, _too_long(most), "LimitError", CLOSE)
            await _answer_and_drain(answer, scope, receive, send)
            return
        else:
            await self._pass_on(scope, _limit_body(receive, self._most_bytes(scope)), send)
            return
        await answer(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it is the visitor's turn."""
        if scope["method"] == "GET" and LONG.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(HTTPConnection(scope))
        with ExitStack() as stack:
            if _is_large(scope):
                try:
                    stack.enter_context(self._uploads.place(visitor))
                except LimitError as error:
                    headers = {**CLOSE, "Retry-After": str(error.retry_after_s)}
                    refusal = _error_response(scope, 429, str(error), "LimitError", headers)
                    await refusal(scope, receive, send)
                    return
            async with self._turns.turn(visitor):
                await self._app(scope, receive, send)

    def _most_bytes(self, scope: Scope) -> int:
        """Return the maximum size of the body. Only POST and PUT have tables and algorithms."""
        is_small = scope["method"] not in ("POST", "PUT")
        return min(self._body_bytes, SMALL_BODY) if is_small else self._body_bytes

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return 400, f"Host: expected one header, found {len(hosts)}"
        host = "".join(hosts)
        name = re.sub(r":[0-9]*$", "", host).lower()
        if self._names is not None and name not in self._names:
            fault = f"expected a name of this portal, found {name[:100]!r}"
            return 400, f"Host: {fault}; see server.url of its settings"
        if scope["method"] in SAFE:
            return None
        origin = headers.get("origin")
        if origin is None:
            # Some browsers send no Origin with a POST, but this header.
            same_site = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            return None if same_site else (403, "pages of another origin may not do this")
        if origin in self._origins or origin.partition("://")[2].lower() == host.lower():
            return None
        return 403, f"pages of {origin[:100]!r} may not do this; see access.origins"
