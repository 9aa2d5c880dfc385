"""Sending of batches: choice of the worker, results, and retries."""

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
from swathe.workers.placement.decide import BatchWork
from swathe.workers.placement.rates import ComputeRates
from swathe.workers.pool import TrafficCounts, describe_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from distributed import Client, Future

    from swathe.workers.batch import Batch
    from swathe.workers.dask.in_flight import PendingBatch
    from swathe.workers.dask.state import PoolState, WorkerEntry
    from swathe.workers.dask.worker_config import WorkerConfig

log = logging.getLogger(__name__)

LITTLE = 0.01
"""Fraction of a batch's input that may come from elsewhere than the cache for its time to count as
computing time."""
LOOK_S = 0.02
STOP_S = 10.0
"""Seconds after which a stopped batch that has not returned is given up."""


class BatchSender:
    """Sends batches to workers. Used by the thread of the pool's loop."""

    def __init__(
        self,
        name: str,
        crew: PoolState,
        briefing: WorkerConfig,
        batch_s: float,
        *,
        join: Callable[[str, WorkerEntry], Awaitable[None]],
        copy: Callable[[str, str], None],
        keep: Callable[[PendingBatch, ChunkResult], None],
        note_room: Callable[[], None],
    ) -> None:
        """Take the pool's name and state, the worker configuration, and the callbacks.

        Args:
            name: name of the pool; unique.
            crew: state of the workers.
            briefing: worker configuration, and the objects that workers cache.
            batch_s: assumed duration of a batch without prediction.
            join: sends changes of the configuration to a worker, by its address.
            copy: copies an object to a worker.
            keep: called with the result of a batch.
            note_room: called if the number of batches that can be accepted may have changed.
        """
        self.flights: dict[PendingBatch, None] = {}
        self.traffic = TrafficCounts()
        self._name, self._crew, self._briefing, self._batch_s = name, crew, briefing, batch_s
        self._join, self._copy, self._keep, self._note_room = join, copy, keep, note_room
        self._by_key: dict[str, PendingBatch] = {}
        self._pending: deque[PendingBatch] = deque()
        self._paces = ComputeRates()
        self._spread = False

    @property
    def room(self) -> int:
        """Number of batches that can still be accepted."""
        if self._spread:
            # Some are placed but not sent, if their worker matters.
            return int(self._crew.placement.room) - len(self._pending)
        ready = [each for each in self._crew.workers.values() if each.is_placed]
        return AHEAD * sum(each.threads for each in ready) - len(self.flights)

    def begin(self, key: str) -> None:
        """Note that a worker has begun a batch."""
        if (flight := self._by_key.get(key)) is not None:
            flight.began = True
            self._crew.placement.begin(key, time.monotonic())

    def accept(self, flight: PendingBatch) -> None:
        """Accept a batch."""
        self.flights[flight] = None
        self._pending.append(flight)
        self._spread = bool(flight.objects)
        self.place_all()

    def place_all(self) -> None:
        """Place waiting batches on workers that have room."""
        while self._pending and self._crew.client is not None:
            flight = self._pending[0]
            if flight not in self.flights:
                self._pending.popleft()
                continue
            flight.key = f"batch-{self._name}-{flight.number}-{time.monotonic_ns()}"
            try:
                decision = self._crew.placement.place(
                    flight.key, self._work(flight), time.monotonic()
                )
            except Exception as error:  # batches behind it must still be placed
                log.exception("batch %d: cannot be placed", flight.number)
                self.give_back(flight, _failure(error))
                continue
            if decision is None:
                break
            self._pending.popleft()
            worker = self._crew.workers[decision.worker]
            flight.worker, flight.fetch = decision.worker, decision.fetch
            flight.near = bool(flight.objects) and all(
                name in worker.cached_bytes for name in flight.objects
            )
            worker.flights[flight.key] = self._by_key[flight.key] = flight
            if not decision.is_parked:
                self._depart(flight)
            for source, heir in decision.copies:
                self._copy(source, heir)
        self._note_room()

    def _work(self, flight: PendingBatch) -> BatchWork:
        """Estimate the work of a batch: its prediction, corrected by earlier batches of the job."""
        batch = flight.batch
        return BatchWork(
            flight.objects, self._paces.expected_s(batch.job, self._predicted_s(batch))
        )

    def _predicted_s(self, batch: Batch) -> float:
        """Return the predicted seconds of computing, or the intended duration of a batch."""
        return len(batch.rows) * batch.row_s or self._batch_s

    def _peers(self, flight: PendingBatch) -> dict[str, list[member.Peer]]:
        """Return the other holders of a batch's objects, the chosen peer first."""
        return {
            source: self._crew.peers(source, flight.worker, flight.fetch.get(source))
            for source in flight.objects
        }

    def _depart(self, flight: PendingBatch) -> None:
        """Send a batch to its worker."""
        if self._crew.client is not None:
            worker = self._crew.workers[flight.worker]
            flight.task = self._crew.spawn(self._fly(self._crew.client, worker, flight))

    async def _fly(self, client: Client, worker: WorkerEntry, flight: PendingBatch) -> None:
        """Run a batch on a worker and return its result, even after an error."""
        try:
            await self._carry(client, worker, flight)
        except Exception as error:  # a bug: no other code knows of this batch
            if client.status == "running" and self._crew.workers.get(flight.worker) is worker:
                log.exception("batch %d: cannot be sent", flight.number)
                self.give_back(flight, _failure(error))
            # Otherwise it is retried when the loss is noticed.
        self.place_all()

    async def _peers_have_it(self, flight: PendingBatch) -> None:
        """Wait for peers that still fetch an object, at most as long as the store would take.

        The placement predicted that they are faster.
        """
        placement, rates = self._crew.placement, self._crew.rates
        for source, peer in flight.fetch.items():
            until = time.monotonic() + rates.store_s(source, flight.objects[source])
            while peer is not None and placement.is_coming(peer, source):
                if time.monotonic() >= until:
                    return
                await asyncio.sleep(LOOK_S)

    async def _carry(self, client: Client, worker: WorkerEntry, flight: PendingBatch) -> None:
        address, key = flight.worker, flight.key
        await self._peers_have_it(flight)
        if self._by_key.get(key) is not flight or self._crew.workers.get(address) is not worker:
            return  # sent to another worker meanwhile, or given up
        state = self._briefing.invitation[1]
        if worker.state != state:
            await self._join(address, worker)
        future: Future[member.BatchReply] = client.submit(
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
            reply = await future
            result: ChunkResult = pickle.loads(reply.pickled_result)
        except member.NotJoinedError:
            worker.state = ""
            self._land(worker, flight)
            self.again(flight)
        except Exception as error:  # an unusable batch, or a lost worker
            if future.status != "error" or self._crew.workers.get(address) is not worker:
                return  # retried when the loss is noticed
            self._land(worker, flight)
            failure = f"internal: worker {worker.name}: {type(error).__name__}: {error}"
            self.give_back(flight, ChunkResult([], complete=False, failure=failure))
        else:
            self._land(worker, flight)
            self._crew.hold(address, reply.cached_bytes)
            self._crew.rates.learn(address, reply.costs)
            self.traffic = self.traffic.with_result(result, near=flight.near)
            if result.complete and _is_computing_time(flight, result):
                predicted_s = self._predicted_s(flight.batch)
                self._paces.learn(flight.batch.job, predicted_s, result.work_s)
            self.give_back(flight, result)
        finally:
            future.release()

    def _land(self, worker: WorkerEntry, flight: PendingBatch) -> None:
        worker.flights.pop(flight.key, None)
        self._by_key.pop(flight.key, None)
        for key in self._crew.placement.end(flight.key, time.monotonic()):
            self._depart(self._by_key[str(key)])

    def again(self, flight: PendingBatch) -> None:
        """Requeue a lost batch at the front, unless it may have killed its worker."""
        try:
            self._again(flight)
        except Exception as error:  # other batches were lost too, and must be retried
            log.exception("batch %d: cannot be retried", flight.number)
            self.give_back(flight, _failure(error))

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

    def give_back(self, flight: PendingBatch, result: ChunkResult) -> None:
        """Save the result of a batch in another thread."""
        if flight not in self.flights:
            return
        del self.flights[flight]
        if flight.worker and (worker := self._crew.workers.get(flight.worker)) is not None:
            self._land(worker, flight)
        if flight.division is not None:
            total = flight.division.add(result)
            if total is None:
                return
            result = total
        self._keep(flight, result)

    def note_traffic(self, **more: int) -> None:
        """Count transfers between workers outside batches."""
        was = self.traffic
        self.traffic = replace(was, **{name: getattr(was, name) + more[name] for name in more})

    async def look(self) -> None:
        """Stop the batches that are to stop."""
        flights = [each for each in self.flights if each.told_at is None]
        flights_to_stop = await asyncio.to_thread(_flights_to_stop, flights)
        self._stop_flights([each for each in flights_to_stop if each[0] in self.flights])
        now = time.monotonic()
        for flight in list(self.flights):
            if flight.told_at is not None and now - flight.told_at > STOP_S:
                self.give_back(flight, ChunkResult([], complete=False))
        self._note_room()

    def _stop_flights(self, pending: Sequence[tuple[PendingBatch, Exception | None]]) -> None:
        """Ask workers to stop batches; return at once those that no worker has or that failed."""
        keys: dict[str, list[str]] = {}
        for flight, error in pending:
            flight.told_at = time.monotonic()
            if flight.task is not None:
                keys.setdefault(flight.worker, []).append(flight.key)
            if error is not None:
                self.give_back(flight, _failure(error))
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


def _flights_to_stop(
    flights: Sequence[PendingBatch],
) -> list[tuple[PendingBatch, Exception | None]]:
    """Return the batches to stop, and those whose stop flag cannot be read, with the error."""
    flights_to_stop: list[tuple[PendingBatch, Exception | None]] = []
    for flight in flights:
        try:
            if flight.should_stop():
                flights_to_stop.append((flight, None))
        except Exception as error:
            log.exception("batch %d: cannot check whether it is to stop", flight.number)
            flights_to_stop.append((flight, error))
    return flights_to_stop


def _is_computing_time(flight: PendingBatch, result: ChunkResult) -> bool:
    """Check whether a batch's time is computing time: it fetched almost nothing."""
    fetched_bytes = result.bytes_moved + result.from_peers[0]
    return not flight.objects or fetched_bytes <= LITTLE * result.from_cache[0]


def _failure(error: Exception) -> ChunkResult:
    return ChunkResult([], complete=False, failure=describe_error(error))
