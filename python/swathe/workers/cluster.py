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
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from distributed import Client

from swathe.catalog.work import Done
from swathe.environment import default_url, this_host
from swathe.errors import CatalogError, JobError, SwatheError
from swathe.known import NAMED, Storages, storages
from swathe.workers import member
from swathe.workers.batches import unpacked
from swathe.workers.nodes import CONNECT_S, configure, reach
from swathe.workers.placement import PLACED, Placement, Work
from swathe.workers.pool import BATCH_S, LANES, Held, Member, Moved, Told, pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from distributed import Future

    from swathe.jobs import Place
    from swathe.workers.batches import Batch
    from swathe.workers.pool import Back
    from swathe.workers.security import Address

log = logging.getLogger(__name__)

AHEAD = 2
"""Batches that a thread may have: the next is there when it is done with one."""
DEATHS = 3
"""A batch is not tried again when so many workers have died while they were doing it."""
LOOK_S = 0.25
"""How often to ask whether a batch is to stop."""
WORKERS_S = 2.0
"""How often to ask which workers there are; news of them come at once."""
STORAGES_S = 5.0
"""How old what workers are told of storages may be."""
AGAIN_S = 10.0
"""When a worker that was refused is asked again."""
JOIN_S = 60.0
TELL_S = 5.0
STOP_S = 10.0
"""A batch that was stopped and does not come back for so long is given up."""
KEEPING = 4 * LANES
"""While so many results wait to be kept, no more is wanted."""
UNMEASURED = 0.05, 50e6
"""Seconds of a request and bytes per second, of storages that were never probed."""
NEAR = 0.001, 100e6
"""The same of other workers. Whoever fetches goes by what it has measured."""
ASKED = 3
"""Holders of an object that a worker is told of."""


@dataclass(eq=False)
class _Flight:
    """A batch on its way."""

    number: int
    batch: Batch
    payload: bytes
    stopped: Callable[[], bool]
    deaths: int = 0
    worker: str = ""
    key: str = ""
    began: bool = False
    told_at: float | None = None
    near: bool = False
    fetch: Mapping[str, str | None] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


@dataclass(eq=False)
class _Worker:
    """A worker, as far as it has joined."""

    name: str
    host: str
    threads: int
    state: str = ""
    cache_bytes: int = 0
    refused: str = ""
    asked_at: float = 0.0
    leaving: bool = False
    placed: bool = False
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)
    flights: dict[str, _Flight] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    peer: member.Peer | None = None


