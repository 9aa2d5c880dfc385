"""What is noted of answers: how many of each class, and a line of each if that is wanted.

A line tells the client, what was asked for without the query (it may hold secrets), the status,
bytes and time. No token and no cookie is in it.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from starlette.types import Message, Scope, Send

    from swathe.portal.http.shares import Answers

log = logging.getLogger("swathe.portal.access")
LONGEST = 500
"""Characters of a path."""


def start_log() -> None:
    """Write lines of answers to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def counting(send: Send, answers: Answers) -> Send:
    """Return what sends an answer and counts it."""

    async def send_counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            answers.add(message["status"])
        await send(message)

    return send_counted


def logging_answer(send: Send, scope: Scope) -> Send:
    """Return what sends an answer and writes a line when it is sent."""
    begun = time.monotonic()
    client = scope["client"][0] if scope.get("client") else "-"
    path = quote(scope["path"][:LONGEST], safe="/:,;@!$&()*+='")
    status = size = 0

    async def send_logged(message: Message) -> None:
        nonlocal status, size
        await send(message)
        status = message.get("status", status)
        size += len(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            seconds = time.monotonic() - begun
            what = f"{scope['method']} {path}"
            log.info("%s %s %d %d bytes %.3f s", client, what, status, size, seconds)

    return send_logged
