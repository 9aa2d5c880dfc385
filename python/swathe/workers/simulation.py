"""A pool of workers as it would run: events in order of time, drawn from a seed.

Placement, growth and what caches keep are the code that real workers use: the shelf of numbers
is the engine's. Simulated are the storage, the links and the threads.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from swathe._swathe import SimulatedShelf
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
from swathe.workers.outcome import Result, Round, Tally, responses
from swathe.workers.placement import Placement, Work
from swathe.workers.rates import Paces
from swathe.workers.wires import Line, Store, Wires
from swathe.workers.workload import Batch, Workload

TICK_S = 1.0
"""How often growth looks."""
HEIRS = 32
"""Of those that leave at the same time."""
STUCK = 100_000
"""After so many events in which no batch was done, and some for each worker, none ever will be."""


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
        predicted: how long batches are predicted to compute, before the first of an object that
            its worker held is back, for each second that they do.
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
    predicted: float = 1.0
    fails_s: float = inf
    walltime_s: float = inf
    start_s: float = 30.0
    grow: Limits | None = None


@dataclass(slots=True, eq=False)
class _Task:
    """A batch on its way; `fetch` is the peer to ask, `None` the store."""

    batch: Batch
    asked_at: float
    client: bool
    peer: str | None = None
    near: bool = False
    from_store: int = 0
    begun_at: float = 0.0
    fetched_at: float = 0.0


class _Blocks(NamedTuple):
    """Those that a worker has of an object, a bit for each, and from when on."""

    bits: int = 0
    each: int = 0
    ready_at: float = 0.0

    @property
    def bytes(self) -> int:
        return self.bits.bit_count() * self.each

    def without(self, count: int) -> _Blocks:
        """Give the same without so many of the last."""
        bits = self.bits
        for _ in range(count):
            bits &= ~(1 << (bits.bit_length() - 1))
        return self._replace(bits=bits)


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker, what it has of each object, and of which it knows the header."""

    name: str
    since: float
    kept: SimulatedShelf
    down: Line
    up: Line
    ends: float
    blocks: dict[str, _Blocks] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    queue: deque[_Task] = field(default_factory=deque)
    running: dict[_Task, None] = field(default_factory=dict)
    flights: dict[_Task, None] = field(default_factory=dict)
    idle_since: float = 0.0
    gone: bool = False


class StuckError(ValueError):
    """No batch is ever done: workers end before one could be."""


