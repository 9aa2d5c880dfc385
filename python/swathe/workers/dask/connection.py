"""The connection to a scheduler: made again whenever it is lost, and what it tells of workers."""

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
from swathe.workers.pool import internal, pauses

if TYPE_CHECKING:
    from distributed.security import Security

    from swathe.workers.dask.state import Crew
    from swathe.workers.dask.tls import Address

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How often to look whether it is lost, or to end."""
WORKERS_S = 2.0
"""How often to ask which workers there are; news of them come at once."""
SILENT_S = 15.0
"""A scheduler that does not answer for so long counts as lost: its machine may be off."""


class _Client(Client):
    """A client that is of no more use when its connection is lost: another is made."""

    async def _reconnect(self) -> None:
        self.status, self.scheduler_comm = "connecting", None


class Connection:
    """What leads to the workers of a scheduler. For the thread of the pool's loop."""

    def __init__(
        self,
        address: Address,
        security: Security | None,
        crew: Crew,
        *,
        compare: Callable[[dict[str, Any]], None],
        hear: Callable[[Any], None],
        lost: Callable[[], None],
        part: Callable[[], Awaitable[bool]],
    ) -> None:
        """Take where the scheduler is, and who is to know what.

        Args:
            address: of the scheduler.
            security: certificates, where they are needed.
            crew: has the client, as long as there is one.
            compare: is told which workers there are, by address.
            hear: is told what a worker tells.
            lost: is told that the connection was lost.
            part: is asked, when all is to end, whether it may; it lets the workers go.
        """
        self.trouble = "not started"
        self._address, self._security, self._crew = address, security, crew
        self._url = address.url(security)
        self._compare, self._hear, self._lost, self._may_part = compare, hear, lost, part
        self._news = asyncio.Event()
        self._waits = pauses()

    async def keep(self, ending: asyncio.Event) -> None:
        """Keep a connection, as long as it takes to make one, until told to end."""
        self.trouble = f"{self._address}: connecting"
        while not ending.is_set():
            # What was wrong stays told while it is tried again: it is seen more often than not.
            fault = "the connection is lost"
            try:
                await reach(self._url, self._security, "client")
                async with self._client() as client:
                    await self._follow(client, ending)
            except (OSError, TimeoutError, ValueError, RuntimeError, SwatheError) as error:
                fault = str(error) or type(error).__name__
            except Exception as error:  # a fault of ours: with a new connection all begins anew
                log.exception("%s", self._address)
                fault = internal(error)
            finally:
                self._crew.client = None
            if ending.is_set():
                break
            pause_s = next(self._waits)
            self.trouble = f"{self._address}: {fault}"
            try:
                self._lost()
            except Exception:  # a fault of ours must not end the thread
                log.exception("%s: what was lost with the connection", self._address)
            log.warning("%s; trying again in %g s", self.trouble, pause_s)
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
        """Follow which workers there are, until the connection is lost or all is to end."""
        self._crew.client = client
        client.subscribe_topic("all", self._on_news)
        client.subscribe_topic(worker.TOPIC, self._on_member)
        self.trouble = ""
        while client.status == "running":
            self._news.clear()
            scheduler: Any = client.scheduler
            try:
                async with asyncio.timeout(SILENT_S):
                    known = await scheduler.identity(n_workers=-1)
            except TimeoutError as error:
                raise OSError(f"the scheduler says nothing in {SILENT_S:g} s") from error
            self._compare(known["workers"])
            self._waits = pauses()  # not before: a fault of ours may come again each time
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
        except Exception:  # theirs would be silent about it
            log.exception("%s: a worker told %r", self._address, event[1])
