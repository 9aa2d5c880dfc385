"""Long responses: each uses a thread from time to time, and one of a limited number of slots."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import StreamingResponse

from swathe.core.errors import LimitError
from swathe.portal.http.shares import Shares

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
    from contextlib import AbstractContextManager

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")
LOOK_S = 0.5
"""Interval between checks whether a client is still connected."""
RETRY_S = 5
"""Delay suggested to a client before it tries again, seconds."""


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, which is cancelled if the client disconnects."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            finished_tasks, _ = await asyncio.wait({task}, timeout=LOOK_S)
            if finished_tasks:
                return task.result()
            if await request.is_disconnected():
                raise LimitError("the client has disconnected", RETRY_S)
    finally:
        task.cancel()


class Streams:
    """Slots for long responses, with their own threads, so that short requests need not wait."""

    def __init__(self, places: int, part: float = 1.0) -> None:
        """Set the number of slots, and the part of them that one visitor may use."""
        self._shares = Shares(places, part)
        self._threads = ThreadPoolExecutor(places, "swathe-streams")

    @property
    def places_in_use(self) -> int:
        """Number of slots in use."""
        return self._shares.places_in_use

    def of(self, visitor: str) -> VisitorStreams:
        """Return the slots of one visitor."""
        return VisitorStreams(self, visitor)

    def place(self, visitor: str) -> AbstractContextManager[None]:
        """Return a context that holds a slot.

        Entering raises LimitError if no slot is free, or the visitor has reached the limit.
        """
        return self._shares.place(visitor)

    async def wait_for(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run waiting work in a thread. If the client disconnects, do not wait for its end.

        There are never more threads than slots. `work` gets a function that returns whether the
        client has disconnected; it must end soon after that.
        """
        cancelled = threading.Event()
        future = self._threads.submit(copy_context().run, work, cancelled.is_set)
        try:
            return await asyncio.wrap_future(future)
        finally:
            cancelled.set()


class VisitorStreams:
    """The slots of one visitor."""

    def __init__(self, streams: Streams, visitor: str) -> None:
        """Set all slots, and the visitor who uses them."""
        self._streams = streams
        self._visitor = visitor

    def place(self) -> AbstractContextManager[None]:
        """Return a context that holds a slot, as `Streams.place`."""
        return self._streams.place(self._visitor)

    async def wait_for(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run waiting work in a thread, as `Streams.wait_for`."""
        return await self._streams.wait_for(work)


class LongResponse(StreamingResponse):
    """A response that holds a slot while it is sent."""

    def __init__(
        self,
        streams: VisitorStreams,
        parts: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(parts, headers=headers, media_type=media_type)
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        with self._streams.place():
            await super().__call__(scope, receive, send)


class GeneratedResponse(StreamingResponse):
    """A response made in threads, each part when the one before was sent.

    An error before the first part gives an ordinary error response. At the end of the response its
    generator is told to stop and closed, by the thread that runs it then.
    """

    def __init__(
        self,
        streams: VisitorStreams,
        make: Callable[[Callable[[], bool]], Iterator[bytes]],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> None:
        """Set the generator of parts: `make(gone)`, with `gone()` true after a disconnect."""
        self._streams = streams
        self._disconnect = threading.Event()
        self._turn = _Turn(make(self._disconnect.is_set))
        super().__init__(self._parts(), status, headers, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        with self._streams.place():
            try:
                self._first = await self._next()
                await super().__call__(scope, receive, send)
            finally:
                self._disconnect.set()
                self._turn.end()

    async def _parts(self) -> AsyncIterator[bytes]:
        part = self._first
        while part is not None:
            yield part
            part = await self._next()

    async def _next(self) -> bytes | None:
        return await self._streams.wait_for(lambda _cancelled: self._turn.next())


class _Turn:
    """A generator that may be ended while a thread still runs it."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._busy = threading.Lock()
        self._is_over = False

    def next(self) -> bytes | None:
        with self._busy:
            part = None if self._is_over else next(self._parts, None)
        if self._is_over:
            self._close()
        return part

    def end(self) -> None:
        self._is_over = True
        self._close()

    def _close(self) -> None:
        # If a thread is running it, that thread closes it afterwards.
        if self._busy.acquire(blocking=False):
            try:
                if (close := getattr(self._parts, "close", None)) is not None:
                    close()
            finally:
                self._busy.release()
