"""Connection to a scheduler: it reconnects after a loss, and reports which workers exist."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from distributed import Client

from swathe.core.errors import SwatheError
from swathe.workers.dask import worker
from swathe.workers.dask.processes import CONNECT_S, reach
from swathe.workers.pool import describe_error, pauses

if TYPE_CHECKING:
    from distributed.security import Security

    from swathe.workers.dask.state import PoolState
    from swathe.workers.dask.tls import Address

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""Seconds between checks for a lost connection, or for the end."""
WORKERS_S = 2.0
"""Seconds between requests for the list of workers; changes are reported at once."""
SILENT_S = 15.0
"""Seconds without an answer after which a scheduler counts as lost: its machine may be off."""


class _Client(Client):
    """A client that is discarded when its connection is lost; a new one is created."""

    async def _reconnect(self) -> None:
        self.status, self.scheduler_comm = "connecting", None


class Connection:
    """Connection to the workers of a scheduler. Used by the thread of the pool's loop."""

    def __init__(
        self,
        address: Address,
        security: Security | None,
        crew: PoolState,
        *,
        compare: Callable[[dict[str, Any]], None],
        hear: Callable[[Any], None],
        note_loss: Callable[[], None],
        part: Callable[[], Awaitable[bool]],
    ) -> None:
        """Take the scheduler's address, and the callbacks.

        Args:
            address: address of the scheduler.
            security: certificates, if needed.
            crew: state of the pool; holds the client while connected.
            compare: called with the current workers, by address.
            hear: called with each message of a worker.
            note_loss: called when the connection is lost.
            part: called at the end; it releases the workers and returns whether it may end.
        """
        self.trouble = "not started"
        self._address, self._security, self._crew = address, security, crew
        self._url = address.url(security)
        self._compare, self._hear, self._note_loss, self._may_part = compare, hear, note_loss, part
        self._news = asyncio.Event()
        self._waits = pauses()

    async def keep(self, ending: asyncio.Event) -> None:
        """Keep a connection, and reconnect, until the end."""
        self.trouble = f"{self._address}: connecting"
        while not ending.is_set():
            # The last error stays visible while reconnecting: most of the time is spent waiting.
            fault = "the connection is lost"
            try:
                await reach(self._url, self._security, "client")
                async with self._client() as client:
                    await self._follow(client, ending)
            except (OSError, TimeoutError, ValueError, RuntimeError, SwatheError) as error:
                fault = str(error) or type(error).__name__
            except Exception as error:  # a bug: a new connection starts from a clean state
                log.exception("%s", self._address)
                fault = describe_error(error)
            finally:
                self._crew.client = None
            if ending.is_set():
                break
            pause_s = next(self._waits)
            self.trouble = f"{self._address}: {fault}"
            try:
                self._note_loss()
            except Exception:  # a bug must not end the thread
                log.exception("%s: could not handle the lost connection", self._address)
            log.warning("%s; next attempt in %g s", self.trouble, pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), pause_s)
        self.trouble = f"{self._address}: not connected"

    def _client(self) -> Client:
        return _Client(  # type: ignore[no-untyped-call]  # theirs
            self._url,
            asynchronous=True,
            security=self._security,
            timeout=CONNECT_S,
            set_as_default=False,
            direct_to_workers=False,
            name="swathe-portal",
        )

    async def _follow(self, client: Client, ending: asyncio.Event) -> None:
        """Watch which workers exist, until the connection is lost or the end."""
        self._crew.client = client
        client.subscribe_topic("all", self._on_news)
        client.subscribe_topic(worker.TOPIC, self._on_member)
        self.trouble = ""
        while client.status == "running":
            self._news.clear()
            scheduler: Any = client.scheduler
            try:
                async with asyncio.timeout(SILENT_S):
                    identity = await scheduler.identity(n_workers=-1)
            except TimeoutError as error:
                raise OSError(f"the scheduler did not answer in {SILENT_S:g} s") from error
            self._compare(identity["workers"])
            self._waits = pauses()  # not earlier: a bug could repeat each time
            if ending.is_set() and await self._may_part():
                for topic in ("all", worker.TOPIC):
                    client.unsubscribe_topic(topic)
                return
            until = time.monotonic() + (LOOK_S if ending.is_set() else WORKERS_S)
            while client.status == "running" and time.monotonic() < until:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_S)
                if self._news.is_set() or ending.is_set():
                    break

    def _on_news(self, event: Any) -> None:
        if isinstance(event[1], dict) and event[1].get("action") in ("add-worker", "remove-worker"):
            self._news.set()

    def _on_member(self, event: Any) -> None:
        try:
            self._hear(event[1])
        except Exception:  # Dask would hide the error
            log.exception("%s: unexpected message of a worker: %r", self._address, event[1])
