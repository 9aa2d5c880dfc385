"""A pool of workers as it would run: events in order of time, drawn from a seed.

Placement, growth and what caches keep are the code that real workers use. Simulated are the
storage, the links and the threads: whatever is fetched takes its turn on the line of the store and
on those of the workers, each of which carries so many bytes in a second, and arrives when the last
of them is done with it and the latency is over.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from swathe.workers.growth import (
    Block,
    Demand,
    Growth,
    Idle,
    Limits,
    ending,
    hand_over,
    leaving,
)
from swathe.workers.placement import Placement, Work
from swathe.workers.workload import Batch, Workload
from swathe.workers.worth import Kept

TICK_S = 1.0
"""How often growth looks."""
BINS = 50
"""Of throughput over time."""


@dataclass(frozen=True)
class Store:
    """A storage, as seen from each worker.

    Attributes:
        latency_s: of a request.
        stream_bytes_per_s: of one fetch, alone.
        total_bytes_per_s: of all workers together.
        requests_per_s: of all workers together.
        remote: whether it is reached over the workers' links.
    """

    latency_s: float
    stream_bytes_per_s: float
    total_bytes_per_s: float
    requests_per_s: float = inf
    remote: bool = True


@dataclass(frozen=True)
class Pool:
    """The workers, all alike.

    Attributes:
        workers: how many; with `grow` at the start none but its minimum.
        threads: of each.
        cache_bytes: of each.
        link_bytes_per_s: of each, in and out.
        peer_latency_s: of a request to another worker.
        dispatch_s: between one batch given out and the next: one scheduler serves all.
        ahead: batches in flight per thread, at most.
        fails_s: mean time until a worker is lost; another comes after `start_s`.
        walltime_s: after which a worker must end.
        start_s: how long a worker takes to come.
        grow: by the queue, within these limits; `None`: there are as many all the time.
    """

    workers: int
    threads: int = 1
    cache_bytes: int = 10 << 30
    link_bytes_per_s: float = 1.25e8
    peer_latency_s: float = 1e-3
    dispatch_s: float = 0.002
    ahead: int = 2
    fails_s: float = inf
    walltime_s: float = inf
    start_s: float = 30.0
    grow: Limits | None = None


@dataclass(frozen=True)
class Round:
    """One time through the workload."""

    seconds: float
    cuts_per_s: float
    store_bytes: int


@dataclass(frozen=True)
class Result:
    """What came of it.

    Attributes:
        seconds: from the first batch asked for to the last one done.
        p50_s, p95_s: of the responses: with clients from asking, else from being given out.
        cache_bytes, peer_bytes, store_bytes: needed, and found on the worker's own disk, with a
            peer, in the store.
        hit_rate: of all bytes needed, the part that was in a cache, own or a peer's.
        on_holder: of batches whose object some worker held, the part that went to such a one.
        worker_s: in which workers were there; of them `computing_s` and `fetching_s` for work that
            was of use; `lost_s` for work that was done again, and `wasted_s` all the rest.
        most_workers: at the same time.
        lost: workers that failed or ran out of their walltime.
        throughput: (time, cuts in a second), from the start to the end.
    """

    workers: int
    batches: int
    cuts: int
    seconds: float
    cuts_per_s: float
    p50_s: float
    p95_s: float
    cache_bytes: int
    peer_bytes: int
    store_bytes: int
    hit_rate: float
    on_holder: float
    worker_s: float
    computing_s: float
    fetching_s: float
    lost_s: float
    wasted_s: float
    most_workers: int
    lost: int
    rounds: tuple[Round, ...]
    throughput: tuple[tuple[float, float], ...]


@dataclass(slots=True)
class _Line:
    """Carries so much in a second, one after the other."""

    per_s: float
    free_at: float = 0.0

    def take(self, now: float, amount: float) -> float:
        """Give when so much is through."""
        self.free_at = max(now, self.free_at) + amount / self.per_s
        return self.free_at


@dataclass(slots=True, eq=False)
class _Task:
    """A batch on its way; `fetch` is the peer to ask, `None` the store."""

    batch: Batch
    asked_at: float
    client: bool
    worker: _Worker | None = None
    peer: str | None = None
    begun_at: float = 0.0
    fetched_at: float = 0.0


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker; `blocks` are those it has of each object, and from when on."""

    name: str
    since: float
    kept: Kept
    down: _Line
    up: _Line
    ends: float
    blocks: dict[str, tuple[int, float]] = field(default_factory=dict)
    queue: deque[_Task] = field(default_factory=deque)
    running: set[_Task] = field(default_factory=set)
    flights: dict[_Task, None] = field(default_factory=dict)
    idle_since: float = 0.0
    gone: bool = False


