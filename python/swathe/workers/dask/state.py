"""State of a pool: its workers, and what each has cached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.workers.placement.decide import MOST_PEERS, Placement
from swathe.workers.placement.rates import Rates
from swathe.workers.pool import HeldObject, Member

if TYPE_CHECKING:
    from distributed import Client

    from swathe.workers.dask.in_flight import PendingBatch
    from swathe.workers.dask.worker import Peer

log = logging.getLogger(__name__)

AHEAD = 2
"""Batches in flight per thread: the next has arrived when one ends."""


@dataclass(eq=False)
class WorkerEntry:
    """A worker that has joined, or tries to.

    Attributes:
        state: configuration it has; empty: none that it still knows.
        refusal: why it cannot join.
        is_placed: whether it may get batches.
        leaving: whether it gets no more batches.
        has_parted: whether it is leaving and has finished its batches and its hand-over.
    """

    name: str
    host: str
    threads: int
    state: str = ""
    cache_bytes: int = 0
    refusal: str = ""
    asked_at: float = 0.0
    leaving: bool = False
    has_parted: bool = False
    is_placed: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)
    flights: dict[str, PendingBatch] = field(default_factory=dict)
    cached_bytes: dict[str, int] = field(default_factory=dict)
    peer: Peer | None = None

    @property
    def status_text(self) -> str:
        """Why a worker that was not refused gets no batches; empty if it does."""
        if self.leaving:
            return "leaving"
        return "" if self.state else "joining"


class PoolState:
    """The workers of a pool. Used by the thread of its loop."""

    def __init__(self) -> None:
        """Start without workers."""
        self.client: Client | None = None
        self.workers: dict[str, WorkerEntry] = {}
        self.rates = Rates()
        self.placement = Placement(self.rates, ahead=AHEAD)
        # Objects that a leaving worker still has for others.
        self.leaver_of: dict[str, str] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def hold(self, address: str, cached_bytes: Mapping[str, int]) -> None:
        """Note what a worker has cached of objects."""
        worker = self.workers.get(address)
        if worker is None or not worker.is_placed:
            return
        for source, size in cached_bytes.items():
            if size:
                worker.cached_bytes[source] = size
                self.placement.hold(address, source, size)
            else:
                worker.cached_bytes.pop(source, None)
                self.placement.drop(address, source)

    def peers(self, source: str, asker: str, choice: str | None = None) -> list[Peer]:
        """Return the other holders of an object, the chosen peer first."""
        names = dict.fromkeys(self.placement.peers(source, asker, choice))
        if (leaver := self.leaver_of.get(source)) is not None:
            names[leaver] = None
        addresses = (self.workers[name].peer for name in names if name in self.workers)
        return [peer for peer in addresses if peer is not None][:MOST_PEERS]

    def status(self) -> tuple[list[Member], list[HeldObject]]:
        """Return the workers, and what they have cached."""
        workers, objects = [], []
        for each in self.workers.values():
            busy = sum(flight.began for flight in each.flights.values())
            held_bytes, worth_s = 0, 0.0
            for source, size in each.cached_bytes.items():
                objects.append(HeldObject(each.name, source, size))
                held_bytes += size
                if len(self.placement.holders(source)) == 1:
                    worth_s += self.rates.store_s(source, size)
            workers.append(
                Member(
                    name=each.name,
                    host=each.host,
                    threads=each.threads,
                    busy=busy,
                    waiting=len(each.flights) - busy,
                    cache_bytes=each.cache_bytes,
                    held_bytes=held_bytes,
                    refused=each.refusal or each.status_text,
                    worth_s=worth_s,
                    parted=each.has_parted,
                )
            )
        return workers, objects

    async def ask(
        self, address: str, limit_s: float, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Call a function of `worker.py` on a worker; return `None` if no answer comes in time."""
        if self.client is None:
            return None
        with suppress(OSError, TimeoutError, ValueError, RuntimeError):
            answers = await asyncio.wait_for(
                self.client.run(function, *arguments, workers=[address], on_error="ignore"), limit_s
            )
            return answers.get(address)
        return None

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background until the loop ends."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._log_end)
        return task

    def _log_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the pool: %s: %s", type(error).__name__, error, exc_info=error)

    def end(self) -> None:
        """Cancel all background tasks."""
        for task in self._tasks:
            task.cancel()
        self.workers.clear()

    def members_of(self, names: Iterable[str]) -> dict[str, WorkerEntry]:
        """Return the workers of these names, by address."""
        members = set(names)
        return {at: each for at, each in self.workers.items() if each.name in members}
