"""Addresses of webhooks: which servers a user may let the portal send to.

A URL is checked when it is given, and so is an address that it has instead of a name. What a name
resolves to is checked at each connection, and the connection goes to the address that was checked:
a name may resolve to another one the next time.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpcore

from swathe.core.errors import WebhookError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LONGEST_URL = 2000
CONNECT_S = 5.0
PORTS = {"http": 80, "https": 443}
NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Addresses of IP version 6 that a gateway turns into one of version 4."""
ISATAP = (0x00005EFE, 0x02005EFE)
"""Third words of addresses of IP version 6 whose last word is one of version 4 (RFC 5214)."""
NOT_PUBLIC = tuple(
    ipaddress.ip_network(each)
    for each in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays to 6to4, withdrawn (RFC 7526)
        "3fff::/20",  # documentation (RFC 9637)
    )
)
"""Networks for special purposes that `is_global` of some versions of Python accepts."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: Any, what: str = "webhook") -> str:
    """Return the URL of a webhook, if it is one.

    Args:
        url: the URL, as a user gave it.
        what: its name in errors.

    Raises:
        WebhookError: If it is not `http(s)://host[:port]/path`, without user and password.
    """
    form = f"{what}: expected http(s)://host[:port]/path without user and password"
    is_text = isinstance(url, str) and len(url) <= LONGEST_URL
    if not is_text or not (url.isascii() and url.isprintable()) or " " in url:
        raise WebhookError(f"{form}, at most {LONGEST_URL} characters, found {short_text(url)}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise WebhookError(f"{form}, found {short_text(url)}") from None
    is_known = parts.scheme in PORTS and bool(parts.hostname) and port != 0
    if not is_known or "@" in parts.netloc or "\\" in url or parts.fragment:
        raise WebhookError(f"{form}, found {short_text(url)}")
    return str(url)


def check_host(url: str, hosts: Collection[str]) -> None:
    """Check the host of a URL that `check_url` returned, if it is an address; look no name up.

    Args:
        url: URL of a webhook.
        hosts: `host` or `host:port` of servers that may be anywhere.

    Raises:
        WebhookError: If the address is not public, and not of such a server.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        rows = socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return  # a name
    _check_addresses(host, port, [str(row[4][0]) for row in rows], hosts)


def is_public(address: Address) -> bool:
    """Check whether an address is one of the public internet, and so is what it stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        inner: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
        if address.teredo is not None:
            inner += address.teredo
        if address in NAT64 or int(address) >> 32 & 0xFFFFFFFF in ISATAP:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if any(each is not None and not is_public(each) for each in inner):
            return False
        if address.ipv4_mapped is not None:
            return True
        if address.is_site_local:
            return False
    if any(address in each for each in NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class CheckedBackend(httpcore.NetworkBackend):
    """Connections to public addresses, and to the hosts that the operator allows, until a time."""

    def __init__(self, hosts: Collection[str], seconds: float) -> None:
        """Take `host` or `host:port` of servers that may be anywhere, and the time for all."""
        self._hosts = frozenset(hosts)
        self._until = time.monotonic() + seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the signature is httpcore's
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers, if all of them are allowed.

        Raises:
            WebhookError: If one of them is not.
            httpcore.ConnectError: If none answers.
        """
        addresses = self._addresses(host, port)
        fault: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                stream = httpcore.SyncBackend().connect_tcp(
                    address, port, min(timeout or CONNECT_S, self._left_s), local_address
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
            else:
                return _BoundedStream(stream, self._until)
        raise fault or httpcore.ConnectError(f"{host}: it has no address")

    def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Refuse: no webhook is a socket of this machine."""
        raise WebhookError(f"webhook: expected a server, found a socket {path!r}")

    @property
    def _left_s(self) -> float:
        return _left_s(self._until)

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise WebhookError(f"webhook: {host}: cannot be resolved: {error}") from error
        addresses = list(dict.fromkeys(str(row[4][0]) for row in rows))[:4]
        _check_addresses(host, port, addresses, self._hosts)
        return addresses


class _BoundedStream(httpcore.NetworkStream):
    """A connection that ends at a time, however slowly the other side sends."""

    def __init__(self, stream: httpcore.NetworkStream, until: float) -> None:
        self._stream, self._until = stream, until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, _left_s(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, _left_s(self._until))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left_s = _left_s(self._until)
        stream = self._stream.start_tls(ssl_context, server_hostname, left_s)
        return _BoundedStream(stream, self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _check_addresses(
    host: str, port: int, addresses: Iterable[str], hosts: Collection[str]
) -> None:
    """Check that the addresses of a host are public, or that the host is one of `hosts`.

    Raises:
        WebhookError: If one of them is not.
    """
    name = f"[{host}]" if ":" in host else host.lower()
    if name in hosts or f"{name}:{port}" in hosts:
        return
    for each in addresses:
        if not is_public(ipaddress.ip_address(each.partition("%")[0])):
            # Without the address: who asks must not learn how names resolve in here.
            raise WebhookError(
                f"webhook: {host}: expected a public address, found one that is not; the "
                "operator of the portal can allow the host (access.webhooks)"
            )


def _left_s(until: float) -> float:
    """Return the seconds that are left.

    Raises:
        httpcore.ReadTimeout: If none are.
    """
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise httpcore.ReadTimeout("the time for the request is over")
    return left_s