class Simulation:
    """One run."""

    def __init__(
        self, pool: Pool, store: Store, workload: Workload, clients: int, rounds: int, seed: int
    ) -> None:
        """Take who works, on what, how often.

        With `clients`, each asks for a batch when it has its last; with none all of a round is
        there from the start, as a job is.
        """
        self._pool, self._store, self._workload = pool, store, workload
        self._clients, self._rounds = clients, rounds
        self._rng = random.Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._placement = Placement(self, ahead=pool.ahead)
        self._line = _Line(store.total_bytes_per_s)
        self._calls = _Line(store.requests_per_s)
        self._workers: dict[str, _Worker] = {}
        self._joined = self._asked = self._busy = 0
        self._growth = Growth(pool.grow) if pool.grow is not None else None
        self._source: Iterator[Batch] = iter(())
        self._pending: deque[_Task] = deque()
        self._undrawn = self._left = self._round = 0
        self._dispatching = False
        self._free_at = 0.0
        self._round_at, self._round_bytes, self._round_cuts = 0.0, 0, 0
        self._told = _Told()

    def store_s(self, source: str, size: int) -> float:  # noqa: ARG002 - all are in one
        """Predict a fetch from the store, with what is on its line now."""
        waiting_s = max(0.0, self._line.free_at - self._now)
        store = self._store
        return store.latency_s + max(size / store.stream_bytes_per_s, waiting_s)

    def peer_s(self, size: int) -> float:
        """Predict a fetch from a peer."""
        return self._pool.peer_latency_s + size / self._pool.link_bytes_per_s

    def run(self) -> Result:
        """Run until all is done."""
        grow = self._growth
        for _ in range(self._pool.workers if grow is None else grow.limits.minimum):
            self._join()
        self._next_round()
        if grow is not None:
            self._grow()
        while self._left:
            self._now, _, call, given = heapq.heappop(self._events)
            call(*given)
        for worker in self._workers.values():
            self._told.worker_s += self._now - worker.since
        return self._told.result(self._pool, self._now)

    def _at(self, time: float, call: Callable[..., None], *given: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, call, given))

    # What is asked for.

    def _next_round(self) -> None:
        self._source = self._workload.batches(self._round)
        self._undrawn = self._left = self._workload.count
        for _ in range(self._clients):
            self._ask()
        self._dispatch()

    def _ask(self) -> None:
        """Let a client ask for its next batch."""
        if self._undrawn:
            self._undrawn -= 1
            self._pending.append(_Task(next(self._source), self._now, True))

    def _next_task(self) -> _Task | None:
        if not self._pending and self._undrawn and not self._clients:
            self._undrawn -= 1
            self._pending.append(_Task(next(self._source), self._now, False))
        return self._pending[0] if self._pending else None

    def _done(self, task: _Task) -> None:
        told, batch = self._told, task.batch
        told.done.append((self._now, batch.cuts))
        told.responses.append(self._now - task.asked_at)
        told.computing_s += batch.seconds
        told.fetching_s += task.fetched_at - task.begun_at
        self._round_cuts += batch.cuts
        self._left -= 1
        if task.client:
            self._ask()
        if not self._left:
            seconds = self._now - self._round_at
            moved = told.store_bytes - self._round_bytes
            told.rounds.append(Round(seconds, self._round_cuts / max(seconds, 1e-9), moved))
            self._round_at, self._round_bytes, self._round_cuts = self._now, told.store_bytes, 0
            self._round += 1
            if self._round < self._rounds:
                self._next_round()

    # Who does it.

    def _dispatch(self) -> None:
        """Give out a batch when the scheduler is free, if there is one."""
        if not self._dispatching and (self._pending or (self._undrawn and not self._clients)):
            self._dispatching = True
            self._at(max(self._now, self._free_at), self._give)

    def _give(self) -> None:
        self._dispatching = False
        task = self._next_task()
        if task is None:
            return
        batch = task.batch
        placed = self._placement.place(
            task, Work({batch.source: batch.bytes}, batch.seconds), self._now
        )
        if placed is None:
            return  # whoever ends next asks again
        self._pending.popleft()
        if not task.client:
            task.asked_at = self._now
        self._free_at = self._now + self._pool.dispatch_s
        worker = self._workers[placed.worker]
        task.worker, task.peer = worker, placed.fetch.get(batch.source)
        holders = self._placement.holders(batch.source)
        if holders:
            self._told.of_held += 1
            self._told.on_holder += worker.name in holders
        self._busy += not worker.flights
        worker.flights[task] = None
        if not placed.parked:
            self._at(self._free_at, self._arrive, worker, task)
        for source, heir in placed.copies:
            self._copy(source, self._workers[heir])
        self._dispatch()

    def _arrive(self, worker: _Worker, task: _Task) -> None:
        if worker.gone:
            return
        worker.queue.append(task)
        self._begin(worker)

    def _begin(self, worker: _Worker) -> None:
        """Let a free thread take the next batch."""
        if not worker.queue or len(worker.running) == self._pool.threads:
            return
        task = worker.queue.popleft()
        worker.running.add(task)
        self._placement.begin(task, self._now)
        task.begun_at = self._now
        task.fetched_at = self._fetch(worker, task)
        self._at(task.fetched_at + task.batch.seconds, self._end, worker, task)

    def _end(self, worker: _Worker, task: _Task) -> None:
        if worker.gone:
            return
        source = task.batch.source
        worker.running.remove(task)
        del worker.flights[task]
        for due in self._placement.end(task, self._now):
            assert isinstance(due, _Task)
            self._at(self._now, self._arrive, worker, due)
        self._tell(worker, source, task.batch.block_bytes)
        if not worker.flights:
            self._busy -= 1
            worker.idle_since = self._now
        self._done(task)
        self._begin(worker)
        self._dispatch()

    # What moves.

    def _fetch(self, worker: _Worker, task: _Task) -> float:
        """Bring what a batch needs; gives when all of it is there."""
        batch, told = task.batch, self._told
        have, ready_at = worker.blocks.get(batch.source, (0, self._now))
        here, missing = have & batch.blocks, batch.blocks & ~have
        end = max(self._now, ready_at) if here else self._now
        refetch_s = 0.0
        peer = self._workers.get(task.peer or "")
        if missing and peer is not None:
            theirs, at = peer.blocks.get(batch.source, (0, inf))
            given = theirs & missing if at <= self._now else 0
            if given:
                size = given.bit_count() * batch.block_bytes
                end = max(end, self._from_peer(worker, peer, size))
                refetch_s += self.peer_s(size)
                told.peer_bytes += size
                missing &= ~given
        if missing:
            size = missing.bit_count() * batch.block_bytes
            end = max(end, self._from_store(worker, size))
            refetch_s += self._store.latency_s + size / self._store.stream_bytes_per_s
            told.store_bytes += size
        told.cache_bytes += here.bit_count() * batch.block_bytes
        self._keep(worker, batch.source, batch.blocks, batch.block_bytes, end, refetch_s)
        return end

    def _from_store(self, worker: _Worker, size: int) -> float:
        store, now = self._store, self._now
        end = max(
            now + size / store.stream_bytes_per_s,
            self._line.take(now, size),
            self._calls.take(now, 1),
        )
        if store.remote:
            end = max(end, worker.down.take(now, size))
        return end + store.latency_s

    def _from_peer(self, worker: _Worker, peer: _Worker, size: int) -> float:
        end = max(worker.down.take(self._now, size), peer.up.take(self._now, size))
        return end + self._pool.peer_latency_s

    def _keep(
        self, worker: _Worker, source: str, blocks: int, each: int, at: float, refetch_s: float
    ) -> None:
        """Put blocks into the cache of a worker; what goes for them is gone."""
        have, ready_at = worker.blocks.get(source, (0, at))
        if source in worker.kept:
            refetch_s += worker.kept.refetching(source)
        worker.blocks[source] = have | blocks, max(at, ready_at)
        for least in worker.kept.use(source, (have | blocks).bit_count() * each, refetch_s):
            del worker.blocks[least]
            self._placement.drop(worker.name, least)

    def _tell(self, worker: _Worker, source: str, each: int) -> None:
        """Say what a worker holds of an object."""
        have, _ = worker.blocks.get(source, (0, 0.0))
        size = have.bit_count() * each
        if size and self._placement.holders(source).get(worker.name) != size:
            self._placement.hold(worker.name, source, size)

    def _copy(self, source: str, heir: _Worker) -> None:
        """Copy an object to another worker, from the one that has most of it."""
        holders = self._placement.holders(source)
        giver = self._workers[max(holders, key=lambda name: holders[name])]
        size = holders[giver.name]
        blocks, _ = giver.blocks.get(source, (0, inf))
        if not blocks:
            return
        self._told.peer_bytes += size
        end = self._from_peer(heir, giver, size)
        each = size // blocks.bit_count()
        self._at(end, self._copied, heir, source, blocks, each, self.peer_s(size))

    def _copied(self, heir: _Worker, source: str, blocks: int, each: int, refetch_s: float) -> None:
        if not heir.gone:
            self._keep(heir, source, blocks, each, self._now, refetch_s)
            self._tell(heir, source, each)

    # Who comes and goes.

    def _join(self) -> None:
        pool = self._pool
        name = f"worker-{self._joined}"
        self._joined += 1
        worker = _Worker(
            name,
            self._now,
            Kept(pool.cache_bytes),
            _Line(pool.link_bytes_per_s),
            _Line(pool.link_bytes_per_s),
            self._now + pool.walltime_s,
            idle_since=self._now,
        )
        self._workers[name] = worker
        self._told.most_workers = max(self._told.most_workers, len(self._workers))
        self._placement.join(name, pool.threads, pool.cache_bytes, ends=worker.ends)
        if pool.fails_s < inf:
            self._at(self._now + self._rng.expovariate(1 / pool.fails_s), self._lose, worker)
        if worker.ends < inf:
            self._at(worker.ends, self._lose, worker)
        self._dispatch()

    def _come(self) -> None:
        self._asked -= 1
        self._join()

    def _ask_worker(self) -> None:
        self._asked += 1
        self._at(self._now + self._pool.start_s, self._come)

    def _lose(self, worker: _Worker) -> None:
        """End a worker wherever it is; what it had to do goes elsewhere."""
        if worker.gone:
            return
        self._told.lost += 1
        self._told.lost_s += sum(self._now - task.begun_at for task in worker.running)
        self._remove(worker)
        if self._growth is None:
            self._ask_worker()

    def _remove(self, worker: _Worker) -> None:
        worker.gone = True
        self._busy -= bool(worker.flights)
        self._told.worker_s += self._now - worker.since
        self._placement.leave(worker.name)
        del self._workers[worker.name]
        self._pending.extendleft(reversed(worker.flights))
        self._dispatch()

    def _grow(self) -> None:
        """Ask for workers, or let some go."""
        assert self._growth is not None
        limits = self._growth.limits
        waiting = len(self._pending) + (0 if self._clients else self._undrawn)
        demand = Demand(
            waiting * self._workload.mean_s,
            self._pool.threads,
            self._busy,
            ending((worker.ends for worker in self._workers.values()), limits, self._now)
            if self._pool.walltime_s < inf
            else 0,
        )
        surplus = len(self._workers) + self._asked - self._growth.target(demand, self._now)
        for _ in range(-surplus):
            self._ask_worker()
        if surplus > 0:
            idle = [
                Idle(worker.name, worker.idle_since, worker.kept.refetch_s, worker.ends)
                for worker in self._workers.values()
                if not worker.flights
            ]
            for name in leaving(idle, surplus, limits, self._now):
                self._hand_over(self._workers[name], limits)
        self._at(self._now + TICK_S, self._grow)

    def _hand_over(self, worker: _Worker, limits: Limits) -> None:
        """Let a worker go, and its heirs have what is worth it."""
        heirs = {
            other.name: self._pool.cache_bytes - other.kept.bytes
            for other in self._workers.values()
            if other is not worker
        }
        held = {name: self._placement.holders(name)[worker.name] for name in worker.blocks}
        blocks = [
            Block(name, size, worker.kept.refetching(name))
            for name, size in held.items()
            if len(self._placement.holders(name)) == 1
        ]
        given = hand_over(blocks, heirs, self._pool.link_bytes_per_s, limits.hand_over_s)
        for source, heir in given:
            self._copy(source, self._workers[heir])
        self._remove(worker)


