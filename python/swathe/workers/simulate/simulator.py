"""Discrete-event simulation of a pool, with a seed.

Placement, growth and eviction use the code of real workers: the cache index is the engine's.
Stores, links and threads are simulated.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

from swathe._swathe import TRUSTED_S, SimulatedCache
from swathe.workers.autoscale.policy import (
    Growth,
    GrowthLimits,
    HeldBlock,
    IdleWorker,
    PoolDemand,
    choose_leavers,
    count_ending,
    plan_hand_over,
)
from swathe.workers.placement.decide import COPIES, BatchWork, Placement
from swathe.workers.placement.rates import ComputeRates
from swathe.workers.simulate.network import Network, NetworkLink, SimulatedStore
from swathe.workers.simulate.result import RoundResult, SimulationResult, Tally, responses
from swathe.workers.simulate.state import Blocks, SimulatedWorker, Task, first
from swathe.workers.simulate.workload import SimulatedBatch, Workload

TICK_S = 1.0
"""Seconds between two steps of growth."""
HEIRS = 32
"""Heirs of workers that leave at the same time."""
MOST_EVENTS = 100_000
"""Events without a finished batch (plus some per worker) after which the run is stuck."""


@dataclass(frozen=True)
class SimulatedPool:
    """The workers, all alike.

    Attributes:
        workers: number of workers; with `grow` the run starts with its minimum.
        threads: threads per worker.
        cores: cores shared by all workers, if they are on one machine; else each thread has its
            own.
        core_s: core seconds a batch takes per second of computing, including overhead.
        cache_bytes: cache size per worker.
        link_bytes_per_s: rate of each worker's link, in and out.
        peer_latency_s: latency of a request to another worker.
        dispatch_s: time between two sent batches: one scheduler serves all.
        ahead: batches in flight per thread, at most.
        prediction_ratio: ratio of predicted to actual computing time, until the first batch of an
            object cached by its worker is back.
        fails_s: mean time until a worker is lost; its replacement comes after `start_s`.
        walltime_s: time after which a worker must end.
        start_s: time until a worker has joined.
        grow: growth limits; `None`: the number of workers is fixed.
    """

    workers: int
    threads: int = 1
    cores: float = inf
    core_s: float = 1.0
    cache_bytes: int = 10 << 30
    link_bytes_per_s: float = 1.25e8
    peer_latency_s: float = 1e-3
    dispatch_s: float = 0.002
    ahead: int = 2
    prediction_ratio: float = 1.0
    fails_s: float = inf
    walltime_s: float = inf
    start_s: float = 30.0
    grow: GrowthLimits | None = None


class StuckError(ValueError):
    """No batch ever finishes: workers end before one can."""


class Simulation:
    """One run."""

    def __init__(
        self,
        pool: SimulatedPool,
        store: SimulatedStore,
        workload: Workload,
        clients: int,
        rounds: int,
        seed: int,
    ) -> None:
        """Take the pool, the workload, and the number of rounds.

        With `clients`, each requests a batch when it has its last one. Without clients all batches
        of a round are there from the start, as in a job.
        """
        self._pool, self._workload = pool, workload
        self._clients, self._rounds = clients, rounds
        self._rng = random.Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = self._done_at = 0
        self._cores = NetworkLink(pool.cores)
        self._copying: set[str] = set()
        self._wires = Network(store, pool.link_bytes_per_s, pool.peer_latency_s)
        self._placement, self._paces = Placement(self._wires, ahead=pool.ahead), ComputeRates()
        self._workers: dict[str, SimulatedWorker] = {}
        self._join_count = self._request_count = self._busy = 0
        self._growth = Growth(pool.grow) if pool.grow is not None else None
        self._source: Iterator[SimulatedBatch] = iter(())
        self._pending: deque[Task] = deque()
        self._rows_to_draw = self._rest = self._round = 0
        self._dispatching = False
        self._free_at = 0.0
        self._round_at, self._round_bytes, self._round_cuts = 0.0, 0, 0
        self._tally = Tally()

    def run(self) -> SimulationResult:
        """Run to the end.

        Raises:
            StuckError: If it never ends.
        """
        grow = self._growth
        for _ in range(self._pool.workers if grow is None else grow.limits.minimum):
            self._join()
        most_events = MOST_EVENTS + 20 * self._pool.workers * self._pool.threads
        self._next_round()
        if grow is not None:
            self._grow()
        while self._rest:
            if not self._events or self._count > self._done_at + most_events:
                raise StuckError(
                    f"after {self._now:,.0f} s none of {self._rest:,} remaining batches has "
                    "finished: workers end before a batch does"
                )
            self._now, _, call, arguments = heapq.heappop(self._events)
            self._wires.now = self._now
            call(*arguments)
        for worker in self._workers.values():
            self._tally.worker_s += self._now - worker.since
        return self._tally.result(self._pool.workers, self._pool.threads, self._now)

    def _at(self, time: float, call: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, call, arguments))

    # Requests.

    def _next_round(self) -> None:
        self._source = self._workload.batches(self._round)
        self._rows_to_draw = self._rest = self._workload.count
        for _ in range(self._clients):
            self._ask()
        self._dispatch()

    def _ask(self) -> None:
        """Let a client request its next batch."""
        if self._rows_to_draw:
            self._rows_to_draw -= 1
            self._pending.append(Task(next(self._source), self._now, True))

    def _next_task(self) -> Task | None:
        if not self._pending and self._rows_to_draw and not self._clients:
            self._rows_to_draw -= 1
            self._pending.append(Task(next(self._source), self._now, False))
        return self._pending[0] if self._pending else None

    def _finish(self, task: Task) -> None:
        tally, batch = self._tally, task.batch
        tally.done_at.append(self._now)
        tally.cuts.append(batch.cuts)
        tally.responses.append(self._now - task.asked_at)
        tally.computing_s += batch.compute_s
        tally.fetching_s += task.fetched_at - task.begun_at
        self._round_cuts += batch.cuts
        self._rest -= 1
        self._done_at = self._count
        if task.client:
            self._ask()
        if not self._rest:
            seconds = self._now - self._round_at
            traffic = tally.store_bytes - self._round_bytes
            rate = self._round_cuts / max(seconds, 1e-9)
            late = responses(tally.responses[-self._workload.count :])
            tally.rounds.append(RoundResult(seconds, rate, *late, traffic))
            self._round_at, self._round_bytes, self._round_cuts = self._now, tally.store_bytes, 0
            self._round += 1
            if self._round < self._rounds:
                self._next_round()

    # Placement.

    def _dispatch(self) -> None:
        """Send a batch when the scheduler is free, if there is one."""
        if not self._dispatching and (self._pending or (self._rows_to_draw and not self._clients)):
            self._dispatching = True
            self._at(max(self._now, self._free_at), self._give)

    def _give(self) -> None:
        self._dispatching = False
        task = self._next_task()
        if task is None:
            return
        batch = task.batch
        seconds = self._paces.expected_s("", self._pool.prediction_ratio * batch.compute_s)
        decision = self._placement.place(
            task, BatchWork({batch.source: batch.bytes}, seconds), self._now
        )
        if decision is None:
            return  # the next batch that ends tries again
        self._pending.popleft()
        if not task.client:
            task.asked_at = self._now
        self._free_at = self._now + self._pool.dispatch_s
        worker = self._workers[decision.worker]
        task.choice = decision.fetch.get(batch.source)
        if batch.source in decision.fetch and task.choice is None:
            task.from_store = batch.bytes
            self._wires.coming_bytes += batch.bytes
        holders = self._placement.holders(batch.source)
        self._tally.of_cache += bool(holders)
        self._tally.on_holder += worker.name in holders
        self._busy += not worker.flights
        worker.flights[task] = None
        if not decision.is_parked:
            self._depart(worker, task, self._free_at)
        for source, heir in decision.copies:
            self._spread(source, self._workers[heir])
        self._dispatch()

    def _depart(self, worker: SimulatedWorker, task: Task, at: float) -> None:
        """Send a batch to its worker, with the peer to ask for what it lacks."""
        source = task.batch.source
        peers = self._placement.peers(source, worker.name, task.choice)
        coming = task.choice is not None and self._placement.is_coming(task.choice, source)
        # The worker waits for a peer that is still fetching.
        first = (task.choice,) if coming and task.choice is not None else ()
        task.peers = tuple(dict.fromkeys((*first, *peers)))
        self._at(at, self._arrive, worker, task)

    def _arrive(self, worker: SimulatedWorker, task: Task) -> None:
        if worker.is_gone:
            return
        worker.queue.append(task)
        self._begin(worker)

    def _begin(self, worker: SimulatedWorker) -> None:
        """Let a free thread start the next batch."""
        if not worker.queue or len(worker.running) == self._pool.threads:
            return
        task = worker.queue.popleft()
        worker.running[task] = None
        self._placement.begin(task, self._now)
        self._wires.coming_bytes -= task.from_store
        task.from_store = 0
        task.begun_at = self._now
        task.fetched_at = self._fetch(worker, task)
        self._at(task.fetched_at, self._compute, worker, task)

    def _compute(self, worker: SimulatedWorker, task: Task) -> None:
        seconds = task.batch.compute_s
        cores_end = self._cores.take(self._now, self._pool.core_s * seconds)
        self._at(max(cores_end, self._now + seconds), self._end, worker, task)

    def _end(self, worker: SimulatedWorker, task: Task) -> None:
        if worker.is_gone:
            return
        del worker.running[task]
        del worker.flights[task]
        for due in self._placement.end(task, self._now):
            assert isinstance(due, Task)
            self._depart(worker, due, self._now)
        worker.changes[task.batch.source] = None
        for source in worker.changes:
            self._tell(worker, source)
        worker.changes.clear()
        if not task.has_fetched:
            predicted_s = self._pool.prediction_ratio * task.batch.compute_s
            self._paces.learn("", predicted_s, self._now - task.begun_at)
        if not worker.flights:
            self._busy -= 1
            worker.idle_since = self._now
        self._finish(task)
        self._begin(worker)
        self._dispatch()

    # Transfers.

    def _fetch(self, worker: SimulatedWorker, task: Task) -> float:
        """Fetch what a batch needs; return when all of it has arrived."""
        batch, tally, wires = task.batch, self._tally, self._wires
        source, size = batch.source, batch.block_bytes
        have = worker.blocks.get(source, Blocks())
        here, missing = have.bits & batch.blocks, batch.blocks & ~have.bits
        task.has_fetched = bool(missing)
        # Data fetched by another thread of this worker is fetched only once.
        end = max(self._now, have.ready_at) if here & have.late else self._now
        came_at = have.came_at if here else inf
        peers = [self._workers[name] for name in task.peers if name in self._workers]
        remaining = first(missing, worker.cache.young_bytes // size)
        for peer in peers:
            theirs = peer.blocks.get(source, Blocks())
            waits = peer.name == task.choice
            bits = (theirs.bits if waits else theirs.present(self._now)) & remaining
            if bits:
                ready_at = theirs.ready_at if bits & theirs.late else self._now
                moved_bytes = bits.bit_count() * size
                end = max(end, wires.from_peer(worker.down, peer.up, moved_bytes, ready_at))
                came_at = min(came_at, theirs.came_at)
                tally.peer_bytes += moved_bytes
                remaining, missing = remaining & ~bits, missing & ~bits
        is_new = source not in worker.opened_files
        if is_new or self._now - came_at > TRUSTED_S:
            # The version is always requested from the store; the first answer includes the header.
            worker.opened_files.add(source)
            end += wires.alone_s(0)
        if missing:
            # The store delivers what peers lack.
            moved_bytes = missing.bit_count() * size
            end += wires.from_store(worker.down, moved_bytes) - self._now
            came_at = min(came_at, end)
            tally.store_bytes += moved_bytes
        tally.cache_bytes += here.bit_count() * size
        # Cost of fetching a block again.
        block_s = wires.alone_s(size)
        if peers:
            block_s = min(block_s, wires.peer_s(size))
        new = Blocks(batch.blocks, size, end, batch.blocks & ~have.bits, came_at)
        self._keep(worker, source, new, block_s)
        return end

    def _keep(self, worker: SimulatedWorker, source: str, new: Blocks, block_s: float) -> None:
        """Put blocks into a worker's cache; evict others for them."""
        old = worker.blocks.get(source, Blocks())
        late = new.late if old.ready_at <= self._now else old.late | new.late
        both = Blocks(
            old.bits | new.bits,
            new.each,
            max(old.ready_at, new.ready_at),
            late,
            min(old.came_at, new.came_at),
        )
        worker.blocks[source] = both
        count = both.bits.bit_count()
        for least, loss in worker.cache.note(source, count, both.each, block_s, self._now):
            remaining = worker.blocks[least].without(loss)
            if remaining.bits:
                worker.blocks[least] = remaining
            else:
                del worker.blocks[least]
            worker.changes[least] = None  # reported with the next finished batch

    def _tell(self, worker: SimulatedWorker, source: str) -> None:
        """Report what a worker has cached of an object."""
        size = worker.blocks.get(source, Blocks()).bytes
        if not size:
            self._placement.drop(worker.name, source)
        elif self._placement.holders(source).get(worker.name) != size:
            self._placement.hold(worker.name, source, size)

    def _spread(self, source: str, heir: SimulatedWorker) -> None:
        """Copy a hot object to another worker, unless enough copies are running."""
        if heir.name in self._copying or len(self._copying) >= COPIES:
            self._placement.forgo(heir.name, source)
            return
        self._copying.add(heir.name)
        self._copy(source, heir)

    def _copy(self, source: str, heir: SimulatedWorker) -> float:
        """Copy an object from its fullest holder to another worker; return the time of arrival."""
        holders = self._placement.holders(source)
        giver = self._workers[max(holders, key=lambda name: holders[name])]
        blocks = giver.blocks.get(source, Blocks())
        end = self._wires.from_peer(heir.down, giver.up, blocks.bytes, blocks.ready_at)
        self._tally.peer_bytes += blocks.bytes
        self._at(end, self._end_copy, heir, source, blocks._replace(ready_at=end))
        return end

    def _end_copy(self, heir: SimulatedWorker, source: str, blocks: Blocks) -> None:
        if blocks.bits and not heir.is_gone:
            self._keep(heir, source, blocks, self._wires.peer_s(blocks.each))
            self._tell(heir, source)
        self._placement.forgo(heir.name, source)
        self._copying.discard(heir.name)

    # Workers.

    def _join(self) -> None:
        pool = self._pool
        name = f"worker-{self._join_count}"
        self._join_count += 1
        worker = SimulatedWorker(
            name,
            self._now,
            SimulatedCache(pool.cache_bytes),
            NetworkLink(pool.link_bytes_per_s),
            NetworkLink(pool.link_bytes_per_s),
            self._now + pool.walltime_s,
            idle_since=self._now,
        )
        self._workers[name] = worker
        self._tally.most_workers = max(self._tally.most_workers, len(self._workers))
        self._placement.join(name, pool.threads, pool.cache_bytes, ends=worker.ends)
        if pool.fails_s < inf:
            self._at(self._now + self._rng.expovariate(1 / pool.fails_s), self._lose, worker)
        if worker.ends < inf:
            self._at(worker.ends, self._lose, worker)
        self._dispatch()

    def _join_pending(self) -> None:
        self._request_count -= 1
        self._join()

    def _ask_worker(self) -> None:
        self._request_count += 1
        self._at(self._now + self._pool.start_s, self._join_pending)

    def _lose(self, worker: SimulatedWorker) -> None:
        """End a worker at any point; its batches go elsewhere."""
        if worker.is_gone:
            return
        self._tally.losses += 1
        self._tally.lost_s += sum(self._now - task.begun_at for task in worker.running)
        self._remove(worker, self._now)
        if self._growth is None:
            self._ask_worker()

    def _remove(self, worker: SimulatedWorker, end: float) -> None:
        worker.is_gone = True
        self._busy -= bool(worker.flights)
        self._tally.worker_s += end - worker.since
        self._placement.leave(worker.name)
        del self._workers[worker.name]
        for task in reversed(worker.flights):
            self._wires.coming_bytes -= task.from_store
            task.from_store = 0
            self._pending.appendleft(task)
        self._dispatch()

    def _grow(self) -> None:
        """Request workers, or let some go."""
        assert self._growth is not None
        limits = self._growth.limits
        waiting = len(self._pending) + (0 if self._clients else self._rows_to_draw)
        demand = PoolDemand(
            waiting * self._workload.mean_s,
            self._pool.threads,
            self._busy,
            count_ending((worker.ends for worker in self._workers.values()), limits, self._now)
            if self._pool.walltime_s < inf
            else 0,
        )
        surplus = len(self._workers) + self._request_count - self._growth.target(demand, self._now)
        for _ in range(-surplus):
            self._ask_worker()
        if surplus > 0:
            idle = [
                IdleWorker(worker.name, worker.idle_since, self._worth_s(worker), worker.ends)
                for worker in self._workers.values()
                if not worker.flights and self._now - worker.idle_since >= limits.idle_s
            ]
            leavers = dict.fromkeys(choose_leavers(idle, surplus, limits, self._now))
            stayers = (each for each in self._workers.values() if each.name not in leavers)
            heirs = list(islice(stayers, HEIRS))
            for name in leavers:
                self._hand_over(self._workers[name], heirs, limits)
        self._at(self._now + TICK_S, self._grow)

    def _alone(self, worker: SimulatedWorker) -> Iterator[tuple[str, Blocks]]:
        """Yield the objects that only this worker has cached."""
        for name, blocks in worker.blocks.items():
            if self._placement.holders(name).keys() == {worker.name}:
                yield name, blocks

    def _worth_s(self, worker: SimulatedWorker) -> float:
        return sum(self._wires.alone_s(blocks.bytes) for _, blocks in self._alone(worker))

    def _hand_over(
        self, worker: SimulatedWorker, heirs: Sequence[SimulatedWorker], limits: GrowthLimits
    ) -> None:
        """End a worker, and copy the objects that are worth it to others."""
        rooms = {heir.name: self._pool.cache_bytes - heir.cache.bytes for heir in heirs}
        blocks = [
            HeldBlock(name, own_blocks.bytes, self._wires.alone_s(own_blocks.bytes))
            for name, own_blocks in self._alone(worker)
        ]
        end = self._now
        rate = self._pool.link_bytes_per_s
        for source, heir in plan_hand_over(blocks, rooms, rate, limits.hand_over_s).heirs:
            end = max(end, self._copy(source, self._workers[heir]))
        self._remove(worker, end)
