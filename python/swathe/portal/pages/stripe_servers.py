"""The servers of striped stores, for pages: they are asked in the background."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.stores.stripes import stripe_status

if TYPE_CHECKING:
    from swathe.stores.stripe_reports import ServerStatus

FRESH_S = 10.0
"""Age from which states are asked for again."""
WAIT_S = 2.0
"""Time that a page waits for states."""
THREADS = 4
"""Stores that are asked at the same time."""


@dataclass
class _Entry:
    """What was learned of the servers of a store."""

    servers: dict[str, ServerStatus]
    asked_s: float
    request: Future[list[ServerStatus]] | None = None


class StripeServers:
    """States of the servers of striped stores, as far as they answered."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="stripe-servers")
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def states(self, name: str) -> dict[str, ServerStatus]:
        """Return the states of the servers of a striped store by their names.

        It waits 2 s for servers that were not asked in the last 10 s. Then it returns what was
        known before: a server that hangs does not stop a page.

        Args:
            name: name of the store.
        """
        with self._lock:
            entry = self._entries.setdefault(name, _Entry({}, float("-inf")))
            if entry.request is None and time.monotonic() - entry.asked_s > FRESH_S:
                entry.request = self._pool.submit(_ask, name)
            request = entry.request
        if request is not None:
            wait([request], WAIT_S)
            with self._lock:
                if request.done() and entry.request is request:
                    entry.servers = {each.server: each for each in request.result()}
                    entry.asked_s, entry.request = time.monotonic(), None
        return entry.servers

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _ask(name: str) -> list[ServerStatus]:
    try:
        return stripe_status(name, count=False).servers
    except SwatheError:
        # The store was removed meanwhile: its page says so.
        return []
