"""Threads for what takes long, so that one request does not hold up the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from starlette.responses import Response

from swathe.core.host import cores
from swathe.portal.vo.errors import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send
    from typing_extensions import Buffer

MOST_WAITING = 200
"""Requests that wait for a thread or have one; more are told to come again."""

MOST_BYTES = 1_000_000_000
"""Of large answers that are made or sent; some clients are slow to take them."""
PIECE_BYTES = 1 << 20

T = TypeVar("T")


class Memory:
    """Bytes that large answers may take together."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        """Take how many."""
        self._lock = threading.Lock()
        self._free = most

    def take(self, size: int) -> Share:
        """Give a share, to be released when the answer is sent.

        Raises:
            VoError: where so much is not free.
        """
        with self._lock:
            if size > self._free:
                raise busy("other large cuts are being made or sent")
            self._free -= size
        return Share(self, size)

    def give_back(self, size: int) -> None:
        """Take back what a share had."""
        with self._lock:
            self._free += size


class Share:
    """A part of the memory; it comes back when nobody has it any more, or before."""

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory, self._size = memory, size

    def release(self) -> None:
        """Give it back, once."""
        size, self._size = self._size, 0
        self._memory.give_back(size)

    def __enter__(self) -> Share:
        """Hold it."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Give it back."""
        self.release()

    def __del__(self) -> None:
        self.release()


class LargeAnswer(Response):
    """An answer that holds its share of the memory until it is sent.

    It is sent as it is in memory, a piece at a time: nobody else is answered while it is copied.
    """

    def __init__(
        self, share: Share, parts: Sequence[Buffer], headers: Mapping[str, str], media_type: str
    ) -> None:
        """Take the share, and what to send."""
        self._share = share
        self._parts = [memoryview(part).cast("B") for part in parts]
        length = str(sum(map(len, self._parts)))
        super().__init__(b"", 200, {**headers, "Content-Length": length}, media_type)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        begin = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(begin)
            for part in self._parts:
                for at in range(0, len(part), PIECE_BYTES):
                    piece = bytes(part[at : at + PIECE_BYTES])
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._parts.clear()
            self._share.release()


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
            done = self._pool.submit(copy_context().run, work)
        except BaseException:
            self._room.release()
            raise
        # Also of work that is given up before it begins.
        done.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(done)
