"""Who takes part in a pool of a scheduler: workers that come, leave, or are lost."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from swathe.workers.dask import worker as member
from swathe.workers.dask.processes import CONNECT_S
from swathe.workers.dask.sender import STOP_S
from swathe.workers.dask.state import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swathe.workers.dask.replication import Spreading
    from swathe.workers.dask.sender import Sending
    from swathe.workers.dask.state import Crew
    from swathe.workers.dask.worker_config import Briefing

log = logging.getLogger(__name__)

AGAIN_S = 10.0
"""When a worker that was refused is asked again."""
JOIN_S = 60.0


class Roster:
    """Keeps who takes part. For the thread of the pool's loop."""

    def __init__(
        self, name: str, crew: Crew, briefing: Briefing, sending: Sending, spreading: Spreading
    ) -> None:
        """Take whose workers they are, what they are told, and who gives again what they had."""
        self._name, self._crew, self._briefing = name, crew, briefing
        self._sending, self._spreading = sending, spreading
        self._ends_by: float | None = None

    def compare(self, found: dict[str, Any]) -> None:
        """Take note of workers that came, and of those that went."""
        workers = self._crew.workers
        for address in [each for each in workers if each not in found]:
            self._lose(address, died=not workers[address].leaving)
        now = time.monotonic()
        for address, told in found.items():
            worker = workers.get(address)
            if worker is None:
                worker = Worker(str(told["name"]), str(told["host"]), int(told["nthreads"]))
                workers[address] = worker
                self._ask(address, worker)
            elif worker.refused and now - worker.asked_at > AGAIN_S:
                self._ask(address, worker)

    def _ask(self, address: str, worker: Worker) -> None:
        worker.asked_at = time.monotonic()
        self._crew.spawn(self.join(address, worker))

    async def join(self, address: str, worker: Worker) -> None:
        """Let a worker join, or see why it cannot; tell it what is new."""
        async with worker.joining:
            client, (invitation, state) = self._crew.client, self._briefing.invitation
            if client is None or worker.state == state or worker.leaving:
                return
            try:
                answers = await asyncio.wait_for(
                    client.run(member.join, invitation, workers=[address]), JOIN_S
                )
                joined: member.Joined = answers[address]
            except Exception as error:  # whatever is wrong with it, it is its own
                joined = member.Joined(worker.host, 0, f"{type(error).__name__}: {error}")
            if self._crew.workers.get(address) is not worker or worker.leaving:
                return
            worker.host, worker.cache_bytes = joined.host, joined.cache_bytes
            worker.peer = joined.peer
            if joined.refused and joined.refused != worker.refused:
                log.warning("worker %s is refused: %s", worker.name, joined.refused)
            worker.refused = joined.refused
            if joined.refused:
                self._clear(address, worker)
                return
            worker.state = state
            if not worker.placed:
                self._crew.placement.join(address, worker.threads, joined.cache_bytes)
                worker.placed = True
            self._sending.place_all()

    def hear(self, told: Any) -> None:
        """Take what a worker tells of itself."""
        if (key := told.get("begun")) is not None:
            self._sending.begin(key)
        elif (worker := self._crew.workers.get(address := told.get("leaving", ""))) is not None:
            grace_s = float(told.get("grace_s", 0.0))
            if worker.leaving:
                # Its cache is on the way already.
                stay_s = 0.0 if worker.parted else grace_s
                self._crew.spawn(self._crew.ask(address, CONNECT_S, member.grant, stay_s))
            else:
                self._part_from(address, worker, grace_s)

    def let_go(self, names: Iterable[str]) -> None:
        """Give workers of these names nothing more."""
        for address, worker in self._crew.named(names).items():
            if not worker.leaving:
                self._part_from(address, worker, None)

    def _part_from(self, address: str, worker: Worker, grace_s: float | None) -> None:
        """Give a worker nothing more; what was sent to it may still come back."""
        worker.leaving = True
        self._crew.placement.leave(address)
        worker.placed = False
        held = dict(worker.held)
        worker.held.clear()
        for flight in [each for each in worker.flights.values() if each.task is None]:
            del worker.flights[flight.key]
            self._sending.again(flight)
        self._spreading.part(address, held, grace_s)
        self._sending.place_all()

    def lose_all(self) -> None:
        """Give all batches anew, once there is a connection again."""
        for address in list(self._crew.workers):
            self._lose(address, died=False)
        self._sending.place_all()

    def _lose(self, address: str, *, died: bool) -> None:
        """Forget a worker, and give what it had to others."""
        worker = self._crew.workers.pop(address)
        self._crew.rates.forget(address)
        sent = [flight for flight in worker.flights.values() if flight.task is not None]
        for place, flight in enumerate(sent):
            # It may not have come to tell what it began; batches are begun in their order.
            if died and (flight.began or place < worker.threads):
                flight.died()
        self._clear(address, worker)

    def _clear(self, address: str, worker: Worker) -> None:
        """Take from a worker all that it has."""
        self._crew.placement.leave(address)
        worker.placed, worker.state = False, ""
        worker.held.clear()
        flights = list(worker.flights.values())
        worker.flights.clear()
        for flight in flights:
            if flight.task is not None:
                flight.task.cancel()
            self._sending.again(flight)
        self._sending.place_all()

    async def part(self) -> bool:
        """Let workers go, once all is back: they may work for another portal at once."""
        self._ends_by = self._ends_by or time.monotonic() + STOP_S
        if self._sending.flights and time.monotonic() <= self._ends_by:
            return False
        if (client := self._crew.client) is not None:
            with suppress(OSError, TimeoutError, ValueError):
                await asyncio.wait_for(
                    client.run(member.leave, self._name, on_error="ignore"), CONNECT_S
                )
        return True
