"""Slots with a limit per visitor: for streams, uploads, connections, threads."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from swathe.core.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

RETRY_S = 5
"""Delay suggested to a client if no slot is free, seconds."""


def share_of(places: int, part: float) -> int:
    """Return the number of slots that a part of all is, at least one."""
    return max(1, math.floor(places * part))


class Shares:
    """Slots, and the number that each visitor uses."""

    def __init__(self, places: int, part: float = 1.0, what: str = "long responses in progress"):
        """Set the number of slots, the part for one visitor, and the words for an error message."""
        self.places = places
        self.share = share_of(places, part)
        self._what = what
        self._lock = threading.Lock()
        self._of: Counter[str | None] = Counter()

    @property
    def places_in_use(self) -> int:
        """Number of slots in use."""
        with self._lock:
            return self._of.total()

    @contextmanager
    def place(self, visitor: str | None = None) -> Iterator[None]:
        """Hold a slot during the context. The visitor `None` has no limit of their own.

        Raises:
            LimitError: If no slot is free, or the visitor has reached the limit.
        """
        with self._lock:
            if self._of.total() >= self.places:
                raise LimitError(f"too many {self._what}; try again soon", RETRY_S)
            if visitor is not None and self._of[visitor] >= self.share:
                raise LimitError(
                    f"too many {self._what} of yours, at most {self.share}; try again soon", RETRY_S
                )
            self._of[visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._of[visitor] -= 1
                if not self._of[visitor]:
                    del self._of[visitor]


class Turns:
    """Limit of parallel requests per visitor; further requests wait."""

    def __init__(self, most: int) -> None:
        """Set the maximum number of parallel requests."""
        self._most = most
        self._of: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, visitor: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it during the context."""
        semaphore, requests = self._of.get(visitor) or (asyncio.Semaphore(self._most), 0)
        self._of[visitor] = semaphore, requests + 1
        try:
            async with semaphore:
                yield
        finally:
            requests = self._of[visitor][1] - 1
            if requests:
                self._of[visitor] = semaphore, requests
            else:
                del self._of[visitor]
