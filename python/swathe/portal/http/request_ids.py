"""An id for each request: in its response, its errors, the logs, and the events of a trace.

The portal makes it. A proxy of `server.proxies` may send its own as `X-Request-Id`; that of any
other sender is ignored, since it could be the id of somebody else's request.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
from contextvars import ContextVar
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
FORM = re.compile(r"[A-Za-z0-9._-]{8,64}")
"""Ids of proxies: nginx has 32 hexadecimal digits, others a UUID."""
KEY = "swathe.request-id"
"""Key of a request's scope: the id that its proxy sent."""
_request_id: ContextVar[str] = ContextVar("_request_id", default="")


def networks(addresses: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Parse addresses and networks of proxies.

    Raises:
        ValueError: If a text is neither.
    """
    return [ipaddress.ip_network(address) for address in addresses]


def request_id() -> str:
    """Return the id of the request that is handled now; empty if there is none."""
    return _request_id.get()


class ProxyIds:
    """Middleware that accepts the ids of proxies.

    It must see the address of the proxy itself: it comes before the middleware that replaces it by
    that of the client.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        """Set the application, and the addresses or networks of the proxies."""
        self._app, self._proxies = app, networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the id of a request, if a proxy sent one, and pass the request on."""
        if scope["type"] == "http" and self._is_proxy(scope):
            ids = Headers(scope=scope).getlist(HEADER)
            if len(ids) == 1 and FORM.fullmatch(ids[0]):
                scope[KEY] = ids[0]
        await self._app(scope, receive, send)

    def _is_proxy(self, scope: Scope) -> bool:
        try:
            address = ipaddress.ip_address(scope["client"][0])
        except (TypeError, ValueError):  # a Unix socket has no address
            return False
        return any(address in network for network in self._proxies)


def name_request(scope: Scope, send: Send) -> Send:
    """Set the id of the request, and return a `send` that puts it into the response's header."""
    name = scope.get(KEY) or secrets.token_hex(16)
    _request_id.set(name)
    pair = (HEADER.encode(), name.encode())

    async def send_with_id(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), pair]}
        await send(message)

    return send_with_id


class RequestFilter(logging.Filter):
    """Adds the id of the request to each line of a log that is written for one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; no line is left out."""
        if name := request_id():
            record.msg, record.args = f"{record.getMessage()} [request {name}]", ()
        return True


def name_log_lines() -> None:
    """Add ids of requests to what the portal and its server log of errors."""
    for name in ("swathe.portal", "uvicorn.error"):
        logging.getLogger(name).addFilter(RequestFilter())
