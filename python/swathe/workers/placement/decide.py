"""Choice of the worker for a batch.

A batch goes to the worker where it is predicted to end first. The prediction adds waiting for a
thread, fetching the missing objects by the cheapest way (peer or store), and computing. So a batch
goes to the holder of its objects, unless waiting there costs more than fetching elsewhere. The
delay for batches behind it counts too, or a busy pool would spend its threads on fetching.

Candidates are holders of its objects, the longest idle first, and the workers that are free first.
Any other worker would have to fetch as much and be free later. There is never a scan over all
workers: a decision takes as long with ten workers as with ten thousand.

More batches are placed than sent. A batch may be `parked` until its worker has finished another
one. If only the worker that just finished had room, every batch would have to go there, wherever
its objects are cached. There is no clock here: times are seconds of the caller's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Any, NamedTuple, Protocol

from swathe.workers.placement.queue import Queue

MOST_HOLDERS = 16
"""Holders that a decision examines, over all objects of the batch."""
FREE = 4
"""Other workers it examines: of those free now, and of those free first."""
BEHIND = 2.0
"""Waiting batches assumed behind one, for each batch placed per thread: as many again will come."""
TRAFFIC = 0.02
"""Weight of each second of fetching: it slows other workers down. It also breaks ties."""
PLACED_RATIO = 2
"""Ratio of placed batches to batches in flight, unless a thread is free."""
PLACED_LIMIT = 4
"""Ratio of batches placed on a worker to its batches in flight, at most. Batches shorter than a
second count less: see `queue`."""
USABLE_FRACTION = 0.98
"""Fraction of a cache's disk space that blocks can use; the rest is headers and rounding."""
MOST_PEERS = 3
"""Peers suggested to a worker that lacks an object, at most."""
COPIES = 4
"""Copies made at the same time; each worker receives one at a time."""
LATE = 2.0
"""A requested copy counts as coming for this many times its predicted time."""


@dataclass(frozen=True)
class BatchWork:
    """Work of a batch.

    Attributes:
        objects: `STORE:path` or URL; bytes to read of each if nothing is cached.
        compute_s: seconds of computing after that.
    """

    objects: Mapping[str, int]
    compute_s: float


class FetchCosts(Protocol):
    """Fetch times from measured profiles."""

    def store_s(self, source: str, size: int) -> float:
        """Return the seconds to fetch from the object's store."""

    def peer_s(self, size: int) -> float:
        """Return the seconds to fetch from another worker."""


@dataclass(frozen=True)
class PlacementDecision:
    """Placement of a batch.

    Attributes:
        fetch: objects that the worker lacks; the peer to ask for each, `None` for the store. A peer
            that is still fetching the object answers when it has it.
        fetch_s: predicted seconds of fetching them.
        start_s: predicted seconds of waiting and fetching before it can compute.
        is_parked: whether the worker has enough batches; `end` releases this one later.
        copies: objects to copy because batches have waited for them as long as a copy takes, and
            the worker to copy each to.
    """

    worker: str
    fetch: Mapping[str, str | None]
    fetch_s: float
    start_s: float
    is_parked: bool = False
    copies: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Member:
    """A worker."""

    name: str
    queue: Queue
    cache_bytes: int
    ends: float
    sources: set[str] = field(default_factory=set)
    coming: set[str] = field(default_factory=set)
    held_bytes: int = 0
    coming_bytes: int = 0
    queue_key: tuple[float, str] | None = None

    @property
    def has_room(self) -> bool:
        """Whether it can take another batch."""
        return self.queue.sum_s < PLACED_LIMIT * self.queue.ahead


@dataclass(slots=True)
class _Flight:
    """A batch placed on a worker; `brings` are the objects it fetches and the missing bytes."""

    member: _Member
    brings: Mapping[str, int]


class _Need(NamedTuple):
    """An object of a batch: its holders, now and soon, and its cost for other workers."""

    name: str
    size: int
    holders: dict[str, int]
    coming: dict[str, tuple[float, float]]
    peer: str | None
    fetch_s: float
    store_s: float


