"""Places of which nobody takes more than a share: for streams, uploads, connections, threads."""

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
"""When to try again where all places are taken."""


def share_of(places: int, part: float) -> int:
    """Return how many places are a part of all, at least one."""
    return max(1, math.floor(places * part))


class Shares:
    """Places, and how many of them each visitor has."""

    def __init__(self, places: int, part: float = 1.0, what: str = "long answers are under way"):
        """Take how many there are, the part that one visitor may have, and what they are."""
        self.places = places
        self.share = share_of(places, part)
        self._what = what
        self._lock = threading.Lock()
        self._of: Counter[str | None] = Counter()

    @property
    def taken(self) -> int:
        """How many places are taken."""
        with self._lock:
            return self._of.total()

    @contextmanager
    def place(self, visitor: str | None = None) -> Iterator[None]:
        """Take a place for as long as the context lasts; `None` is bound by no share.

        Raises:
            LimitError: If none is free, or the visitor has as many as one may have.
        """
        with self._lock:
            if self._of.total() >= self.places:
                raise LimitError(f"too many {self._what}; try again soon", RETRY_S)
            if visitor is not None and self._of[visitor] >= self.share:
                raise LimitError(
                    f"too many {self._what} of yours, {self.share}; try again soon", RETRY_S
                )
            self._of[visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._of[visitor] -= 1
                if not self._of[visitor]:
                    del self._of[visitor]


class Answers:
    """Answers that were begun, counted by the class of their status."""

    def __init__(self) -> None:
        """Begin with none. Only the event loop counts."""
        self._of: Counter[int] = Counter()

    def add(self, status: int) -> None:
        """Count an answer."""
        self._of[status // 100] += 1

    def by_class(self) -> dict[str, int]:
        """Return how many there were of each class, as `2xx`."""
        return {f"{number}xx": self._of[number] for number in range(1, 6)}


class Turns:
    """Requests of one visitor that are worked on at a time; others of theirs wait."""

    def __init__(self, most: int) -> None:
        """Take how many there may be."""
        self._most = most
        self._of: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, visitor: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as the context lasts."""
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
