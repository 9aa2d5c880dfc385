"""Deliveries to webhooks: a ladder of retries, and the end of those that fail for long."""

from __future__ import annotations

import logging
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from swathe.core.errors import WebhookError
from swathe.subscriptions.webhook_request import send

if TYPE_CHECKING:
    from collections.abc import Collection

    from swathe.catalog import Catalog
    from swathe.catalog.records.subscriptions import Delivery
    from swathe.core.errors import DeliveryError

log = logging.getLogger(__name__)

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
LADDER_S = (MINUTE_S, 10 * MINUTE_S, HOUR_S, 6 * HOUR_S, 16 * HOUR_S, *([DAY_S] * 6))
"""Pauses between tries: about a week in all. After the last a webhook is disabled."""
JITTER = 0.2
"""Part of a pause by which it may be shorter or longer, so that retries do not come together."""
AT_ONCE = 8
OF_A_USER = 2
"""Deliveries of one user at the same time."""


class Deliveries:
    """Events that are sent to webhooks. The feed has them all: a webhook is only a hint."""

    def __init__(self, catalog: Catalog, portal_url: str, hosts: Collection[str] = ()) -> None:
        """Take the catalogue, the portal's URL, and servers whose addresses need not be public."""
        self._catalog, self._portal_url, self._hosts = catalog, portal_url, hosts

    def deliver(self) -> bool:
        """Send the events that are due, in parallel; return whether there were some."""
        due = self._catalog.due_deliveries(AT_ONCE, OF_A_USER)
        if due:
            with ThreadPoolExecutor(len(due), "swathe-webhooks") as pool:
                list(pool.map(self._deliver_one, due))
        return bool(due)

    def _deliver_one(self, delivery: Delivery) -> None:
        try:
            send(delivery, self._portal_url, self._hosts)
        except WebhookError as error:
            log.info("%s: %s", delivery.subscription, error)
            self._catalog.record_failure(delivery, str(error), next_try(error, delivery.tries))
        else:
            self._catalog.record_delivery(delivery)


def next_try(error: DeliveryError, tries: int) -> datetime | None:
    """Return the time of the next try, after a number of tries before this one; `None`: no more."""
    is_last = error.is_final or tries >= len(LADDER_S)
    return None if is_last else datetime.now(UTC) + pause_after(tries)


def pause_after(tries: int) -> timedelta:
    """Return the pause before the next try, after a number of tries before this one."""
    factor = 1 + random.uniform(-JITTER, JITTER)
    return timedelta(seconds=LADDER_S[tries] * factor)
