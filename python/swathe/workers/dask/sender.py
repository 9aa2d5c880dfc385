"""Batches on their way: which worker gets each, what comes back, and what is given again."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from swathe.catalog.records.jobs import ChunkResult
from swathe.workers.dask import worker as member
from swathe.workers.dask.state import AHEAD
from swathe.workers.placement.decide import Work
from swathe.workers.placement.rates import ComputeRates
from swathe.workers.pool import TrafficCounts, internal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from distributed import Client, Future

    from swathe.workers.batch import Batch
    from swathe.workers.dask.in_flight import PendingBatch
    from swathe.workers.dask.state import Crew, Worker
    from swathe.workers.dask.worker_config import Briefing

log = logging.getLogger(__name__)

LITTLE = 0.01
"""Of what a batch finds in its worker's cache: it may fetch so much and still tell what computing
takes."""
LOOK_S = 0.02
STOP_S = 10.0
"""A batch that was stopped and does not come back for so long is given up."""


class Sending:
    """Sends batches to workers. For the thread of the pool's loop."""

    def __init__(
        self,
        name: str,
        crew: Crew,
        briefing: Briefing,
        batch_s: float,
        *,
        join: Callable[[str, Worker], Awaitable[None]],
        copy: Callable[[str, str], None],
        keep: Callable[[PendingBatch, ChunkResult], None],
        changed: Callable[[], None],
    ) -> None:
        """Take whose batches they are, who is there, and what these are told.

        Args:
            name: of the pool: no other has it.
            crew: the workers.
            briefing: what they are told, and of which objects they keep blocks.
            batch_s: how long a batch is to take, of which nothing was predicted.
            join: tells a worker, by its address, what is new.
            copy: has an object copied to a worker.
            keep: is told what became of a batch.
            changed: is told when another batch may be wanted, or no longer.
        """
        self.flights: dict[PendingBatch, None] = {}
        self.moved = TrafficCounts()
        self._name, self._crew, self._briefing, self._batch_s = name, crew, briefing, batch_s
        self._join, self._copy, self._keep, self._changed = join, copy, keep, changed
        self._by_key: dict[str, PendingBatch] = {}
        self._pending: deque[PendingBatch] = deque()
        self._paces = ComputeRates()
        self._spread = False

    @property
    def room(self) -> int:
        """How many more batches are wanted."""
        if self._spread:
            # Some are placed and not sent, where it matters who does them.
            return int(self._crew.placement.room) - len(self._pending)
        ready = [each for each in self._crew.workers.values() if each.placed]
        return AHEAD * sum(each.threads for each in ready) - len(self.flights)

    def begin(self, key: str) -> None:
        """Note that a worker has begun with a batch."""
        if (flight := self._by_key.get(key)) is not None:
            flight.began = True
            self._crew.placement.begin(key, time.monotonic())

    def accept(self, flight: PendingBatch) -> None:
        """Take a batch that was wanted."""
        self.flights[flight] = None
        self._pending.append(flight)
        self._spread = bool(flight.objects)
        self.place_all()

    def place_all(self) -> None:
        """Give what waits to workers that have room."""
        while self._pending and self._crew.client is not None:
            flight = self._pending[0]
            if flight not in self.flights:
                self._pending.popleft()
                continue
            flight.key = f"batch-{self._name}-{flight.number}-{time.monotonic_ns()}"
            try:
                placed = self._crew.placement.place(
                    flight.key, self._work(flight), time.monotonic()
                )
            except Exception as error:  # those behind it are to get their turn
                log.exception("batch %d: cannot be placed", flight.number)
                self.give_back(flight, _failed(error))
                continue
            if placed is None:
                break
            self._pending.popleft()
            worker = self._crew.workers[placed.worker]
            flight.worker, flight.fetch = placed.worker, placed.fetch
            flight.near = bool(flight.objects) and all(
                name in worker.held for name in flight.objects
            )
            worker.flights[flight.key] = self._by_key[flight.key] = flight
            if not placed.parked:
                self._depart(flight)
            for source, heir in placed.copies:
                self._copy(source, heir)
        self._changed()

    def _work(self, flight: PendingBatch) -> Work:
        """Say what a batch will take: as predicted, and as others took beside what was of them."""
        batch = flight.batch
        return Work(flight.objects, self._paces.expected_s(batch.job, self._predicted_s(batch)))

    def _predicted_s(self, batch: Batch) -> float:
        """Give the seconds of computing that were predicted, or else those it is to take."""
        return len(batch.rows) * batch.row_s or self._batch_s

    def _peers(self, flight: PendingBatch) -> dict[str, list[member.Peer]]:
        """Give who else has blocks of the objects of a batch, the one that was chosen first."""
        return {
            source: self._crew.peers(source, flight.worker, flight.fetch.get(source))
            for source in flight.objects
        }

    def _depart(self, flight: PendingBatch) -> None:
        """Send a batch to its worker."""
        if self._crew.client is not None:
            worker = self._crew.workers[flight.worker]
            flight.task = self._crew.spawn(self._fly(self._crew.client, worker, flight))

    async def _fly(self, client: Client, worker: Worker, flight: PendingBatch) -> None:
        """Have a batch done, and give back what became of it, whatever goes wrong."""
        try:
            await self._carry(client, worker, flight)
        except Exception as error:  # a fault of ours: nobody else knows of this batch
            if client.status == "running" and self._crew.workers.get(flight.worker) is worker:
                log.exception("batch %d: cannot be carried", flight.number)
                self.give_back(flight, _failed(error))
            # Else it is given again when that is seen.
        self.place_all()

    async def _peers_have_it(self, flight: PendingBatch) -> None:
        """Wait for peers that still fetch what is to come of them, no longer than the store takes.

        That they have it sooner is what was predicted when it was placed.
        """
        placement, rates = self._crew.placement, self._crew.rates
        for source, peer in flight.fetch.items():
            until = time.monotonic() + rates.store_s(source, flight.objects[source])
            while peer is not None and placement.is_coming(peer, source):
                if time.monotonic() >= until:
                    return
                await asyncio.sleep(LOOK_S)

    async def _carry(self, client: Client, worker: Worker, flight: PendingBatch) -> None:
        address, key = flight.worker, flight.key
        await self._peers_have_it(flight)
        if self._by_key.get(key) is not flight or self._crew.workers.get(address) is not worker:
            return  # it was given to another in the meantime, or given up
        state = self._briefing.invitation[1]
        if worker.state != state:
            await self._join(address, worker)
        future: Future[member.Worked] = client.submit(
            member.work,
            key,
            state,
            flight.payload,
            self._peers(flight),
            key=key,
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        try:
            worked = await future
            done: ChunkResult = pickle.loads(worked.done)
        except member.NotJoinedError:
            worker.state = ""
            self._land(worker, flight)
            self.again(flight)
        except Exception as error:  # of a batch that cannot be carried, or a worker that went
            if future.status != "error" or self._crew.workers.get(address) is not worker:
                return  # it is given again when the worker is seen to be gone
            self._land(worker, flight)
            failure = f"internal: worker {worker.name}: {type(error).__name__}: {error}"
            self.give_back(flight, ChunkResult([], complete=False, failure=failure))
        else:
            self._land(worker, flight)
            self._crew.hold(address, worked.held)
            self._crew.rates.learn(address, worked.costs)
            self.moved = self.moved.with_done(done, near=flight.near)
            if done.complete and _computed(flight, done):
                predicted_s = self._predicted_s(flight.batch)
                self._paces.learn(flight.batch.job, predicted_s, done.seconds)
            self.give_back(flight, done)
        finally:
            future.release()

    def _land(self, worker: Worker, flight: PendingBatch) -> None:
        worker.flights.pop(flight.key, None)
        self._by_key.pop(flight.key, None)
        for key in self._crew.placement.end(flight.key, time.monotonic()):
            self._depart(self._by_key[str(key)])

    def again(self, flight: PendingBatch) -> None:
        """Put a batch that was lost first in the queue, unless it is to blame."""
        try:
            self._again(flight)
        except Exception as error:  # others were lost with it, and are to be given again
            log.exception("batch %d: cannot be given again", flight.number)
            self.give_back(flight, _failed(error))

    def _again(self, flight: PendingBatch) -> None:
        self._by_key.pop(flight.key, None)
        flight.reset()
        if flight.told_at is not None:
            self.give_back(flight, ChunkResult([], complete=False))
            return
        if flight not in self.flights:
            return
        verdict = flight.verdict()
        if verdict is None:
            self._pending.appendleft(flight)
        elif isinstance(verdict, ChunkResult):
            self.give_back(flight, verdict)
        else:
            for half in verdict:
                half.objects = self._briefing.objects(half.batch)
            del self.flights[flight]
            self.flights.update(dict.fromkeys(verdict))
            self._pending.extendleft(reversed(verdict))

    def give_back(self, flight: PendingBatch, done: ChunkResult) -> None:
        """Have what became of a batch kept, by another thread."""
        if flight not in self.flights:
            return
        del self.flights[flight]
        if flight.worker and (worker := self._crew.workers.get(flight.worker)) is not None:
            self._land(worker, flight)
        if flight.whole is not None:
            whole = flight.whole.add(done)
            if whole is None:
                return
            done = whole
        self._keep(flight, done)

    def note_moved(self, **more: int) -> None:
        """Count what went from worker to worker besides batches."""
        was = self.moved
        self.moved = replace(was, **{name: getattr(was, name) + more[name] for name in more})

    async def look(self) -> None:
        """See which batches are to stop, and have them stopped."""
        flights = [each for each in self.flights if each.told_at is None]
        found = await asyncio.to_thread(_asked_to_stop, flights)
        self._stop_flights([each for each in found if each[0] in self.flights])
        now = time.monotonic()
        for flight in list(self.flights):
            if flight.told_at is not None and now - flight.told_at > STOP_S:
                self.give_back(flight, ChunkResult([], complete=False))
        self._changed()

    def _stop_flights(self, found: Sequence[tuple[PendingBatch, Exception | None]]) -> None:
        """Tell workers to stop; what is not with them, or failed, is given back at once."""
        keys: dict[str, list[str]] = {}
        for flight, error in found:
            flight.told_at = time.monotonic()
            if flight.task is not None:
                keys.setdefault(flight.worker, []).append(flight.key)
            if error is not None:
                self.give_back(flight, _failed(error))
            elif flight.task is None:
                self.give_back(flight, ChunkResult([], complete=False))
        if keys and self._crew.client is not None:
            every = [key for of_worker in keys.values() for key in of_worker]
            self._crew.spawn(self._tell_to_stop(self._crew.client, every, list(keys)))

    async def _tell_to_stop(self, client: Client, keys: list[str], workers: list[str]) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            await asyncio.wait_for(
                client.run(member.stop, keys, workers=workers, on_error="ignore"), STOP_S
            )


def _asked_to_stop(flights: Sequence[PendingBatch]) -> list[tuple[PendingBatch, Exception | None]]:
    """Give the batches that are to stop, and those of which that cannot be told, and why."""
    found: list[tuple[PendingBatch, Exception | None]] = []
    for flight in flights:
        try:
            if flight.stopped():
                found.append((flight, None))
        except Exception as error:
            log.exception("batch %d: cannot be told whether to stop", flight.number)
            found.append((flight, error))
    return found


def _computed(flight: PendingBatch, done: ChunkResult) -> bool:
    """Tell whether a batch took what it takes to compute it: it fetched nothing to speak of."""
    fetched = done.bytes_moved + done.from_peers[0]
    return not flight.objects or fetched <= LITTLE * done.from_cache[0]


def _failed(error: Exception) -> ChunkResult:
    return ChunkResult([], complete=False, failure=internal(error))