@dataclass
class _Told:
    """What is counted on the way."""

    done: list[tuple[float, int]] = field(default_factory=list)
    responses: list[float] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    cache_bytes: int = 0
    peer_bytes: int = 0
    store_bytes: int = 0
    of_held: int = 0
    on_holder: int = 0
    worker_s: float = 0.0
    computing_s: float = 0.0
    fetching_s: float = 0.0
    lost_s: float = 0.0
    most_workers: int = 0
    lost: int = 0

    def result(self, pool: Pool, end: float) -> Result:
        """Sum up."""
        cuts = sum(count for _, count in self.done)
        needed = self.cache_bytes + self.peer_bytes + self.store_bytes
        used_s = (self.computing_s + self.fetching_s + self.lost_s) / pool.threads
        self.responses.sort()
        return Result(
            workers=pool.workers,
            batches=len(self.done),
            cuts=cuts,
            seconds=end,
            cuts_per_s=cuts / end if end else 0.0,
            p50_s=self.responses[len(self.responses) // 2],
            p95_s=self.responses[int(0.95 * len(self.responses))],
            cache_bytes=self.cache_bytes,
            peer_bytes=self.peer_bytes,
            store_bytes=self.store_bytes,
            hit_rate=1 - self.store_bytes / needed,
            on_holder=self.on_holder / self.of_held if self.of_held else 1.0,
            worker_s=self.worker_s,
            computing_s=self.computing_s / pool.threads,
            fetching_s=self.fetching_s / pool.threads,
            lost_s=self.lost_s / pool.threads,
            wasted_s=max(0.0, self.worker_s - used_s),
            most_workers=self.most_workers,
            lost=self.lost,
            rounds=tuple(self.rounds),
            throughput=_throughput(self.done, end),
        )


def _throughput(done: list[tuple[float, int]], end: float) -> tuple[tuple[float, float], ...]:
    width = end / BINS or 1.0
    counts = [0] * BINS
    for at, cuts in done:
        counts[min(BINS - 1, int(at / width))] += cuts
    return tuple((number * width, count / width) for number, count in enumerate(counts))
