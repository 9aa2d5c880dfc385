"""The servers of striped stores, for pages: each is asked in the background."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.stores.stripes import server_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swathe.stores.stripe_reports import ServerStatus

FRESH_S = 10.0
"""Age from which a state is asked for again."""
WAIT_S = 2.0
"""Time that a page waits for states."""


@dataclass
class _Entry:
    """What a server said of itself last, and whether it is being asked."""

    status: ServerStatus | None = None
    asked_s: float = float("-inf")
    answer: threading.Event = field(default_factory=threading.Event)
    is_asked: bool = False


class StripeServers:
    """States of the servers of striped stores, as far as they answered.

    Each server is asked by a thread of its own, one at a time. So one that hangs holds up no other,
    and no page of another store.
    """

    def __init__(self) -> None:
        """Start with nothing known."""
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}

    def states(self, name: str, servers: Iterable[str]) -> dict[str, ServerStatus]:
        """Return the states of the servers of a striped store by their names.

        It waits 2 s for servers that were not asked in the last 10 s. Of those that did not answer
        by then, it returns what they said before, or nothing.

        Args:
            name: name of the store.
            servers: names of its servers.
        """
        entries = {server: self._entry(name, server) for server in servers}
        end_s = time.monotonic() + WAIT_S
        for entry in entries.values():
            entry.answer.wait(max(0.0, end_s - time.monotonic()))
        return {server: each.status for server, each in entries.items() if each.status is not None}

    def _entry(self, name: str, server: str) -> _Entry:
        """Return the entry of a server, which is asked if that was long ago."""
        with self._lock:
            entry = self._entries.setdefault((name, server), _Entry())
            if not entry.is_asked and time.monotonic() - entry.asked_s > FRESH_S:
                entry.is_asked = True
                entry.answer.clear()
                threading.Thread(
                    target=self._ask, args=(name, server, entry), name="stripe-server", daemon=True
                ).start()
        return entry

    def _ask(self, name: str, server: str, entry: _Entry) -> None:
        status = None
        try:
            status = server_status(name, server)
        except SwatheError:
            return  # the store was removed meanwhile: its page says so
        finally:
            with self._lock:
                entry.status, entry.asked_s, entry.is_asked = status, time.monotonic(), False
            entry.answer.set()