@dataclass(slots=True)
class _Choice:
    """Predicted outcome of placing a batch on a worker, in seconds from now."""

    member: _Member
    wait_s: float
    fetch_s: float
    start_s: float
    end_s: float
    spoils_s: float

    def rank(self, behind: float) -> tuple[float, float]:
        """Return the sort key, if `behind` batches wait per thread.

        A fetching thread delays them: now, and again when evicted objects are fetched again. Among
        equals, caches fill evenly.
        """
        room = self.member.cache_bytes
        worse_s = self.spoils_s + (TRAFFIC + behind) * (self.fetch_s + self.spoils_s)
        cached_bytes = self.member.held_bytes + self.member.coming_bytes
        return self.end_s + worse_s, cached_bytes / room if room else 0.0


class Placement:
    """Cache contents and load of all workers, and the choice for the next batch. For one thread."""

    def __init__(self, costs: FetchCosts, *, ahead: int = 2) -> None:
        """Take the fetch costs, and the batches in flight per thread, at most."""
        if ahead < 1:
            raise ValueError(f"ahead: expected at least 1, found {ahead}")
        self._costs = costs
        self._ahead = ahead
        self._threads = 0
        self._members: dict[str, _Member] = {}
        self._flights: dict[Hashable, _Flight] = {}
        self._placed_s = 0.0
        self._holders: dict[str, dict[str, int]] = {}
        # When each will arrive, and how long to believe it.
        self._arrivals: dict[str, dict[str, tuple[float, float]]] = {}
        self._waited_s: dict[str, float] = {}
        # Workers with a free thread, the longest idle first; the others by when a thread is free.
        self._free: OrderedDict[str, None] = OrderedDict()
        self._by_queue: list[tuple[float, str]] = []

    def join(self, worker: str, threads: int, cache_bytes: int, *, ends: float = inf) -> None:
        """Add a worker. It gets no batch that would not finish before it `ends`."""
        if worker in self._members:
            raise ValueError(f"{worker}: already in the pool")
        if threads < 1:
            raise ValueError(f"{worker}: threads: expected at least 1, found {threads}")
        queue = Queue(threads, threads * self._ahead)
        member = _Member(worker, queue, int(USABLE_FRACTION * cache_bytes), ends)
        self._members[worker] = member
        self._threads += threads
        self._order(member)

    def leave(self, worker: str) -> None:
        """Remove a worker, its cache contents and its batches; they can be placed again."""
        member = self._members.pop(worker, None)
        if member is None:
            return
        for source in member.sources:
            self._release(worker, source)
        for source in member.coming:
            _remove(self._arrivals, source, worker)
        for batch in member.queue.batches:
            del self._flights[batch]
        self._threads -= member.queue.threads
        # Without workers the sum is zero, but for rounding.
        self._placed_s = self._placed_s - member.queue.sum_s if self._threads else 0.0
        self._unorder(member)

    def hold(self, worker: str, source: str, size: int) -> None:
        """Note that a worker has cached `size` bytes of an object.

        Late messages of removed workers are ignored.
        """
        member = self._members.get(worker)
        if member is None:
            return
        holders = self._holders.setdefault(source, {})
        member.held_bytes += size - holders.get(worker, 0)
        holders[worker] = size
        member.sources.add(source)
        self._unexpect(worker, source)

    def drop(self, worker: str, source: str) -> None:
        """Note that a worker has evicted an object."""
        member = self._members.get(worker)
        if member is None or source not in member.sources:
            return
        member.sources.remove(source)
        member.held_bytes -= self._holders[source][worker]
        self._release(worker, source)

    def forgo(self, worker: str, source: str) -> None:
        """Note that a requested copy is not made."""
        if worker in self._members:
            self._unexpect(worker, source)

    def place(self, batch: Hashable, work: BatchWork, now: float) -> PlacementDecision | None:
        """Choose the worker of a batch; `None` if enough batches are placed."""
        if batch in self._flights:
            raise ValueError(f"{batch!r}: already placed")
        if not self._free and self.room <= 0:
            return None
        needs = [self._need(source, size, now) for source, size in work.objects.items()]
        behind = 0.0
        if not self._free:
            behind = BEHIND * min(len(self._flights) / self._threads, PLACED_RATIO * self._ahead)
        best, least = None, (inf, inf)
        for member in self._candidates(needs, work.compute_s, now):
            wait_s = member.queue.wait_s(now)
            if wait_s + work.compute_s > least[0]:
                continue
            choice = _predict(member, wait_s, needs, work.compute_s, now)
            if now + choice.end_s > member.ends:
                continue
            if (rank := choice.rank(behind)) < least:
                best, least = choice, rank
        return None if best is None else self._put(batch, best, needs, now)

    def begin(self, batch: Hashable, now: float) -> None:
        """Note that a worker has begun a batch: it fetches or computes."""
        if (flight := self._flights.get(batch)) is not None:
            flight.member.queue.begin(batch, now)
            self._order(flight.member)

    def end(self, batch: Hashable, now: float) -> list[Hashable]:
        """Note that a batch ended or was cancelled; `hold` reports what its worker cached.

        Returns the parked batches to send now.
        """
        if (flight := self._flights.pop(batch, None)) is None:
            return []
        member = flight.member
        self._placed_s -= member.queue.sum_s
        due = member.queue.remove(batch, now)
        self._placed_s += member.queue.sum_s
        self._order(member)
        member.coming_bytes -= sum(flight.brings.values())
        for source in flight.brings:
            self._unexpect(member.name, source)
        return due

    @property
    def room(self) -> float:
        """Number of one-second batches that can still be placed, unless a thread is free."""
        return PLACED_RATIO * self._threads * self._ahead - self._placed_s

    def holders(self, source: str) -> Mapping[str, int]:
        """Return the holders of an object, with the cached bytes."""
        return self._holders.get(source, {})

    def peers(self, source: str, asker: str, choice: str | None = None) -> Iterator[str]:
        """Return the peers that a worker may ask for an object, the chosen one first."""
        holders = self._holders.get(source, {})
        first = (choice,) if choice is not None and choice in holders else ()
        names = dict.fromkeys((*first, *islice(holders, MOST_PEERS + 1)))
        names.pop(asker, None)
        return islice(names, MOST_PEERS)

    def is_coming(self, worker: str, source: str) -> bool:
        """Check whether a worker is already getting an object."""
        return worker in self._arrivals.get(source, {})

    def load(self, worker: str, now: float) -> float:
        """Return the seconds until a worker has a free thread."""
        return self._members[worker].queue.wait_s(now)

    def in_flight(self, worker: str) -> int:
        """Return the number of a worker's batches, without parked ones."""
        return self._members[worker].queue.sent_count

    def _need(self, source: str, size: int, now: float) -> _Need:
        holders = self._holders.get(source, {})
        seconds = store_s = self._costs.store_s(source, size)
        coming = self._arrivals.get(source, {})
        wait_s = 0.0
        peer = next((name for name in islice(holders, MOST_HOLDERS) if holders[name] >= size), None)
        if peer is None and coming:
            # Cheaper for the store than a second request, and often as fast.
            peer, (ready, until) = next(iter(coming.items()))
            wait_s = max(0.0, ready - now) if until >= now else inf
        if peer is not None and (peer_s := wait_s + self._costs.peer_s(size)) < seconds:
            seconds = peer_s
        else:
            peer = None
        return _Need(source, size, holders, coming, peer, seconds, store_s)

    def _candidates(self, needs: list[_Need], seconds: float, now: float) -> Iterable[_Member]:
        """Return the candidates that can take another batch, each once."""
        names = dict.fromkeys(self._first(seconds, now))
        each = max(1, MOST_HOLDERS // len(needs)) if needs else 0
        for need in needs[:MOST_HOLDERS]:
            names.update(dict.fromkeys(islice(need.holders, each)))
            names.update(dict.fromkeys(islice(need.coming, each)))
        members = map(self._members.__getitem__, names)
        return [member for member in members if member.has_room]

    def _first(self, seconds: float, now: float) -> Iterator[str]:
        """Yield the workers that are free first."""
        late = []
        count = 0
        for name in islice(self._free, 2 * MOST_HOLDERS):
            if self._members[name].ends < now + seconds:
                late.append(name)
            elif count < FREE:
                count += 1
                yield name
        for name in late:
            self._free.move_to_end(name)
        if not count:
            # Around now: earlier entries are late.
            at = bisect_left(self._by_queue, (now, ""))
            yield from (name for _, name in self._by_queue[max(0, at - FREE) : at + FREE])

    def _put(
        self, batch: Hashable, best: _Choice, needs: list[_Need], now: float
    ) -> PlacementDecision:
        """Place a batch on a worker."""
        member, name = best.member, best.member.name
        fetch: dict[str, str | None] = {}
        brings: dict[str, int] = {}
        for need in needs:
            if need.holders.get(name, -1) < need.size and not _comes(need, name, now):
                fetch[need.name] = need.peer
                brings[need.name] = need.size - need.holders.get(name, 0)
                self._expect(name, need.name, now + best.start_s, inf)
            for holder in (fetch.get(need.name), name):
                if holder is not None and holder in need.holders:
                    # Moved to the end: the next decision examines others first.
                    need.holders[holder] = need.holders.pop(holder)
        member.coming_bytes += sum(brings.values())
        self._placed_s -= member.queue.sum_s
        is_parked = member.queue.put(batch, best.end_s - best.wait_s, now)
        self._placed_s += member.queue.sum_s
        self._flights[batch] = _Flight(member, brings)
        self._order(member)
        copies = tuple(self._copies(best, needs, now))
        return PlacementDecision(name, fetch, best.fetch_s, best.start_s, is_parked, copies)

    def _copies(self, best: _Choice, needs: list[_Need], now: float) -> Iterator[tuple[str, str]]:
        """Yield the objects to copy: those waited for as long as a copy takes."""
        if best.wait_s <= 0:
            return
        for need in needs:
            if best.member.name not in need.holders:
                continue
            waited_s = self._waited_s.pop(need.name, 0.0) + best.wait_s
            heir = self._heir(need, now) if waited_s >= need.fetch_s else None
            if heir is None:
                self._waited_s[need.name] = waited_s
            else:
                self._expect(heir, need.name, now + need.fetch_s, now + LATE * need.fetch_s)
                yield need.name, heir

    def _heir(self, need: _Need, now: float) -> str | None:
        """Return a worker with a free thread, and room for an object that it lacks."""
        for name in islice(self._free, FREE):
            member = self._members[name]
            fits = member.held_bytes + need.size <= member.cache_bytes
            stays = member.ends > now + LATE * need.fetch_s
            if fits and stays and name not in need.holders and not _comes(need, name, now):
                return name
        return None

    def _order(self, member: _Member) -> None:
        """Sort a worker into the free, the queued, or neither."""
        self._unorder(member)
        if member.queue.is_free:
            self._free[member.name] = None
        elif member.has_room:
            member.queue_key = member.queue.free_at(), member.name
            insort(self._by_queue, member.queue_key)

    def _unorder(self, member: _Member) -> None:
        self._free.pop(member.name, None)
        if member.queue_key is not None:
            del self._by_queue[bisect_left(self._by_queue, member.queue_key)]
            member.queue_key = None

    def _release(self, worker: str, source: str) -> None:
        _remove(self._holders, source, worker)
        if source not in self._holders:
            self._waited_s.pop(source, None)

    def _expect(self, worker: str, source: str, ready: float, until: float) -> None:
        """Note that a worker will hold an object."""
        self._arrivals.setdefault(source, {})[worker] = ready, until
        self._members[worker].coming.add(source)

    def _unexpect(self, worker: str, source: str) -> None:
        member = self._members[worker]
        if source in member.coming:
            member.coming.remove(source)
            _remove(self._arrivals, source, worker)


def _remove(workers: dict[str, dict[str, Any]], source: str, worker: str) -> None:
    """Remove a worker from the holders of an object, and the object with its last holder."""
    del workers[source][worker]
    if not workers[source]:
        del workers[source]


def _predict(
    member: _Member, wait_s: float, needs: list[_Need], seconds: float, now: float
) -> _Choice:
    """Predict a batch on a worker that is free after `wait_s`."""
    name = member.name
    fetch_s, missing_bytes, ready_s, store_s = 0.0, 0, 0.0, 0.0
    for need in needs:
        _, size, holders, coming, _, need_s, again_s = need
        missing = size - holders.get(name, 0)
        if missing <= 0:
            continue
        if coming and _comes(need, name, now):
            ready_s = max(ready_s, coming[name][0] - now)
            continue
        missing_bytes += missing
        fetch_s += need_s * missing / size
        store_s += again_s * missing / size
    start_s = max(wait_s + fetch_s, ready_s)
    # Evicted blocks must be fetched again some time, and perhaps no other worker has them.
    excess = member.held_bytes + member.coming_bytes + missing_bytes - member.cache_bytes
    spoils_s = store_s * min(1.0, excess / missing_bytes) if missing_bytes and excess > 0 else 0.0
    return _Choice(member, wait_s, fetch_s, start_s, start_s + seconds, spoils_s)


def _comes(need: _Need, worker: str, now: float) -> bool:
    """Check whether a worker is already getting an object."""
    return worker in need.coming and need.coming[worker][1] >= now