class _Client(Client):
    """A client that is of no more use when its connection is lost: the pool makes another."""

    async def _reconnect(self) -> None:
        self.status, self.scheduler_comm = "connecting", None


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
    ) -> None:
        """Take where the scheduler is, the place of results, and certificates.

        Servers that users may name, the `hosts`, may redirect only to each other. The scheduler is
        looked for when the pool is started, as long as it takes.

        Raises:
            SettingsError: where certificates are needed and not there, or of no use.
            OutputError: where workers could not put results there.
            CatalogError: where the catalogue cannot be used.
        """
        from swathe.workers.security import security_for

        self._address, self._place = address, place
        self._security = security_for(address, certificates, "portal")
        self._url = address.url(self._security)
        self._batch_s, self._hosts = batch_s, tuple(hosts)
        self._pool = sha256(f"{default_url()} {place}".encode()).hexdigest()[:16]
        self._tell(storages())
        # Read by other threads.
        self._lock = threading.Condition()
        self._room = 0
        self._last_told = Told("dask", str(address), "not started", 0, [], [])
        # Of the loop's thread.
        self._workers: dict[str, _Worker] = {}
        self._flights: dict[int, _Flight] = {}
        self._by_key: dict[str, _Flight] = {}
        self._pending: deque[_Flight] = deque()
        self._keeping = 0
        self._moved = Moved()
        self._spread = False
        self._trouble = "not started"
        self._client: Client | None = None
        self._ending, self._news = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread: threading.Thread | None = None

    @property
    def digest(self) -> str:
        """What tells it from pools of other catalogues and results."""
        return self._pool

    @property
    def batch_s(self) -> float:
        """How long a batch is to take."""
        return self._batch_s

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
        self._look_at_storages(batch)
        flight = _Flight(number, batch, pickle.dumps(batch), stopped)
        with self._lock:
            self._room -= 1
        self._loop.call_soon_threadsafe(self._accept, flight)

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

    # ---- What workers are told of storages

    def _tell(self, found: Storages) -> None:
        self._storages, self._asked_at = found, time.monotonic()
        invitation = member.invite(self._pool, self._place, found, self._hosts)
        self._invited = invitation, member.state_of(invitation)
        self._costs = _costs(found)

    def _look_at_storages(self, batch: Batch) -> None:
        """See whether the catalogue has new ones: at once where a batch needs one."""
        known = {store["name"] for store in self._storages.stores}
        named = {row.source.partition(":")[0] for row in batch.rows if NAMED.match(row.source)}
        old = time.monotonic() - self._asked_at > STORAGES_S
        if not old and all(name in known for name in named - {"http", "https"}):
            return
        # Workers do with what they know.
        with suppress(CatalogError):
            found = storages()
            if found != self._storages:
                self._tell(found)
            self._asked_at = time.monotonic()

    # ---- In the loop

    def _run(self) -> None:
        configure()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _live(self) -> None:
        """Keep a connection to the scheduler, until told to end."""
        self._placement = Placement(self, ahead=AHEAD)
        self._spawn(self._watch())
        waits = pauses()
        while not self._ending.is_set():
            self._trouble = f"{self._address}: connecting"
            fault = "the connection is lost"
            try:
                await reach(self._url, self._security, "client")
                async with self._connect() as client:
                    waits = pauses()
                    await self._follow(client)
            except (OSError, TimeoutError, ValueError, RuntimeError, SwatheError) as error:
                fault = str(error) or type(error).__name__
            finally:
                self._client = None
            if self._ending.is_set():
                break
            for address in list(self._workers):
                self._lose(address, died=False)
            pause_s = next(waits)
            self._trouble = f"{self._address}: {fault}"
            log.warning("%s; trying again in %g s", self._trouble, pause_s)
            self._count()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause_s)
        for flight in list(self._flights.values()):
            self._give_back(flight, Done([], complete=False))
        while self._keeping:
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        self._workers.clear()
        self._trouble = f"{self._address}: not connected"
        self._last_told = self._state()

    def _connect(self) -> Client:
        return _Client(  # type: ignore[no-untyped-call]  # theirs
            self._url,
            asynchronous=True,
            security=self._security,
            timeout=CONNECT_S,
            set_as_default=False,
            direct_to_workers=False,
            name="swathe-portal",
        )

    async def _follow(self, client: Client) -> None:
        """Follow which workers there are, until the connection is lost or all is to end."""
        self._client = client
        client.subscribe_topic("all", self._on_news)
        client.subscribe_topic(member.TOPIC, self._on_member)
        self._trouble = ""
        over: float | None = None
        while client.status == "running":
            self._news.clear()
            scheduler: Any = client.scheduler
            self._compare((await scheduler.identity(n_workers=-1))["workers"])
            if self._ending.is_set():
                over = over or time.monotonic() + STOP_S
                if not self._flights or time.monotonic() > over:
                    await self._part(client)
                    return
            wait_s = LOOK_S if self._ending.is_set() else WORKERS_S
            until = time.monotonic() + wait_s
            while client.status == "running" and time.monotonic() < until:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_S)
                if self._news.is_set() or self._ending.is_set():
                    break

    async def _part(self, client: Client) -> None:
        """Let workers go: they may work for another portal at once."""
        for topic in ("all", member.TOPIC):
            client.unsubscribe_topic(topic)
        with suppress(OSError, TimeoutError, ValueError):
            await asyncio.wait_for(
                client.run(member.leave, self._pool, on_error="ignore"), CONNECT_S
            )

    async def _watch(self) -> None:
        """See which batches are to stop, and show the state."""
        while True:
            flights = [each for each in self._flights.values() if each.told_at is None]
            asked = [(each, each.stopped) for each in flights]
            found = await asyncio.to_thread(lambda: [each for each, stop in asked if stop()])  # noqa: B023 - done before the next
            self._stop_flights([each for each in found if each.number in self._flights])
            now = time.monotonic()
            for flight in list(self._flights.values()):
                if flight.told_at is not None and now - flight.told_at > STOP_S:
                    self._give_back(flight, Done([], complete=False))
            self._count()
            await asyncio.sleep(LOOK_S)

    def _stop_flights(self, flights: list[_Flight]) -> None:
        keys: dict[str, list[str]] = {}
        for flight in flights:
            flight.told_at = time.monotonic()
            if flight.task is None:
                self._give_back(flight, Done([], complete=False))
            else:
                keys.setdefault(flight.worker, []).append(flight.key)
        if keys and self._client is not None:
            every = [key for of_worker in keys.values() for key in of_worker]
            self._spawn(self._tell_to_stop(self._client, every, list(keys)))

    async def _tell_to_stop(self, client: Client, keys: list[str], workers: list[str]) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            await asyncio.wait_for(
                client.run(member.stop, keys, workers=workers, on_error="ignore"), STOP_S
            )

    # ---- Workers

    def _on_news(self, event: Any) -> None:
        if isinstance(event[1], dict) and event[1].get("action") in ("add-worker", "remove-worker"):
            self._news.set()

    def _on_member(self, event: Any) -> None:
        told = event[1]
        if (key := told.get("begun")) is not None:
            if (flight := self._by_key.get(key)) is not None:
                flight.began = True
                self._placement.begin(key, time.monotonic())
        elif (worker := self._workers.get(address := told.get("leaving", ""))) is not None:
            worker.leaving = True
            self._part_from(address, worker)

    def _compare(self, found: dict[str, Any]) -> None:
        """Take note of workers that came, and of those that went."""
        for address in [each for each in self._workers if each not in found]:
            self._lose(address, died=not self._workers[address].leaving)
        now = time.monotonic()
        for address, told in found.items():
            worker = self._workers.get(address)
            if worker is None:
                worker = _Worker(str(told["name"]), str(told["host"]), int(told["nthreads"]))
                self._workers[address] = worker
                self._ask(address, worker)
            elif worker.refused and now - worker.asked_at > AGAIN_S:
                self._ask(address, worker)

    def _ask(self, address: str, worker: _Worker) -> None:
        worker.asked_at = time.monotonic()
        self._spawn(self._join(address, worker))

    async def _join(self, address: str, worker: _Worker) -> None:
        """Let a worker join, or see why it cannot; tell it what is new."""
        async with worker.joining:
            client, (invitation, state) = self._client, self._invited
            if client is None or worker.state == state or worker.leaving:
                return
            try:
                answers = await asyncio.wait_for(
                    client.run(member.join, invitation, workers=[address]), JOIN_S
                )
                joined: member.Joined = answers[address]
            except Exception as error:  # whatever is wrong with it, it is its own
                joined = member.Joined(worker.host, 0, f"{type(error).__name__}: {error}")
            if self._workers.get(address) is not worker or worker.leaving:
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

    def _lose(self, address: str, *, died: bool) -> None:
        """Forget a worker, and give what it had to others."""
        worker = self._workers.pop(address)
        sent = [flight for flight in worker.flights.values() if flight.task is not None]
        for place, flight in enumerate(sent):
            # It may not have come to tell what it began; batches are begun in their order.
            flight.deaths += died and (flight.began or place < worker.threads)
        self._clear(address, worker)

    def _clear(self, address: str, worker: _Worker) -> None:
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

    def _part_from(self, address: str, worker: _Worker) -> None:
        """Give a worker nothing more; what was sent to it may still come back."""
        self._placement.leave(address)
        worker.placed = False
        worker.held.clear()
        for flight in [each for each in worker.flights.values() if each.task is None]:
            del worker.flights[flight.key]
            self._again(flight)
        self._place_all()

    def _again(self, flight: _Flight) -> None:
        """Put a batch that was lost first in the queue, unless it is to blame."""
        self._by_key.pop(flight.key, None)
        flight.worker, flight.began, flight.task = "", False, None
        if flight.told_at is not None:
            self._give_back(flight, Done([], complete=False))
        elif flight.deaths >= DEATHS:
            reason = f"{flight.deaths} workers died while they were doing the batch it was in"
            rows = [row._replace(status="error", reason=reason) for row in flight.batch.rows]
            self._give_back(flight, Done(rows))
        else:
            self._pending.appendleft(flight)

    # ---- Batches

    def _accept(self, flight: _Flight) -> None:
        self._flights[flight.number] = flight
        self._pending.append(flight)
        self._spread = bool(self._objects(flight.batch))
        self._place_all()

    def _place_all(self) -> None:
        """Give what waits to workers that have room."""
        while self._pending and self._client is not None:
            flight = self._pending[0]
            if flight.number not in self._flights:
                self._pending.popleft()
                continue
            flight.key = f"batch-{self._pool}-{flight.number}-{time.monotonic_ns()}"
            work = Work(self._objects(flight.batch), self._batch_s)
            placed = self._placement.place(flight.key, work, time.monotonic())
            if placed is None:
                break
            self._pending.popleft()
            worker = self._workers[placed.worker]
            flight.worker, flight.fetch = placed.worker, placed.fetch
            flight.near = bool(work.objects) and all(name in worker.held for name in work.objects)
            worker.flights[flight.key] = self._by_key[flight.key] = flight
            if not placed.parked:
                self._depart(flight)
        self._count()

    def _depart(self, flight: _Flight) -> None:
        """Send a batch to its worker."""
        if self._client is not None:
            worker = self._workers[flight.worker]
            flight.task = self._spawn(self._fly(self._client, worker, flight))

    async def _fly(self, client: Client, worker: _Worker, flight: _Flight) -> None:
        """Have a batch done, and give back what became of it."""
        address, key = flight.worker, flight.key
        state = self._invited[1]
        if worker.state != state:
            await self._join(address, worker)
        future: Future[tuple[bytes, dict[str, int]]] = client.submit(
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
            sent, held = await future
            done = unpacked(sent)
        except member.NotJoinedError:
            worker.state = ""
            self._land(worker, flight)
            self._again(flight)
        except Exception as error:  # of a batch that cannot be carried, or a worker that went
            if future.status != "error" or self._workers.get(address) is not worker:
                return  # it is given again when the worker is seen to be gone
            self._land(worker, flight)
            failure = f"internal: worker {worker.name}: {type(error).__name__}: {error}"
            self._give_back(flight, Done([], complete=False, failure=failure))
        else:
            self._land(worker, flight)
            self._note_held(address, worker, held)
            self._moved = self._moved.with_done(done, near=flight.near)
            self._give_back(flight, done)
        finally:
            future.release()
        self._place_all()

    def _land(self, worker: _Worker, flight: _Flight) -> None:
        worker.flights.pop(flight.key, None)
        self._by_key.pop(flight.key, None)
        for key in self._placement.end(flight.key, time.monotonic()):
            self._depart(self._by_key[str(key)])

    def _give_back(self, flight: _Flight, done: Done) -> None:
        """Have what became of a batch kept, by another thread."""
        if self._flights.pop(flight.number, None) is None:
            return
        if flight.worker and (worker := self._workers.get(flight.worker)) is not None:
            self._land(worker, flight)
        self._keeping += 1

        def keep() -> None:
            try:
                self._back(flight.number, done)
            finally:
                self._loop.call_soon_threadsafe(self._kept)

        self._keepers.submit(keep)

    def _kept(self) -> None:
        self._keeping -= 1
        self._count()

    # ---- What is where

    def store_s(self, source: str, size: int) -> float:
        """Give the seconds that fetching takes from the store that an object is in."""
        name = source.partition(":")[0]
        request_s, bytes_per_s = self._costs.get(name, UNMEASURED)
        return request_s + size / bytes_per_s

    def peer_s(self, size: int) -> float:
        """Give the seconds that fetching takes from another worker."""
        request_s, bytes_per_s = NEAR
        return request_s + size / bytes_per_s

    def _objects(self, batch: Batch) -> dict[str, int]:
        """Give the objects of a batch that workers keep blocks of: those that servers have."""
        roots = {store["name"]: store["root"] for store in self._storages.stores}
        counts: dict[str, int] = {}
        for row in batch.rows:
            if not NAMED.match(row.source):
                continue
            name = row.source.partition(":")[0]
            if not roots.get(name, row.source).startswith("file:"):
                counts[row.source] = counts.get(row.source, 0) + 1
        return {source: round(count * batch.row_bytes) for source, count in counts.items()}

    def _note_held(self, address: str, worker: _Worker, held: Mapping[str, int]) -> None:
        """Note what a worker tells that it holds of objects."""
        if not worker.placed:
            return
        for source, size in held.items():
            if size:
                worker.held[source] = size
                self._placement.hold(address, source, size)
            else:
                worker.held.pop(source, None)
                self._placement.drop(address, source)

    def _peers(self, flight: _Flight) -> dict[str, list[member.Peer]]:
        """Give who else has blocks of the objects of a batch, the one that was chosen first."""
        found = {}
        for source in self._objects(flight.batch):
            holders = self._placement.holders(source)
            chosen = flight.fetch.get(source)
            first = (chosen,) if chosen is not None and chosen in holders else ()
            names = dict.fromkeys((*first, *islice(holders, ASKED + 1)))
            names.pop(flight.worker, None)
            peers = [self._workers[name].peer for name in names if name in self._workers]
            found[source] = [peer for peer in peers if peer is not None][:ASKED]
        return found

    def _count(self) -> None:
        """Say how many more batches are wanted."""
        ready = [each for each in self._workers.values() if each.placed]
        # Some are placed and not sent, where it matters who does them.
        most = AHEAD * sum(each.threads for each in ready) * (PLACED if self._spread else 1)
        room = most - len(self._flights) if self._keeping < KEEPING else 0
        with self._lock:
            self._room = 0 if self._client is None or self._ending.is_set() else room
            if self._room > 0:
                self._lock.notify_all()

    def _state(self) -> Told:
        workers, held = [], []
        for each in self._workers.values():
            busy = sum(flight.began for flight in each.flights.values())
            size = sum(each.held.values())
            workers.append(
                Member(
                    name=each.name,
                    host=each.host,
                    threads=each.threads,
                    busy=busy,
                    waiting=len(each.flights) - busy,
                    cache_bytes=each.cache_bytes,
                    held_bytes=size,
                    refused=each.refused or _standing(each),
                )
            )
            held += [Held(each.name, source, size) for source, size in each.held.items()]
        address, batches = str(self._address), len(self._flights)
        return Told("dask", address, self._trouble, batches, workers, held, self._moved)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _standing(worker: _Worker) -> str:
    """Give why a worker that was not refused is given nothing; empty where it is."""
    if worker.leaving:
        return "leaving"
    return "" if worker.state else "joining"


def _costs(found: Storages) -> dict[str, tuple[float, float]]:
    """Give seconds of a request and bytes per second of each store, as measured from here."""
    measured, _, _ = found.seen_from(this_host())
    costs = {}
    for store in found.stores:
        if (kept := measured.get(store["root"])) is not None:
            costs[store["name"]] = kept["request"][0][1], kept["total_bytes_per_s"]
    return costs