class Simulation:
    """One run."""

    def __init__(
        self, pool: Pool, store: Store, workload: Workload, clients: int, rounds: int, seed: int
    ) -> None:
        """Take who works, on what, how often.

        With `clients`, each asks for a batch when it has its last; with none all of a round is
        there from the start, as a job is.
        """
        self._pool, self._workload = pool, workload
        self._clients, self._rounds = clients, rounds
        self._rng = random.Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = self._done_at = 0
        self._wires = Wires(store, pool.link_bytes_per_s, pool.peer_latency_s)
        self._placement, self._paces = Placement(self._wires, ahead=pool.ahead), Paces()
        self._workers: dict[str, _Worker] = {}
        self._joined = self._asked = self._busy = 0
        self._growth = Growth(pool.grow) if pool.grow is not None else None
        self._source: Iterator[Batch] = iter(())
        self._pending: deque[_Task] = deque()
        self._undrawn = self._left = self._round = 0
        self._dispatching = False
        self._free_at = 0.0
        self._round_at, self._round_bytes, self._round_cuts = 0.0, 0, 0
        self._told = Tally()

    def run(self) -> Result:
        """Run until all is done.

        Raises:
            StuckError: where that will never be.
        """
        grow = self._growth
        for _ in range(self._pool.workers if grow is None else grow.limits.minimum):
            self._join()
        stuck = STUCK + 20 * self._pool.workers * self._pool.threads
        self._next_round()
        if grow is not None:
            self._grow()
        while self._left:
            if not self._events or self._count > self._done_at + stuck:
                raise StuckError(
                    f"after {self._now:,.0f} s none of {self._left:,} batches left was done: "
                    "workers end before one is"
                )
            self._now, _, call, given = heapq.heappop(self._events)
            self._wires.now = self._now
            call(*given)
        for worker in self._workers.values():
            self._told.worker_s += self._now - worker.since
        return self._told.result(self._pool.workers, self._pool.threads, self._now)

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
        told.done_at.append(self._now)
        told.cuts.append(batch.cuts)
        told.responses.append(self._now - task.asked_at)
        told.computing_s += batch.seconds
        told.fetching_s += task.fetched_at - task.begun_at
        self._round_cuts += batch.cuts
        self._left -= 1
        self._done_at = self._count
        if task.client:
            self._ask()
        if not self._left:
            seconds = self._now - self._round_at
            moved = told.store_bytes - self._round_bytes
            rate = self._round_cuts / max(seconds, 1e-9)
            late = responses(told.responses[-self._workload.count :])
            told.rounds.append(Round(seconds, rate, *late, moved))
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
        seconds = self._paces.expected_s("", self._pool.predicted * batch.seconds)
        placed = self._placement.place(task, Work({batch.source: batch.bytes}, seconds), self._now)
        if placed is None:
            return  # whoever ends next asks again
        self._pending.popleft()
        if not task.client:
            task.asked_at = self._now
        self._free_at = self._now + self._pool.dispatch_s
        worker = self._workers[placed.worker]
        task.peer = placed.fetch.get(batch.source)
        if batch.source in placed.fetch and task.peer is None:
            task.from_store = batch.bytes
            self._wires.to_come += batch.bytes
        holders = self._placement.holders(batch.source)
        task.near = worker.name in holders
        self._told.of_held += bool(holders)
        self._told.on_holder += task.near
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
        worker.running[task] = None
        self._placement.begin(task, self._now)
        self._wires.to_come -= task.from_store
        task.from_store = 0
        task.begun_at = self._now
        task.fetched_at = self._fetch(worker, task)
        self._at(task.fetched_at + task.batch.seconds, self._end, worker, task)

    def _end(self, worker: _Worker, task: _Task) -> None:
        if worker.gone:
            return
        del worker.running[task]
        del worker.flights[task]
        for due in self._placement.end(task, self._now):
            assert isinstance(due, _Task)
            self._at(self._now, self._arrive, worker, due)
        self._tell(worker, task.batch.source)
        if task.near:
            seconds = task.batch.seconds
            self._paces.learn("", self._pool.predicted * seconds, seconds)
        if not worker.flights:
            self._busy -= 1
            worker.idle_since = self._now
        self._done(task)
        self._begin(worker)
        self._dispatch()

    # What moves.

    def _fetch(self, worker: _Worker, task: _Task) -> float:
        """Bring what a batch needs; gives when all of it is there."""
        batch, told, wires = task.batch, self._told, self._wires
        have = worker.blocks.get(batch.source, _Blocks())
        here, missing = have.bits & batch.blocks, batch.blocks & ~have.bits
        end = max(self._now, have.ready_at) if here else self._now
        # What it costs to fetch a block again.
        block_s = wires.alone_s(batch.block_bytes)
        peer = self._workers.get(task.peer or "")
        if missing and peer is not None:
            theirs = peer.blocks.get(batch.source, _Blocks())
            if given := theirs.bits & missing:
                size = given.bit_count() * batch.block_bytes
                end = max(end, wires.from_peer(worker.down, peer.up, size, theirs.ready_at))
                block_s = min(block_s, wires.peer_s(batch.block_bytes))
                told.peer_bytes += size
                missing &= ~given
        if missing:
            size = missing.bit_count() * batch.block_bytes
            end = max(end, wires.from_store(worker.down, size))
            told.store_bytes += size
        if batch.source not in worker.opened:
            # Whoever has it: the store says which version there is, with its header.
            worker.opened.add(batch.source)
            end += wires.alone_s(0)
        told.cache_bytes += here.bit_count() * batch.block_bytes
        self._keep(worker, batch.source, _Blocks(batch.blocks, batch.block_bytes, end), block_s)
        return end

    def _keep(self, worker: _Worker, source: str, new: _Blocks, block_s: float) -> None:
        """Put blocks into the cache of a worker; what goes for them is gone."""
        old = worker.blocks.get(source, _Blocks())
        both = _Blocks(old.bits | new.bits, new.each, max(old.ready_at, new.ready_at))
        worker.blocks[source] = both
        count = both.bits.bit_count()
        for least, gone in worker.kept.note(source, count, both.each, block_s, self._now):
            left = worker.blocks[least].without(gone)
            if left.bits:
                worker.blocks[least] = left
                if worker.name in self._placement.holders(least):
                    self._placement.hold(worker.name, least, left.bytes)
            else:
                del worker.blocks[least]
                self._placement.drop(worker.name, least)

    def _tell(self, worker: _Worker, source: str) -> None:
        """Say what a worker holds of an object."""
        size = worker.blocks.get(source, _Blocks()).bytes
        if size and self._placement.holders(source).get(worker.name) != size:
            self._placement.hold(worker.name, source, size)

    def _copy(self, source: str, heir: _Worker) -> float:
        """Copy an object to another worker, from the one that has most; gives when it is there."""
        holders = self._placement.holders(source)
        giver = self._workers[max(holders, key=lambda name: holders[name])]
        blocks = giver.blocks[source]
        end = self._wires.from_peer(heir.down, giver.up, blocks.bytes, blocks.ready_at)
        self._told.peer_bytes += blocks.bytes
        self._at(end, self._copied, heir, source, blocks._replace(ready_at=end))
        return end

    def _copied(self, heir: _Worker, source: str, blocks: _Blocks) -> None:
        if not heir.gone:
            self._keep(heir, source, blocks, self._wires.peer_s(blocks.each))
            self._tell(heir, source)

    # Who comes and goes.

    def _join(self) -> None:
        pool = self._pool
        name = f"worker-{self._joined}"
        self._joined += 1
        worker = _Worker(
            name,
            self._now,
            SimulatedShelf(pool.cache_bytes),
            Line(pool.link_bytes_per_s),
            Line(pool.link_bytes_per_s),
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
        self._remove(worker, self._now)
        if self._growth is None:
            self._ask_worker()

    def _remove(self, worker: _Worker, end: float) -> None:
        worker.gone = True
        self._busy -= bool(worker.flights)
        self._told.worker_s += end - worker.since
        self._placement.leave(worker.name)
        del self._workers[worker.name]
        for task in reversed(worker.flights):
            self._wires.to_come -= task.from_store
            task.from_store = 0
            self._pending.appendleft(task)
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
                Idle(worker.name, worker.idle_since, self._worth_s(worker), worker.ends)
                for worker in self._workers.values()
                if not worker.flights and self._now - worker.idle_since >= limits.idle_s
            ]
            going = dict.fromkeys(leaving(idle, surplus, limits, self._now))
            staying = (each for each in self._workers.values() if each.name not in going)
            heirs = list(islice(staying, HEIRS))
            for name in going:
                self._hand_over(self._workers[name], heirs, limits)
        self._at(self._now + TICK_S, self._grow)

    def _alone(self, worker: _Worker) -> Iterator[tuple[str, _Blocks]]:
        """Give what only this worker holds."""
        for name, held in worker.blocks.items():
            if len(self._placement.holders(name)) == 1:
                yield name, held

    def _worth_s(self, worker: _Worker) -> float:
        return sum(self._wires.alone_s(held.bytes) for _, held in self._alone(worker))

    def _hand_over(self, worker: _Worker, heirs: Sequence[_Worker], limits: Limits) -> None:
        """Let a worker go, and its heirs have what is worth it."""
        rooms = {heir.name: self._pool.cache_bytes - heir.kept.bytes for heir in heirs}
        blocks = [
            Block(name, held.bytes, self._wires.alone_s(held.bytes))
            for name, held in self._alone(worker)
        ]
        end = self._now
        rate = self._pool.link_bytes_per_s
        for source, heir in hand_over(blocks, rooms, rate, limits.hand_over_s).given:
            end = max(end, self._copy(source, self._workers[heir]))
        self._remove(worker, end)
