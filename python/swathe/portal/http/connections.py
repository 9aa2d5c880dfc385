"""Limits of connections: their number, and timeouts.

uvicorn waits without end for a first header, for the rest of a body and for a client that does not
read. `with_limits` adds timeouts for all three to its protocols (httptools and h11), and limits of
connections, in total and per address.
"""

from __future__ import annotations

import ipaddress
import json
from typing import TYPE_CHECKING, Any, ClassVar

from swathe.core.errors import LimitError
from swathe.portal.http.headers import SECURITY
from swathe.portal.http.problem_documents import PROBLEM, has_problems, problem_content
from swathe.portal.http.request_ids import networks
from swathe.portal.http.shares import Shares

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol

    from swathe.portal.config import Config
else:
    Protocol = object

BODY_S = 10.0
"""Interval between checks of an arriving body."""
BODY_BYTES_PER_S = 1000
"""Minimum rate of an arriving body; a slower one ends its connection."""
SEND_S = 60.0
"""Timeout of sending: a client that reads less than about 48 kB in this time is dropped."""
PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    429: "Too Many Requests",
    503: "Service Unavailable",
}


def network_of(address: str) -> str:
    """Return the key of an address for limits: the address itself, or its /64 network for IPv6."""
    try:
        ip_address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip_address.version == 4:
        return address
    if ip_address.ipv4_mapped is not None:
        return str(ip_address.ipv4_mapped)
    return str(ipaddress.ip_network((ip_address, 64), strict=False))


class ConnectionCounts:
    """Limits of connections. Trusted proxies have no limit per address."""

    def __init__(self, config: Config) -> None:
        """Set the limits from the portal's settings."""
        limits = config.limits
        self.header_s = limits.header_s
        self._shares = Shares(limits.connections, limits.share, "open connections")
        self._proxies = networks(config.server.proxies)

    def place(self, address: str) -> AbstractContextManager[None]:
        """Return a context that holds a slot for a connection from an address.

        Entering raises LimitError if no slot is free.
        """
        return self._shares.place(None if self._is_proxy(address) else network_of(address))

    def _is_proxy(self, address: str) -> bool:
        try:
            ip_address = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(ip_address in network for network in self._proxies)


def refusal(status: int, text: str, path: str = "") -> bytes:
    """Return a complete response that ends its connection, sent without the application.

    Args:
        status: HTTP status.
        text: what is wrong.
        path: path of the request, if it is known.
    """
    kind, content = "text/plain; charset=utf-8", f"{text}\n"
    if has_problems(path):
        kind, content = PROBLEM, json.dumps(problem_content(status, text))
    lines = [
        f"HTTP/1.1 {status} {PHRASES[status]}",
        *(f"{name}: {value}" for name, value in SECURITY.items()),
        f"content-type: {kind}",
        f"content-length: {len(content)}",
        "connection: close",
    ]
    return ("\r\n".join(lines) + f"\r\n\r\n{content}").encode()


class LimitedProtocol(Protocol):
    """Timeouts and limits for one of uvicorn's protocols, as a mixin before it in the bases."""

    keeper: ClassVar[ConnectionCounts]
    _place: AbstractContextManager[None] | None = None
    _head: asyncio.TimerHandle | None = None
    _body: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None
    _body_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or respond that there are too many."""
        super().connection_made(transport)
        place = self.keeper.place(self.client[0] if self.client else "")
        try:
            place.__enter__()
        except LimitError as error:
            self._refuse(429, str(error))
            return
        self._place = place
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Pass data on, and set the timeout for the next part."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self._await_head()
            return
        self._cancel("_head")
        self._body_bytes += len(data)
        if cycle.more_body and self._body is None:
            self._await_body()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the slot of the connection."""
        for timer in ("_head", "_body", "_sending"):
            self._cancel(timer)
        if self._place is not None:
            self._place.__exit__(None, None, None)
            self._place = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client has read more, with a timeout."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(SEND_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue sending, as the client reads."""
        self._cancel("_sending")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Respond to data that are not HTTP."""
        self._refuse(400, msg)

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.keeper.header_s, self._end_without_head)

    def _end_without_head(self) -> None:
        seconds = f"{self.keeper.header_s:g} s"
        self._refuse(408, f"the header of the request did not arrive within {seconds}")

    def _await_body(self) -> None:
        self._body_bytes = 0
        self._body = self.loop.call_later(BODY_S, self._check_body)

    def _check_body(self) -> None:
        """End a request whose body arrives too slowly, unless the portal itself pauses it."""
        self._body = None
        cycle: Any = self.cycle
        if cycle.response_complete or not cycle.more_body:
            return
        waits = self.flow.read_paused or cycle.waiting_for_100_continue
        if waits or self._body_bytes >= BODY_S * BODY_BYTES_PER_S:
            self._await_body()
        else:
            rate = f"{BODY_BYTES_PER_S} bytes per second"
            self._refuse(408, f"the body of the request arrived more slowly than {rate}")

    def _refuse(self, status: int, text: str) -> None:
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            path = "" if cycle is None or cycle.response_complete else cycle.scope["path"]
            self.transport.write(refusal(status, text, path))
        self.transport.close()

    def _cancel(self, timer: str) -> None:
        handle = getattr(self, timer)
        if handle is not None:
            handle.cancel()
            setattr(self, timer, None)


def with_limits(protocol: type[Any], config: Config) -> type[Any]:
    """Return a protocol class of uvicorn with the limits of a portal's settings."""
    members = {"keeper": ConnectionCounts(config)}
    return type(f"Watched{protocol.__name__}", (LimitedProtocol, protocol), members)
