"""Headers of security, which every answer has unless its own are stricter or fit it better."""

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
"""Of answers that are no pages: nothing in them is to be run, framed or sniffed."""


def securing(send: Send, *, shared: bool) -> Send:
    """Return what sends an answer with these headers.

    Args:
        send: What sends it.
        shared: Whether pages of other origins may use this portal.
    """
    site = {"cross-origin-resource-policy": "cross-origin"} if shared else {}
    pairs = [(name.encode(), value.encode()) for name, value in {**SECURITY, **site}.items()]

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [pair for pair in pairs if pair[0] not in names]
            message = {**message, "headers": headers}
        await send(message)

    return send_secured
