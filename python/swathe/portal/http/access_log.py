"""An optional access log with one line per response, as text or JSON.

A line has the client, the method, the path without its query (which may contain secrets), the
status, bytes, time, and the id of the request. It contains no token and no cookie.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from swathe.portal.http.request_ids import request_id
from swathe.portal.http.response_counts import route_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message, Scope, Send

log = logging.getLogger("swathe.portal.access")
LONGEST = 500
"""Maximum number of characters of a logged path."""


def start_log(form: Literal["text", "json"]) -> None:
    """Start writing the access log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    pattern = "%(asctime)s %(message)s" if form == "text" else "%(message)s"
    handler.setFormatter(logging.Formatter(pattern))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def without_key(path: str) -> str:
    """Return a path without the key that links in mails have: who has it may confirm or stop."""
    first, mail, rest = path.partition("/mail/")
    return path if first or not mail else f"/mail/-{rest[rest.find('/') :] if '/' in rest else ''}"


class AccessLine:
    """The line of one response, which is written when the response has ended.

    A response that the client did not read to its end has a line, too; its status is 0 if it had
    not begun.
    """

    def __init__(self, scope: Scope) -> None:
        """Note when the request came, and from where."""
        self._scope = scope
        self._start_s = time.monotonic()
        self._end_s: float | None = None
        self._client = scope["client"][0] if scope.get("client") else "-"
        self._path = quote(without_key(scope["path"])[:LONGEST], safe="/:,;@!$&()*+='")
        self._status = self._size = 0

    def watch(self, send: Send) -> Send:
        """Return a `send` that notes the status and the size of the response."""

        async def send_and_note(message: Message) -> None:
            await send(message)
            self._status = message.get("status", self._status)
            self._size += len(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._end_s = time.monotonic()

        return send_and_note

    def write(self, form: Literal["text", "json"], user: Callable[[], str]) -> None:
        """Write the line. As JSON it has the user, whose token is known by now, and the route."""
        seconds = (self._end_s or time.monotonic()) - self._start_s
        method = self._scope["method"]
        if form == "json":
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "request_id": request_id(),
                "client": self._client,
                "user": user(),
                "method": method,
                "path": self._path,
                "route": route_of(self._scope),
                "status": self._status,
                "bytes": self._size,
                "seconds": round(seconds, 4),
                "complete": self._end_s is not None,
            }
            log.info("%s", json.dumps(line))
            return
        what = f"{method} {self._path}"
        log.info(
            "%s %s %d %d bytes %.3f s %s",
            self._client,
            what,
            self._status,
            self._size,
            seconds,
            request_id(),
        )
