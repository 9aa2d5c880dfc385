"""The workers of a Dask scheduler as a pool.

Dask carries batches to the workers that we choose, and tells which workers there are; it neither
places, copies nor tries again. All state is in the loop of one thread. Whatever is lost with a
worker, or with the scheduler, is given again: the same results get the same names.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import pickle
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from swathe.catalog.work import Done
from swathe.environment import default_url
from swathe.errors import JobError
from swathe.workers import member
from swathe.workers.briefing import Briefing
from swathe.workers.connection import Connection
from swathe.workers.crew import AHEAD, Crew, Worker
from swathe.workers.flights import Flight
from swathe.workers.lasting import internal
from swathe.workers.nodes import CONNECT_S, configure
from swathe.workers.placement import Work
from swathe.workers.pool import BATCH_S, HAND_OVER_S, LANES, Moved, Told, pauses
from swathe.workers.rates import Paces
from swathe.workers.spreading import Spreading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from distributed import Client, Future

    from swathe.jobs import Place
    from swathe.workers.batches import Batch
    from swathe.workers.placement import Placement
    from swathe.workers.pool import Back
    from swathe.workers.security import Address

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How often to ask whether a batch is to stop."""
AGAIN_S = 10.0
"""When a worker that was refused is asked again."""
JOIN_S = 60.0
TELL_S = 5.0
STOP_S = 10.0
"""A batch that was stopped and does not come back for so long is given up."""
KEEPING = 4 * LANES
"""While so many results wait to be kept, no more is wanted."""


