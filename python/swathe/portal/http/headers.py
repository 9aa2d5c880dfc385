"""Security headers, added to every response unless it sets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message, Send

SECURITY = {
    "x-content-type-options": "nosniff",
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of responses other than pages: browsers must not run, frame or sniff the content."""


def add_security_headers(send: Send, *, is_shared: bool) -> Send:
    """Return a `send` that adds these headers.

    Args:
        send: `send` of the server.
        is_shared: Whether pages of other origins may use this portal.
    """
    site = {"cross-origin-resource-policy": "cross-origin"} if is_shared else {}
    pairs = [(name.encode(), value.encode()) for name, value in {**SECURITY, **site}.items()]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [pair for pair in pairs if pair[0] not in names]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_headers
