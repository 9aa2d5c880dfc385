"""What a pool of workers is, and what it says of itself. The runner knows no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import SwatheError
from swathe.core.format import size_text

if TYPE_CHECKING:
    from swathe.catalog.reservations import Reserved
    from swathe.workers.batch import Batch

LANES = 2
"""While one keeps what it did, the other cuts."""
HAND_OVER_S = 60.0
"""How long a worker that leaves may hand over what it holds to others."""
FINISH_S = 20.0
"""How long a worker that takes nothing more may go on with what it has."""
BATCH_S = 1.0
"""A batch is to take about so long: others wait for it, and who is killed loses it."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0

Back = Callable[[int, ChunkResult], None]
"""Takes what became of a batch, by its number; it may take as long as keeping that does.

It is to raise nothing: nobody is there to hear it."""


@dataclass(frozen=True)
class HeldObject:
    """So many bytes of an object that a worker keeps, as it told last."""

    worker: str
    object: str
    bytes: int


@dataclass(frozen=True)
class Member:
    """A worker.

    Attributes:
        name: what it is called: its address, unless it has a name.
        host: its machine.
        threads: batches that it does at the same time.
        busy: batches that it is doing.
        waiting: batches that are for it, and that it has not begun: those it has been sent, two
            for each of its threads at most with those it is doing, and those that are parked until
            it ends one.
        cache_bytes: what its block cache may hold.
        held_bytes: what it holds of objects, as it told last.
        refused: why it is given nothing; empty where it is.
        worth_s: predicted seconds of fetching again from stores what only it holds.
        parted: whether it is leaving, and has nothing more to do or to hand over.
    """

    name: str
    host: str
    threads: int
    busy: int
    waiting: int = 0
    cache_bytes: int = 0
    held_bytes: int = 0
    refused: str = ""
    worth_s: float = 0.0
    parted: bool = False


@dataclass(frozen=True)
class HandOver:
    """What a worker that leaves gave to others.

    Attributes:
        worker: the one that leaves.
        state: whether it still does what it had, hands over, has done so, has been gone in the
            middle of it, or gave nothing, as it had nothing that was worth it.
        heirs: workers that got something, or are to.
        objects: that were handed over.
        bytes: of them.
        blocks: of the cache, as they were checked and kept by the heirs.
        seconds: that it took so far.
        limit_s: that it may take at most.
        alone_bytes: what only it held.
        refused: what was not handed over, and why; empty where there was nothing.
        ended_at: when that was, by the monotonic clock.
    """

    worker: str
    state: Literal["finishing", "handing over", "done", "broken off", "gave nothing"]
    heirs: tuple[str, ...] = ()
    objects: int = 0
    bytes: int = 0
    blocks: int = 0
    seconds: float = 0.0
    limit_s: float = 0.0
    alone_bytes: int = 0
    refused: str = ""
    ended_at: float | None = None

    @property
    def summary(self) -> str:
        """Tell it in a sentence."""
        given = f"{self.objects} {'object' if self.objects == 1 else 'objects'}"
        given = f"{given}, {size_text(self.bytes)}"
        to = f" to {', '.join(self.heirs)}" if self.heirs else ""
        kept = f"; not handed over: {self.refused}" if self.refused else ""
        match self.state:
            case "finishing":
                return f"{self.worker} is leaving: it finishes what it was given"
            case "handing over":
                return f"{self.worker} is leaving: it has handed over {given} so far{to}{kept}"
            case "done":
                return f"{self.worker} left: it handed over {given}{to} in {self._took}{kept}"
            case "broken off":
                return f"{self.worker} was gone too early: it had handed over {given}{to}{kept}"
            case "gave nothing" if not self.refused:
                return f"{self.worker} left: it held nothing that others lack"
        return f"{self.worker} left: it handed over nothing: {self.refused}"

    @property
    def _took(self) -> str:
        return f"{self.seconds:.1f} s"


