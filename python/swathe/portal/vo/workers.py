"""Threads for what takes long, so that one request does not hold up the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from swathe.environment import cores
from swathe.portal.vo.faults import busy

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WAITING = 200
"""Requests that wait for a thread or have one; more are told to come again."""

T = TypeVar("T")


class Workers:
    """A few threads for what takes long, and few who wait for them."""

    def __init__(self) -> None:
        """Make them when they are needed."""
        self._pool = ThreadPoolExecutor(max(4, 2 * cores()), "vo")
        self._room = threading.BoundedSemaphore(MOST_WAITING)

    async def run(self, work: Callable[[], T]) -> T:
        """Let a thread do the work.

        Raises:
            VoError: where too many wait already.
        """
        if not self._room.acquire(blocking=False):
            raise busy(f"{MOST_WAITING} requests are waiting already")
        try:
            done = self._pool.submit(work)
        except BaseException:
            self._room.release()
            raise
        # Also of work that is given up before it begins.
        done.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(done)
