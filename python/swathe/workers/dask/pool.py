"""The workers of a Dask scheduler as a pool.

Dask transports batches to the workers that we choose, and reports which workers exist. It neither
places, copies nor retries. All state is in the event loop of one thread. Batches lost with a worker
or with the scheduler are sent again: the same results have the same names.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import pickle
import threading
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import JobError
from swathe.core.paths import default_url
from swathe.workers.dask.connection import Connection
from swathe.workers.dask.in_flight import PendingBatch
from swathe.workers.dask.membership import Membership
from swathe.workers.dask.processes import configure
from swathe.workers.dask.replication import Replication
from swathe.workers.dask.sender import BatchSender
from swathe.workers.dask.state import PoolState, WorkerEntry
from swathe.workers.dask.worker_config import WorkerConfig
from swathe.workers.pool import BATCH_S, HAND_OVER_S, LANES, PoolStatus, pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch, Work
    from swathe.workers.dask.tls import Address
    from swathe.workers.pool import Back

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""Seconds between checks whether a batch is to stop."""
TELL_S = 5.0
KEEPING = 4 * LANES
"""Unsaved results above which no more batches are accepted."""


class DaskPool:
    """Workers of a Dask scheduler."""

    def __init__(
        self,
        address: Address,
        place: ResultStore,
        *,
        certificates: Path | None = None,
        insecure: bool = False,
        hosts: Sequence[str] = (),
        batch_s: float = BATCH_S,
        hand_over_s: float = HAND_OVER_S,
    ) -> None:
        """Take the scheduler's address, the result store, and certificates or `insecure`.

        `hosts` are the servers that users may name; they may redirect only to each other. The pool
        connects when it is started, and retries without limit. A leaving worker may hand over its
        cache for `hand_over_s`.

        Raises:
            SettingsError: If certificates are required and missing or invalid.
            OutputError: If workers cannot write to the result store.
            CatalogError: If the catalogue cannot be used.
        """
        from swathe.workers.dask.tls import security_for

        self._address = address
        self._batch_s, self._hand_over_s = batch_s, hand_over_s
        self._pool = sha256(f"{default_url()} {place}".encode()).hexdigest()[:16]
        # Used by the loop's thread only.
        self._crew = PoolState()
        self._briefing = WorkerConfig(self._pool, place, tuple(hosts), self._crew.rates)
        self._spreading = Replication(self._crew, hand_over_s, self._note_traffic)
        self._sending = BatchSender(
            self._pool,
            self._crew,
            self._briefing,
            batch_s,
            join=self._join,
            copy=self._spreading.copy,
            keep=self._keep,
            note_room=self._count,
        )
        self._roster = Membership(
            self._pool, self._crew, self._briefing, self._sending, self._spreading
        )
        self._connection = Connection(
            address,
            security_for(address, certificates, "portal", insecure=insecure),
            self._crew,
            compare=self._roster.compare,
            hear=self._roster.hear,
            note_loss=self._roster.lose_all,
            part=self._roster.part,
        )
        self._keep_count = 0
        self._ending = asyncio.Event()
        self._thread: threading.Thread | None = None
        # Read by other threads.
        self._lock = threading.Condition()
        self._room = 0
        self._at_work: Counter[Work] = Counter()
        self._threads = 0
        self._last_status = PoolStatus("dask", str(address), "not started", 0, [], [])

    @property
    def digest(self) -> str:
        """Digest that distinguishes it from pools of other catalogues and result stores."""
        return self._pool

    @property
    def batch_s(self) -> float:
        """Intended duration of a batch, in seconds."""
        return self._batch_s

    @property
    def hand_over_s(self) -> float:
        """Time limit of a hand-over, in seconds."""
        return self._hand_over_s

    # ---- Called by other threads

    def start(self, back: Back) -> None:
        """Start to connect to the scheduler."""
        self._back = back
        self._keepers = concurrent.futures.ThreadPoolExecutor(LANES, "swathe-pool-keeper")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="swathe-pool", daemon=True)
        self._thread.start()

    def wait_for_room(self, timeout_s: float, work: Work | None = None) -> frozenset[Work]:
        """Wait until a worker has room; see `_kinds`."""
        with self._lock:
            self._lock.wait_for(
                lambda: work in self._kinds() if work else bool(self._kinds()), timeout_s
            )
            return self._kinds()

    def _kinds(self) -> frozenset[Work]:
        """Return the kinds of work that can be accepted.

        Programs leave half of the threads to other work, and with long work one thread to cuts; at
        least one of each kind is accepted.
        """
        if self._room <= 0:
            return frozenset()
        kinds: set[Work] = {"cut"}
        programs, long = self._at_work["program"], self._at_work["long"]
        if not programs or programs < self._threads // 2:
            kinds.add("program")
        if not long or programs + long < self._threads - 1:
            kinds.add("long")
        return frozenset(kinds)

    def submit(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> None:
        """Accept a batch."""
        self._briefing.look(batch)
        objects = self._briefing.objects(batch)
        flight = PendingBatch(number, batch, pickle.dumps(batch), should_stop, objects)
        with self._lock:
            self._room -= 1
            self._at_work[batch.work] += 1
        self._loop.call_soon_threadsafe(self._sending.accept, flight)

    def drain(self, names: Sequence[str]) -> None:
        """Drain workers: no new batches, then hand-over of their caches; see `status`."""
        with suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._roster.let_go, names)

    def stop(self, timeout_s: float) -> None:
        """Stop, once all batches are back."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise JobError(f"{self._thread.name}: still running after {timeout_s} s")
        self._keepers.shutdown()

    def status(self) -> PoolStatus:
        """Return the state."""
        if self._thread is None or not self._thread.is_alive():
            return self._last_status
        future: concurrent.futures.Future[PoolStatus] = concurrent.futures.Future()
        with suppress(RuntimeError, TimeoutError):  # it has just ended
            self._loop.call_soon_threadsafe(lambda: future.set_result(self._state()))
            return future.result(TELL_S)
        return self._last_status

    # ---- In the loop

    def _run(self) -> None:
        configure()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _live(self) -> None:
        """Run the pool's loop until the end."""
        self._crew.spawn(self._watch())
        await self._connection.keep(self._ending)
        for flight in list(self._sending.flights):
            self._sending.give_back(flight, ChunkResult([], complete=False))
        while self._keep_count:
            await asyncio.sleep(0.01)
        self._crew.end()
        self._last_status = self._state()

    async def _watch(self) -> None:
        """Stop batches that are to stop, and publish the state."""
        waits = pauses(LOOK_S)
        while True:
            pause_s = LOOK_S
            try:
                await self._sending.look()
            except Exception:  # a bug: the other batches must be stopped as well
                pause_s = next(waits)
                log.exception(
                    "%s: cannot check which batches are to stop; next attempt in %g s",
                    self._address,
                    pause_s,
                )
            else:
                waits = pauses(LOOK_S)
            await asyncio.sleep(pause_s)

    async def _join(self, address: str, worker: WorkerEntry) -> None:
        await self._roster.join(address, worker)

    def _note_traffic(self, **more: int) -> None:
        self._sending.note_traffic(**more)

    def _keep(self, flight: PendingBatch, result: ChunkResult) -> None:
        """Save the result of a batch in another thread."""
        self._keep_count += 1
        with self._lock:
            self._at_work[flight.batch.work] -= 1

        def keep() -> None:
            try:
                self._back(flight.number, result)
            except BaseException:  # including a panic of the engine
                log.exception(
                    "batch %d of job %s: its result cannot be saved",
                    flight.number,
                    flight.batch.job,
                )
            finally:
                self._loop.call_soon_threadsafe(self._save)

        self._keepers.submit(keep)

    def _save(self) -> None:
        self._keep_count -= 1
        self._count()

    def _count(self) -> None:
        """Update how many more batches are accepted."""
        ends = self._crew.client is None or self._ending.is_set()
        threads = sum(each.threads for each in self._crew.workers.values() if each.is_placed)
        with self._lock:
            self._threads = threads
            self._room = 0 if ends or self._keep_count >= KEEPING else self._sending.room
            if self._room > 0:
                self._lock.notify_all()

    def _state(self) -> PoolStatus:
        crew = self._crew
        workers, objects = crew.status()
        peer_s, peer_bytes_per_s = crew.rates.peer
        return PoolStatus(
            "dask",
            str(self._address),
            self._connection.trouble,
            len(self._sending.flights),
            workers,
            objects,
            self._sending.traffic,
            hand_overs=self._spreading.hand_overs,
            peer_s=peer_s,
            peer_bytes_per_s=peer_bytes_per_s,
        )
