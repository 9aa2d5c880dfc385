"""An optional access log with one line per response.

A line has the client, the method, the path without its query (which may contain secrets), the
status, bytes and time. It contains no token and no cookie.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from starlette.types import Message, Scope, Send

log = logging.getLogger("swathe.portal.access")
LONGEST = 500
"""Maximum number of characters of a logged path."""


def start_log() -> None:
    """Start writing the access log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def without_key(path: str) -> str:
    """Return a path without the key that links in mails have: who has it may confirm or stop."""
    first, mail, rest = path.partition("/mail/")
    return path if first or not mail else f"/mail/-{rest[rest.find('/') :] if '/' in rest else ''}"


def log_answers(send: Send, scope: Scope) -> Send:
    """Return a `send` that writes a line to the access log when the response is sent."""
    started_s = time.monotonic()
    client = scope["client"][0] if scope.get("client") else "-"
    path = quote(without_key(scope["path"])[:LONGEST], safe="/:,;@!$&()*+='")
    status = size = 0

    async def send_and_log(message: Message) -> None:
        nonlocal status, size
        await send(message)
        status = message.get("status", status)
        size += len(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            seconds = time.monotonic() - started_s
            what = f"{scope['method']} {path}"
            log.info("%s %s %d %d bytes %.3f s", client, what, status, size, seconds)

    return send_and_log
