"""A POST to a server that a user names: public ones only, within time and size, no redirects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import httpcore

from swathe._swathe import __version__
from swathe.core.errors import WebhookError
from swathe.core.value_errors import short_text
from swathe.subscriptions.webhook_address import CheckedBackend

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

REQUEST_S = 10.0
"""Time for all of a request, its answer included."""
MOST_ANSWER_BYTES = 16 << 10
NO_MORE = 410
"""Status by which a receiver says that it wants no more."""


def post(url: str, body: bytes, headers: Mapping[str, str], hosts: Collection[str]) -> None:
    """Send a body; an answer 2xx takes it. Redirects are not followed.

    Args:
        url: where it goes, as `check_url` returned it.
        body: the body.
        headers: its headers, with its media type.
        hosts: `host` or `host:port` of servers whose addresses need not be public.

    Raises:
        WebhookError: If the address is not allowed, the server does not answer in time, or its
            answer is another.
    """
    fields = [*headers.items(), ("user-agent", f"swathe/{__version__}")]
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), REQUEST_S)
    backend = CheckedBackend(hosts, REQUEST_S)
    try:
        with (
            httpcore.ConnectionPool(network_backend=backend, retries=0) as pool,
            pool.stream(
                "POST", url, headers=fields, content=body, extensions={"timeout": timeout}
            ) as answer,
        ):
            status = answer.status
            with suppress(httpcore.ReadTimeout, httpcore.ReadError, httpcore.RemoteProtocolError):
                _drain(answer)  # the status is what counts
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        text = str(error) or type(error).__name__
        raise WebhookError(f"webhook: no answer: {short_text(text)}") from error
    except (httpcore.UnsupportedProtocol, OSError, ValueError) as error:
        if isinstance(error, WebhookError):
            raise
        raise WebhookError(f"webhook: cannot be sent: {short_text(str(error))}") from error
    if not 200 <= status < 300:
        raise WebhookError(
            f"webhook: expected an answer of status 200 to 299, found {status}",
            is_final=status == NO_MORE,
        )


def _drain(answer: httpcore.Response) -> None:
    """Read the answer, as far as it is not too long."""
    count = 0
    for block in answer.iter_stream():
        count += len(block)
        if count > MOST_ANSWER_BYTES:
            return