class DaskPool:
    """Workers of a scheduler."""

    def __init__(
        self,
        address: Address,
        place: Place,
        *,
        certificates: Path | None = None,
        hosts: Sequence[str] = (),
        batch_s: float = BATCH_S,
        hand_over_s: float = HAND_OVER_S,
    ) -> None:
        """Take where the scheduler is, the place of results, and certificates.

        Servers that users may name, the `hosts`, may redirect only to each other. The scheduler is
        looked for when the pool is started, as long as it takes. A worker that leaves may hand over
        what it holds for `hand_over_s`.

        Raises:
            SettingsError: where certificates are needed and not there, or of no use.
            OutputError: where workers could not put results there.
            CatalogError: where the catalogue cannot be used.
        """
        from swathe.workers.security import security_for

        self._address = address
        self._batch_s, self._hand_over_s = batch_s, hand_over_s
        self._pool = sha256(f"{default_url()} {place}".encode()).hexdigest()[:16]
        # Of the loop's thread.
        self._crew = Crew()
        self._spreading = Spreading(self._crew, hand_over_s, self._note_moved)
        self._flights: dict[Flight, None] = {}
        self._by_key: dict[str, Flight] = {}
        self._pending: deque[Flight] = deque()
        self._keeping = 0
        self._moved, self._paces = Moved(), Paces()
        self._spread = False
        self._ending = asyncio.Event()
        self._ends_by: float | None = None
        self._connection = Connection(
            address,
            security_for(address, certificates, "portal"),
            self._crew,
            compare=self._compare,
            hear=self._on_member,
            lost=self._lose_all,
            part=self._part,
        )
        self._thread: threading.Thread | None = None
        self._briefing = Briefing(self._pool, place, tuple(hosts), self._crew.rates)
        # Read by other threads.
        self._lock = threading.Condition()
        self._room = 0
        self._last_told = Told("dask", str(address), "not started", 0, [], [])

    @property
    def digest(self) -> str:
        """What tells it from pools of other catalogues and results."""
        return self._pool

    @property
    def batch_s(self) -> float:
        """How long a batch is to take."""
        return self._batch_s

    @property
    def hand_over_s(self) -> float:
        """How long a worker that leaves may hand over what it holds."""
        return self._hand_over_s

    # ---- Called by other threads

    def start(self, back: Back) -> None:
        """Begin to look for the scheduler."""
        self._back = back
        self._keepers = concurrent.futures.ThreadPoolExecutor(LANES, "swathe-pool-keeper")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="swathe-pool", daemon=True)
        self._thread.start()

    def wanted(self, timeout_s: float) -> bool:
        """Wait until a worker has room."""
        with self._lock:
            return self._lock.wait_for(lambda: self._room > 0, timeout_s)

    def give(self, number: int, batch: Batch, stopped: Callable[[], bool]) -> None:
        """Take a batch."""
        self._briefing.look(batch)
        objects = self._briefing.objects(batch)
        flight = Flight(number, batch, pickle.dumps(batch), stopped, objects)
        with self._lock:
            self._room -= 1
        self._loop.call_soon_threadsafe(self._accept, flight)

    def let_go(self, names: Sequence[str]) -> None:
        """Give workers nothing more, and have them hand over what they hold: `told` says when."""
        with suppress(RuntimeError):  # it ends just now
            self._loop.call_soon_threadsafe(self._let_go, names)

    def stop(self, timeout_s: float) -> None:
        """End, once all has come back."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise JobError(f"{self._thread.name}: still at work after {timeout_s} s")
        self._keepers.shutdown()

    def told(self) -> Told:
        """Tell the state."""
        if self._thread is None or not self._thread.is_alive():
            return self._last_told
        asked: concurrent.futures.Future[Told] = concurrent.futures.Future()
        with suppress(RuntimeError, TimeoutError):  # it ends just now
            self._loop.call_soon_threadsafe(lambda: asked.set_result(self._state()))
            return asked.result(TELL_S)
        return self._last_told

    # ---- In the loop

    def _run(self) -> None:
        configure()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _live(self) -> None:
        """Lead the workers, until told to end."""
        self._crew.spawn(self._watch())
        await self._connection.keep(self._ending)
        for flight in list(self._flights):
            self._give_back(flight, Done([], complete=False))
        while self._keeping:
            await asyncio.sleep(0.01)
        self._crew.end()
        self._last_told = self._state()

    async def _watch(self) -> None:
        """See which batches are to stop, and show the state."""
        waits = pauses(LOOK_S)
        while True:
            pause_s = LOOK_S
            try:
                await self._look()
            except Exception:  # a fault of ours: others are to be stopped as well
                pause_s = next(waits)
                log.exception("%s: looking who is to stop; again in %g s", self._address, pause_s)
            else:
                waits = pauses(LOOK_S)
            await asyncio.sleep(pause_s)

    async def _look(self) -> None:
        flights = [each for each in self._flights if each.told_at is None]
        found = await asyncio.to_thread(_asked_to_stop, flights)
        for flight, error in found:
            if error is not None:
                self._give_back(flight, _failed(error))
        self._stop_flights([each for each, _ in found if each in self._flights])
        now = time.monotonic()
        for flight in list(self._flights):
            if flight.told_at is not None and now - flight.told_at > STOP_S:
                self._give_back(flight, Done([], complete=False))
        self._count()

    def _stop_flights(self, flights: list[Flight]) -> None:
        keys: dict[str, list[str]] = {}
        for flight in flights:
            flight.told_at = time.monotonic()
            if flight.task is None:
                self._give_back(flight, Done([], complete=False))
            else:
                keys.setdefault(flight.worker, []).append(flight.key)
        if keys and self._crew.client is not None:
            every = [key for of_worker in keys.values() for key in of_worker]
            self._crew.spawn(self._tell_to_stop(self._crew.client, every, list(keys)))

    async def _tell_to_stop(self, client: Client, keys: list[str], workers: list[str]) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            await asyncio.wait_for(
                client.run(member.stop, keys, workers=workers, on_error="ignore"), STOP_S
            )

    # ---- Workers

    def _on_member(self, told: Any) -> None:
        if (key := told.get("begun")) is not None:
            if (flight := self._by_key.get(key)) is not None:
                flight.began = True
                self._placement.begin(key, time.monotonic())
        elif (worker := self._crew.workers.get(address := told.get("leaving", ""))) is not None:
            grace_s = float(told.get("grace_s", 0.0))
            if worker.leaving:
                # Its cache is on the way already.
                stay_s = 0.0 if worker.parted else grace_s
                self._crew.spawn(self._crew.ask(address, CONNECT_S, member.grant, stay_s))
            else:
                self._part_from(address, worker, grace_s)

    def _let_go(self, names: Iterable[str]) -> None:
        for address, worker in self._crew.named(names).items():
            if not worker.leaving:
                self._part_from(address, worker, None)

    async def _part(self) -> bool:
        """Let workers go, once all is back: they may work for another portal at once."""
        self._ends_by = self._ends_by or time.monotonic() + STOP_S
        if self._flights and time.monotonic() <= self._ends_by:
            return False
        if (client := self._crew.client) is not None:
            with suppress(OSError, TimeoutError, ValueError):
                await asyncio.wait_for(
                    client.run(member.leave, self._pool, on_error="ignore"), CONNECT_S
                )
        return True

    def _compare(self, found: dict[str, Any]) -> None:
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
        self._crew.spawn(self._join(address, worker))

    async def _join(self, address: str, worker: Worker) -> None:
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
                self._placement.join(address, worker.threads, joined.cache_bytes)
                worker.placed = True
            self._place_all()

    def _lose_all(self) -> None:
        """Give all batches anew, once there is a connection again."""
        for address in list(self._crew.workers):
            self._lose(address, died=False)
        self._count()

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
        self._placement.leave(address)
        worker.placed, worker.state = False, ""
        worker.held.clear()
        flights = list(worker.flights.values())
        worker.flights.clear()
        for flight in flights:
            if flight.task is not None:
                flight.task.cancel()
            self._again(flight)
        self._place_all()

    def _part_from(self, address: str, worker: Worker, grace_s: float | None) -> None:
        """Give a worker nothing more; what was sent to it may still come back."""
        worker.leaving = True
        self._placement.leave(address)
        worker.placed = False
        held = dict(worker.held)
        worker.held.clear()
        for flight in [each for each in worker.flights.values() if each.task is None]:
            del worker.flights[flight.key]
            self._again(flight)
        self._spreading.part(address, held, grace_s)
        self._place_all()

    def _again(self, flight: Flight) -> None:
        """Put a batch that was lost first in the queue, unless it is to blame."""
        self._by_key.pop(flight.key, None)
        flight.reset()
        if flight.told_at is not None:
            self._give_back(flight, Done([], complete=False))
            return
        if flight not in self._flights:
            return
        verdict = flight.verdict()
        if verdict is None:
            self._pending.appendleft(flight)
        elif isinstance(verdict, Done):
            self._give_back(flight, verdict)
        else:
            for half in verdict:
                half.objects = self._briefing.objects(half.batch)
            del self._flights[flight]
            self._flights.update(dict.fromkeys(verdict))
            self._pending.extendleft(reversed(verdict))

    # ---- Batches

    def _accept(self, flight: Flight) -> None:
        self._flights[flight] = None
        self._pending.append(flight)
        self._spread = bool(flight.objects)
        self._place_all()

    def _place_all(self) -> None:
        """Give what waits to workers that have room."""
        while self._pending and self._crew.client is not None:
            flight = self._pending[0]
            if flight not in self._flights:
                self._pending.popleft()
                continue
            flight.key = f"batch-{self._pool}-{flight.number}-{time.monotonic_ns()}"
            try:
                placed = self._placement.place(flight.key, self._work(flight), time.monotonic())
            except Exception as error:  # those behind it are to get their turn
                log.exception("batch %d: cannot be placed", flight.number)
                self._give_back(flight, _failed(error))
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
                self._spreading.copy(source, heir)
        self._count()

    def _work(self, flight: Flight) -> Work:
        """Say what a batch will take: as predicted, and as others took beside what was of them."""
        batch = flight.batch
        return Work(flight.objects, self._paces.expected_s(batch.job, self._predicted_s(batch)))

    def _predicted_s(self, batch: Batch) -> float:
        """Give the seconds of computing that were predicted, or else those it is to take."""
        return len(batch.rows) * batch.row_s or self._batch_s

    def _depart(self, flight: Flight) -> None:
        """Send a batch to its worker."""
        if self._crew.client is not None:
            worker = self._crew.workers[flight.worker]
            flight.task = self._crew.spawn(self._fly(self._crew.client, worker, flight))

    async def _fly(self, client: Client, worker: Worker, flight: Flight) -> None:
        """Have a batch done, and give back what became of it, whatever goes wrong."""
        try:
            await self._carry(client, worker, flight)
        except Exception as error:  # a fault of ours: nobody else knows of this batch
            if client.status == "running" and self._crew.workers.get(flight.worker) is worker:
                log.exception("batch %d: cannot be carried", flight.number)
                self._give_back(flight, _failed(error))
            # Else it is given again when that is seen.
        self._place_all()

    async def _carry(self, client: Client, worker: Worker, flight: Flight) -> None:
        address, key = flight.worker, flight.key
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
            done: Done = pickle.loads(worked.done)
        except member.NotJoinedError:
            worker.state = ""
            self._land(worker, flight)
            self._again(flight)
        except Exception as error:  # of a batch that cannot be carried, or a worker that went
            if future.status != "error" or self._crew.workers.get(address) is not worker:
                return  # it is given again when the worker is seen to be gone
            self._land(worker, flight)
            failure = f"internal: worker {worker.name}: {type(error).__name__}: {error}"
            self._give_back(flight, Done([], complete=False, failure=failure))
        else:
            self._land(worker, flight)
            self._crew.hold(address, worked.held)
            self._crew.rates.learn(address, worked.costs)
            self._moved = self._moved.with_done(done, near=flight.near)
            if done.complete and (flight.near or not flight.objects):
                predicted_s = self._predicted_s(flight.batch)
                self._paces.learn(flight.batch.job, predicted_s, done.seconds)
            self._give_back(flight, done)
        finally:
            future.release()

    def _land(self, worker: Worker, flight: Flight) -> None:
        worker.flights.pop(flight.key, None)
        self._by_key.pop(flight.key, None)
        for key in self._placement.end(flight.key, time.monotonic()):
            self._depart(self._by_key[str(key)])

    def _give_back(self, flight: Flight, done: Done) -> None:
        """Have what became of a batch kept, by another thread."""
        if flight not in self._flights:
            return
        del self._flights[flight]
        if flight.worker and (worker := self._crew.workers.get(flight.worker)) is not None:
            self._land(worker, flight)
        if flight.whole is not None:
            whole = flight.whole.add(done)
            if whole is None:
                return
            done = whole
        self._keeping += 1

        def keep() -> None:
            try:
                self._back(flight.number, done)
            except BaseException:  # a panic of the engine, too
                log.exception("batch %d of job %s: cannot be kept", flight.number, flight.batch.job)
            finally:
                self._loop.call_soon_threadsafe(self._kept)

        self._keepers.submit(keep)

    def _kept(self) -> None:
        self._keeping -= 1
        self._count()

    # ---- What is where

    def _peers(self, flight: Flight) -> dict[str, list[member.Peer]]:
        """Give who else has blocks of the objects of a batch, the one that was chosen first."""
        return {
            source: self._crew.peers(source, flight.worker, flight.fetch.get(source))
            for source in flight.objects
        }

    def _note_moved(self, **more: int) -> None:
        """Count what went from worker to worker besides batches."""
        was = self._moved
        self._moved = replace(was, **{name: getattr(was, name) + more[name] for name in more})

    def _count(self) -> None:
        """Say how many more batches are wanted."""
        if self._spread:
            # Some are placed and not sent, where it matters who does them.
            room = int(self._placement.room) - len(self._pending)
        else:
            ready = [each for each in self._crew.workers.values() if each.placed]
            room = AHEAD * sum(each.threads for each in ready) - len(self._flights)
        ends = self._crew.client is None or self._ending.is_set()
        with self._lock:
            self._room = 0 if ends or self._keeping >= KEEPING else room
            if self._room > 0:
                self._lock.notify_all()

    def _state(self) -> Told:
        crew = self._crew
        workers, held = crew.told()
        peer_s, peer_bytes_per_s = crew.rates.peer
        return Told(
            "dask",
            str(self._address),
            self._connection.trouble,
            len(self._flights),
            workers,
            held,
            self._moved,
            hand_overs=self._spreading.hand_overs,
            peer_s=peer_s,
            peer_bytes_per_s=peer_bytes_per_s,
        )

    @property
    def _placement(self) -> Placement:
        return self._crew.placement


def _asked_to_stop(flights: Sequence[Flight]) -> list[tuple[Flight, Exception | None]]:
    """Give the batches that are to stop, and those of which that cannot be told, and why."""
    found: list[tuple[Flight, Exception | None]] = []
    for flight in flights:
        try:
            if flight.stopped():
                found.append((flight, None))
        except Exception as error:
            log.exception("batch %d: cannot be told whether to stop", flight.number)
            found.append((flight, error))
    return found


def _failed(error: Exception) -> Done:
    return Done([], complete=False, failure=internal(error))
