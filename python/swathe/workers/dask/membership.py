"""Membership of a pool: workers that join, leave, or are lost."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from swathe.workers.dask import worker as member
from swathe.workers.dask.processes import CONNECT_S
from swathe.workers.dask.sender import STOP_S
from swathe.workers.dask.state import WorkerEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swathe.workers.dask.replication import Replication
    from swathe.workers.dask.sender import BatchSender
    from swathe.workers.dask.state import PoolState
    from swathe.workers.dask.worker_config import WorkerConfig

log = logging.getLogger(__name__)

AGAIN_S = 10.0
"""Seconds until a refused worker is asked again."""
JOIN_S = 60.0


class Membership:
    """Membership of the workers. Used by the thread of the pool's loop."""

    def __init__(
        self,
        name: str,
        crew: PoolState,
        briefing: WorkerConfig,
        sending: BatchSender,
        spreading: Replication,
    ) -> None:
        """Take the pool's name and state, the configuration, the sender and the replication."""
        self._name, self._crew, self._briefing = name, crew, briefing
        self._sending, self._spreading = sending, spreading
        self._ends_by: float | None = None

    def compare(self, present: dict[str, Any]) -> None:
        """Note which workers appeared and which disappeared."""
        workers = self._crew.workers
        for address in [each for each in workers if each not in present]:
            self._lose(address, has_died=not workers[address].leaving)
        now = time.monotonic()
        for address, info in present.items():
            worker = workers.get(address)
            if worker is None:
                worker = WorkerEntry(str(info["name"]), str(info["host"]), int(info["nthreads"]))
                workers[address] = worker
                self._ask(address, worker)
            elif worker.refusal and now - worker.asked_at > AGAIN_S:
                self._ask(address, worker)

    def _ask(self, address: str, worker: WorkerEntry) -> None:
        worker.asked_at = time.monotonic()
        self._crew.spawn(self.join(address, worker))

    async def join(self, address: str, worker: WorkerEntry) -> None:
        """Let a worker join, or note why it cannot; send it changes of the configuration."""
        async with worker.joining:
            client, (invitation, state) = self._crew.client, self._briefing.invitation
            if client is None or worker.state == state or worker.leaving:
                return
            try:
                answers = await asyncio.wait_for(
                    client.run(member.join, invitation, workers=[address]), JOIN_S
                )
                reply: member.JoinReply = answers[address]
            except Exception as error:  # any error concerns only this worker
                reply = member.JoinReply(worker.host, 0, f"{type(error).__name__}: {error}")
            if self._crew.workers.get(address) is not worker or worker.leaving:
                return
            worker.host, worker.cache_bytes = reply.host, reply.cache_bytes
            worker.peer = reply.peer
            if reply.refusal and reply.refusal != worker.refusal:
                log.warning("worker %s is refused: %s", worker.name, reply.refusal)
            worker.refusal = reply.refusal
            if reply.refusal:
                self._clear(address, worker)
                return
            worker.state = state
            if not worker.is_placed:
                self._crew.placement.join(address, worker.threads, reply.cache_bytes)
                worker.is_placed = True
            self._sending.place_all()

    def hear(self, message: Any) -> None:
        """Handle a message of a worker."""
        if (key := message.get("begun")) is not None:
            self._sending.begin(key)
        elif (worker := self._crew.workers.get(address := message.get("leaving", ""))) is not None:
            grace_s = float(message.get("grace_s", 0.0))
            if worker.leaving:
                # Its hand-over has already started.
                stay_s = 0.0 if worker.has_parted else grace_s
                self._crew.spawn(self._crew.ask(address, CONNECT_S, member.grant, stay_s))
            else:
                self._part_from(address, worker, grace_s)

    def let_go(self, names: Iterable[str]) -> None:
        """Send nothing more to the workers of these names."""
        for address, worker in self._crew.members_of(names).items():
            if not worker.leaving:
                self._part_from(address, worker, None)

    def _part_from(self, address: str, worker: WorkerEntry, grace_s: float | None) -> None:
        """Send nothing more to a worker; its results may still arrive."""
        worker.leaving = True
        self._crew.placement.leave(address)
        worker.is_placed = False
        cached_bytes = dict(worker.cached_bytes)
        worker.cached_bytes.clear()
        for flight in [each for each in worker.flights.values() if each.task is None]:
            del worker.flights[flight.key]
            self._sending.again(flight)
        self._spreading.part(address, cached_bytes, grace_s)
        self._sending.place_all()

    def lose_all(self) -> None:
        """Requeue all batches, for the next connection."""
        for address in list(self._crew.workers):
            self._lose(address, has_died=False)
        self._sending.place_all()

    def _lose(self, address: str, *, has_died: bool) -> None:
        """Forget a worker, and requeue its batches."""
        worker = self._crew.workers.pop(address)
        self._crew.rates.forget(address)
        flights = [flight for flight in worker.flights.values() if flight.task is not None]
        for place, flight in enumerate(flights):
            # Its last message may be lost; batches are begun in order.
            if has_died and (flight.began or place < worker.threads):
                flight.add_death()
        self._clear(address, worker)

    def _clear(self, address: str, worker: WorkerEntry) -> None:
        """Take all batches from a worker."""
        self._crew.placement.leave(address)
        worker.is_placed, worker.state = False, ""
        worker.cached_bytes.clear()
        flights = list(worker.flights.values())
        worker.flights.clear()
        for flight in flights:
            if flight.task is not None:
                flight.task.cancel()
            self._sending.again(flight)
        self._sending.place_all()

    async def part(self) -> bool:
        """Release the workers once all results are back: another portal may use them at once."""
        self._ends_by = self._ends_by or time.monotonic() + STOP_S
        if self._sending.flights and time.monotonic() <= self._ends_by:
            return False
        if (client := self._crew.client) is not None:
            with suppress(OSError, TimeoutError, ValueError):
                await asyncio.wait_for(
                    client.run(member.leave, self._name, on_error="ignore"), CONNECT_S
                )
        return True