@dataclass(frozen=True)
class TrafficCounts:
    """Where the bytes came from that batches read, since the pool was started.

    Attributes:
        batches: that were done.
        near: those that were given to a worker that held something of each of their objects.
        store_bytes: from stores, by so many `store_requests`.
        peer_bytes: from the caches of other workers.
        cache_bytes: from the caches of the workers themselves; requests are pieces.
        copies: of objects that many waited for, made on other workers in advance; `copied_bytes`.
        handed_bytes: that workers which left gave to others.
    """

    batches: int = 0
    near: int = 0
    store_bytes: int = 0
    store_requests: int = 0
    peer_bytes: int = 0
    peer_requests: int = 0
    cache_bytes: int = 0
    cache_requests: int = 0
    copies: int = 0
    copied_bytes: int = 0
    handed_bytes: int = 0

    def with_done(self, done: ChunkResult, *, near: bool) -> TrafficCounts:
        """Give the same with a batch that was done."""
        return replace(
            self,
            batches=self.batches + 1,
            near=self.near + near,
            store_bytes=self.store_bytes + done.bytes_moved,
            store_requests=self.store_requests + done.requests,
            peer_bytes=self.peer_bytes + done.from_peers[0],
            peer_requests=self.peer_requests + done.from_peers[1],
            cache_bytes=self.cache_bytes + done.from_cache[0],
            cache_requests=self.cache_requests + done.from_cache[1],
        )


@dataclass(frozen=True)
class GrowthStatus:
    """How a pool grows.

    Attributes:
        by: what starts workers.
        target: workers that are wanted.
        minimum: never fewer are.
        maximum: nor more.
        starting: those that were started, or asked for, and have not joined.
        trouble: why workers cannot be started, or were not at last; empty where they can.
        reserved: what is to be ready for somebody.
    """

    by: str
    target: int
    minimum: int
    maximum: int
    starting: int
    trouble: str
    reserved: Sequence[Reserved]


@dataclass(frozen=True)
class PoolStatus:
    """The state of a pool.

    Attributes:
        kind: `local`: this process; `dask`: workers of a scheduler.
        address: of the scheduler; empty where there is none.
        trouble: why nothing can be done at the moment; empty where it can.
        batches: in flight.
        workers: who does them.
        held: what they keep.
        moved: what was read, and from where.
        grown: how it grows; `None` where it does not.
        hand_overs: of the workers that leave, and left last, the newest last.
        peer_s: what a request to another worker takes, as measured.
        peer_bytes_per_s: of what it sends then.
    """

    kind: Literal["local", "dask"]
    address: str
    trouble: str
    batches: int
    workers: Sequence[Member]
    held: Sequence[HeldObject]
    moved: TrafficCounts = field(default_factory=TrafficCounts)
    grown: GrowthStatus | None = None
    hand_overs: Sequence[HandOver] = ()
    peer_s: float = 0.0
    peer_bytes_per_s: float = 0.0


def pauses(first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> Iterator[float]:
    """Give how long to wait after the first, second, ... time that something failed."""
    while True:
        yield first_s
        first_s = min(2 * first_s, longest_s)


def internal(error: BaseException) -> str:
    """Say what went wrong: in its own words, or that it is a fault of ours."""
    if isinstance(error, SwatheError):
        return str(error)
    return f"internal: {type(error).__name__}: {error}"


class Pool(Protocol):
    """Does batches."""

    @property
    def batch_s(self) -> float:
        """How long a batch is to take."""

    def start(self, back: Back) -> None:
        """Begin; `back` is called once for each batch that is given, by any thread."""

    def wanted(self, timeout_s: float) -> bool:
        """Wait until another batch is wanted; tells whether one is. Asked by one thread."""

    def give(self, number: int, batch: Batch, stopped: Callable[[], bool]) -> None:
        """Take a batch that was wanted; it comes back soon after `stopped` says so."""

    def stop(self, timeout_s: float) -> None:
        """End. What was given comes back first, for all of it is stopped.

        Raises:
            JobError: where that takes longer.
        """

    def told(self) -> PoolStatus:
        """Tell the state."""
