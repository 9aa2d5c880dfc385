"""Mail of subscriptions: requests to confirm addresses, and digests of events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from swathe.core.errors import DeliveryError
from swathe.subscriptions.deliveries import OF_A_USER, next_try
from swathe.subscriptions.mail_messages import digest_message, request_message

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.subscriptions import MailAddress, MailDigest
    from swathe.subscriptions.mail_server import MailServer

log = logging.getLogger(__name__)

AT_ONCE = 8


class MailDeliveries:
    """Mail about events. The feed has them all: mail is only a hint."""

    def __init__(self, catalog: Catalog, server: MailServer, portal_url: str) -> None:
        """Take the catalogue, the server that mail goes to, and the portal's URL."""
        self._catalog, self._server, self._portal_url = catalog, server, portal_url

    def deliver(self) -> bool:
        """Send the mails that are due, one after the other; return whether there were some."""
        requests = self._catalog.due_requests(AT_ONCE)
        for request in requests:
            self._send_request(request)
        digests = self._catalog.due_digests(AT_ONCE, OF_A_USER)
        for digest in digests:
            self._send_digest(digest)
        return bool(requests or digests)

    def _send_request(self, request: MailAddress) -> None:
        message = request_message(request, self._server.sender, self._portal_url)
        try:
            self._server.send(message, request.address)
        except DeliveryError as error:
            log.info("request to %s: %s", request.address, error)
            retry_at = next_try(error, request.tries)
            self._catalog.record_request_failure(request, str(error), retry_at)
        else:
            self._catalog.record_request(request)

    def _send_digest(self, digest: MailDigest) -> None:
        address = digest.subscription.mail
        assert address is not None
        message = digest_message(digest, address, self._server.sender, self._portal_url)
        try:
            self._server.send(message, address)
        except DeliveryError as error:
            log.info("%s: %s", digest.subscription.id, error)
            retry_at = next_try(error, digest.tries)
            self._catalog.record_digest_failure(digest, str(error), retry_at)
        else:
            self._catalog.record_digest(digest)
