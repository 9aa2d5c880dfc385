"""Threads for long work, so that one request does not delay the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from swathe.core.host import cores
from swathe.portal.vo.errors import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send
    from typing_extensions import Buffer

MOST_WAITING = 200
"""Maximum number of requests that wait for a thread or have one; more are refused for now."""

MOST_BYTES = 1_000_000_000
"""Memory for large responses that are made or sent, bytes; some clients read slowly."""
PIECE_BYTES = 1 << 20

T = TypeVar("T")


class ResponseMemory:
    """Memory budget of large responses."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        """Set the budget, bytes."""
        self._lock = threading.Lock()
        self._free = most

    def take(self, size: int) -> MemoryShare:
        """Reserve a share, to be released when the response is sent.

        Raises:
            VoError: If too little is free.
        """
        with self._lock:
            if size > self._free:
                raise busy("too many large cuts are being made or sent; try again soon")
            self._free -= size
        return MemoryShare(self, size)

    def give_back(self, size: int) -> None:
        """Return the memory of a share to the budget."""
        with self._lock:
            self._free += size


class MemoryShare:
    """A reserved part of the memory, released on deletion or before."""

    def __init__(self, memory: ResponseMemory, size: int) -> None:
        self._memory, self._size = memory, size

    def release(self) -> None:
        """Release the memory, once."""
        size, self._size = self._size, 0
        self._memory.give_back(size)

    def __enter__(self) -> MemoryShare:
        """Return the share itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Release the memory."""
        self.release()

    def __del__(self) -> None:
        self.release()


class LargeResponse(Response):
    """A response that holds its share of the memory until it is sent.

    It is sent uncopied, one piece at a time, so that other requests are served meanwhile.
    """

    def __init__(
        self,
        share: MemoryShare,
        parts: Sequence[Buffer],
        headers: Mapping[str, str],
        media_type: str,
    ) -> None:
        """Set the share, and the parts to send."""
        self._share = share
        self._parts = [memoryview(part).cast("B") for part in parts]
        length = str(sum(map(len, self._parts)))
        super().__init__(b"", 200, {**headers, "Content-Length": length}, media_type)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the response."""
        begin = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(begin)
            for part in self._parts:
                for at in range(0, len(part), PIECE_BYTES):
                    piece = bytes(part[at : at + PIECE_BYTES])
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    # A client that reads as fast as it is sent never makes `send` wait.
                    await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._parts.clear()
            self._share.release()


@dataclass
class _Share:
    """What an owner has of the threads.

    Attributes:
        threads: those that are left.
        requests: how many wait for one or have one.
    """

    threads: asyncio.Semaphore
    requests: int = 0


class ThreadLimit:
    """A limited number of threads for long work, with a limited queue."""

    def __init__(self, threads: int = 0, most: int = MOST_WAITING) -> None:
        """Set up the pool, whose threads start on first use.

        Args:
            threads: number of threads; 0: two for each core, at least four.
            most: largest number of requests that wait for a thread or have one.
        """
        threads = threads or max(4, 2 * cores())
        self._pool = ThreadPoolExecutor(threads, "vo")
        self._most_of_one = max(1, threads // 2)
        self._room = threading.BoundedSemaphore(most)
        self._most = most
        self._in_flight: dict[str, asyncio.Task[Any]] = {}
        self._shares: dict[str, _Share] = {}

    async def run_of(self, owner: str, work: Callable[[], T]) -> T:
        """Run work of an owner, who has at most half of the threads; the rest waits in turn.

        Raises:
            VoError: If too many requests wait already, of all or of this owner.
        """
        share = self._shares.setdefault(owner, _Share(asyncio.Semaphore(self._most_of_one)))
        if share.requests >= self._most // 4:
            raise busy(f"too many of your requests are waiting, {share.requests}; try again soon")
        share.requests += 1
        try:
            async with share.threads:
                return await self.run(work)
        finally:
            share.requests -= 1
            if not share.requests:
                del self._shares[owner]

    async def run_once(self, key: str, work: Callable[[], T]) -> T:
        """Run work in a thread, unless equal work is running: then return what that returns.

        Raises:
            VoError: If too many requests wait already.
        """
        task = self._in_flight.get(key)
        if task is None:
            task = asyncio.create_task(self.run(work))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key))
        # Who leaves does not stop it for the others.
        result: T = await asyncio.shield(task)
        return result

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread.

        Raises:
            VoError: If too many requests wait already.
        """
        if not self._room.acquire(blocking=False):
            raise busy(f"too many requests are waiting, {self._most}; try again soon")
        try:
            future = self._pool.submit(copy_context().run, work)
        except BaseException:
            self._room.release()
            raise
        # This also runs for work that is cancelled before it begins.
        future.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(future)
