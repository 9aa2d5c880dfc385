"""One event sent to a webhook: signed as Standard Webhooks has it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import TYPE_CHECKING

from swathe.subscriptions.cloud_events import to_json
from swathe.subscriptions.safe_post import post
from swathe.subscriptions.webhook_address import check_url

if TYPE_CHECKING:
    from collections.abc import Collection

    from swathe.catalog.records.subscriptions import Delivery

SECRET_PREFIX = "whsec_"
"""Beginning of a secret as users see it."""


def signature_of(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature` by a secret in base64."""
    key = base64.b64decode(secret)
    content = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def send(delivery: Delivery, portal_url: str, hosts: Collection[str]) -> None:
    """Send an event; an answer 2xx takes it. Redirects are not followed.

    Args:
        delivery: the event, and where it goes.
        portal_url: URL of this portal, the source of the event.
        hosts: `host` or `host:port` of servers whose addresses need not be public.

    Raises:
        WebhookError: If the address is not allowed, the server does not answer in time, or its
            answer is another.
    """
    url = check_url(delivery.url)
    body = to_json(delivery.event, delivery.subscription, portal_url)
    message_id = f"{delivery.subscription}.{delivery.event.number}"
    timestamp = int(time.time())
    headers = {
        "content-type": "application/cloudevents+json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature_of(delivery.secret, message_id, timestamp, body),
    }
    post(url, body, headers, hosts)
