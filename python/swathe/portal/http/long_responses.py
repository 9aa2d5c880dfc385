"""Answers that go on for long: each holds a thread now and then, and one of a few places."""

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
"""How often to look whether a client is still there."""
RETRY_S = 5
"""When to try again what a client went away from."""


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what work gives; it is cancelled when the client is gone."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=LOOK_S)
            if done:
                return task.result()
            if await request.is_disconnected():
                raise LimitError("the client is gone", RETRY_S)
    finally:
        task.cancel()


class Streams:
    """Places for such answers. Their threads are their own: short requests need not wait."""

    def __init__(self, places: int, part: float = 1.0) -> None:
        """Take how many there may be at a time, and the part of them that one visitor may have."""
        self._shares = Shares(places, part)
        self._threads = ThreadPoolExecutor(places, "swathe-streams")

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._shares.taken

    def of(self, visitor: str) -> Seats:
        """Return the places as one visitor has them."""
        return Seats(self, visitor)

    def place(self, visitor: str) -> AbstractContextManager[None]:
        """Return a place, which is taken for as long as the context lasts.

        Entering raises LimitError where none is free, or the visitor has as many as one may have.
        """
        return self._shares.place(visitor)

    async def wait_for(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run what waits in a thread. A client that goes away does not wait for its end.

        There are never more threads than places: work is called with what tells that the client
        is gone, and is to end soon then.
        """
        gone = threading.Event()
        begun = self._threads.submit(copy_context().run, work, gone.is_set)
        try:
            return await asyncio.wrap_future(begun)
        finally:
            gone.set()


class Seats:
    """The places of a portal as one visitor has them."""

    def __init__(self, streams: Streams, visitor: str) -> None:
        """Take the places, and who asks for them."""
        self._streams = streams
        self._visitor = visitor

    def place(self) -> AbstractContextManager[None]:
        """Return a place, as `Streams.place`."""
        return self._streams.place(self._visitor)

    async def wait_for(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run what waits in a thread, as `Streams.wait_for`."""
        return await self._streams.wait_for(work)


class LongAnswer(StreamingResponse):
    """An answer that holds a place while it goes on."""

    def __init__(
        self,
        streams: Seats,
        parts: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(parts, headers=headers, media_type=media_type)
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._streams.place():
            await super().__call__(scope, receive, send)


class MadeAnswer(StreamingResponse):
    """An answer made in threads, each part when the one before was taken.

    An error before the first part is told as any other. However the answer ends, what it is made by
    is told so, and its generator is closed, by whichever thread has it then.
    """

    def __init__(
        self,
        streams: Seats,
        make: Callable[[Callable[[], bool]], Iterator[bytes]],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> None:
        """Make it by what gives the parts when called with what tells that the client is gone."""
        self._streams = streams
        self._gone = threading.Event()
        self._turn = _Turn(make(self._gone.is_set))
        super().__init__(self._parts(), status, headers, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._streams.place():
            try:
                self._first = await self._next()
                await super().__call__(scope, receive, send)
            finally:
                self._gone.set()
                self._turn.end()

    async def _parts(self) -> AsyncIterator[bytes]:
        part = self._first
        while part is not None:
            yield part
            part = await self._next()

    async def _next(self) -> bytes | None:
        return await self._streams.wait_for(lambda _gone: self._turn.next())


class _Turn:
    """A generator that may be ended while a thread is still in it."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._busy = threading.Lock()
        self._ended = False

    def next(self) -> bytes | None:
        with self._busy:
            part = None if self._ended else next(self._parts, None)
        if self._ended:
            self._close()
        return part

    def end(self) -> None:
        self._ended = True
        self._close()

    def _close(self) -> None:
        # Who is busy with it closes it afterwards.
        if self._busy.acquire(blocking=False):
            try:
                if (close := getattr(self._parts, "close", None)) is not None:
                    close()
            finally:
                self._busy.release()
