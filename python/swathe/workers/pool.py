"""Protocol and status of a pool of workers. The runner knows no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import SwatheError
from swathe.core.format import seconds_text, size_text

if TYPE_CHECKING:
    from swathe.catalog.reservations import ReservationRecord
    from swathe.workers.batch import Batch, Work

LANES = 2
"""While one thread saves its results, the other cuts. Long work and programs of users
have lanes of their own."""
HAND_OVER_S = 60.0
"""Seconds a leaving worker may take to hand over its cache."""
FINISH_S = 20.0
"""Seconds a draining worker may take to finish its batches."""
BATCH_S = 1.0
"""Intended seconds of a batch: other batches wait for it, and a killed worker loses it."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0

Back = Callable[[int, ChunkResult], None]
"""Called with a batch's number and its result; may take as long as saving takes.

It must not raise: no caller handles the error.
"""


@dataclass(frozen=True)
class HeldObject:
    """Cached bytes of an object on a worker, by its latest report."""

    worker: str
    object: str
    bytes: int


@dataclass(frozen=True)
class Member:
    """A worker.

    Attributes:
        name: name of the worker; by default its address.
        host: its machine.
        threads: batches executed at the same time.
        busy: batches being executed.
        waiting: batches placed on it but not begun. They are sent (at most two per thread,
            including running ones) or parked.
        cache_bytes: size limit of its block cache.
        held_bytes: cached bytes, by its latest report.
        refused: why it gets no batches; empty if it does.
        worth_s: predicted seconds to fetch again what only it has cached.
        parted: whether it is leaving and has finished its batches and its hand-over.
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
    """Hand-over of a leaving worker's cache.

    Attributes:
        worker: the leaving worker.
        state: finishing its batches, handing over, done, broken off because the worker was lost, or
            gave nothing because its cache was not worth it.
        heirs: workers that receive something.
        objects: number of objects handed over.
        bytes: bytes handed over.
        blocks: cache blocks that the heirs checked and stored.
        elapsed_s: duration so far, seconds.
        limit_s: longest duration allowed, seconds.
        alone_bytes: bytes that only this worker had cached.
        refused: what was not handed over, and why; empty if there is nothing.
        ended_at: end, by the monotonic clock.
    """

    worker: str
    state: Literal["finishing", "handing over", "done", "broken off", "gave nothing"]
    heirs: tuple[str, ...] = ()
    objects: int = 0
    bytes: int = 0
    blocks: int = 0
    elapsed_s: float = 0.0
    limit_s: float = 0.0
    alone_bytes: int = 0
    refused: str = ""
    ended_at: float | None = None

    @property
    def summary(self) -> str:
        """Return one sentence on its state."""
        amount = f"{self.objects} {'object' if self.objects == 1 else 'objects'}"
        amount = f"{amount}, {size_text(self.bytes)}"
        to = f" to {', '.join(self.heirs)}" if self.heirs else ""
        remainder = f"; not handed over: {self.refused}" if self.refused else ""
        match self.state:
            case "finishing":
                return f"{self.worker} is leaving: it finishes its batches"
            case "handing over":
                return (
                    f"{self.worker} is leaving: it has handed over {amount} so far{to}{remainder}"
                )
            case "done":
                return f"{self.worker} left: it handed over {amount}{to} in {self._took}{remainder}"
            case "broken off":
                return (
                    f"{self.worker} was lost too early: it had handed over {amount}{to}{remainder}"
                )
            case "gave nothing" if not self.refused:
                return f"{self.worker} left: it had cached nothing that others lack"
        return f"{self.worker} left: it handed over nothing: {self.refused}"

    @property
    def _took(self) -> str:
        return seconds_text(self.elapsed_s)


@dataclass(frozen=True)
class TrafficCounts:
    """Origin of the bytes read by batches, since the pool was started.

    Attributes:
        batches: executed batches.
        near: batches placed on a worker that had cached some of each of their objects.
        store_bytes: bytes from stores, in `store_requests`.
        peer_bytes: bytes from the caches of other workers.
        cache_bytes: bytes from the workers' own caches; requests are pieces.
        copies: copies of hot objects made on other workers in advance, of `copied_bytes`.
        handed_bytes: bytes handed over by leaving workers.
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

    def with_result(self, result: ChunkResult, *, near: bool) -> TrafficCounts:
        """Return the counts with one more executed batch."""
        return replace(
            self,
            batches=self.batches + 1,
            near=self.near + near,
            store_bytes=self.store_bytes + result.bytes_moved,
            store_requests=self.store_requests + result.requests,
            peer_bytes=self.peer_bytes + result.from_peers[0],
            peer_requests=self.peer_requests + result.from_peers[1],
            cache_bytes=self.cache_bytes + result.from_cache[0],
            cache_requests=self.cache_requests + result.from_cache[1],
        )


@dataclass(frozen=True)
class GrowthStatus:
    """Autoscaling of a pool.

    Attributes:
        by: provider of workers.
        target: target number of workers.
        minimum: lower limit.
        maximum: upper limit.
        starting: workers requested or started that have not joined.
        trouble: last error when starting workers; empty if none.
        reserved: reservations of workers.
    """

    by: str
    target: int
    minimum: int
    maximum: int
    starting: int
    trouble: str
    reserved: Sequence[ReservationRecord]


@dataclass(frozen=True)
class PoolStatus:
    """Status of a pool.

    Attributes:
        kind: `local`: this process; `dask`: workers of a scheduler.
        address: address of the scheduler; empty if there is none.
        trouble: why it cannot work at the moment; empty if it can.
        batches: batches in flight.
        workers: its workers.
        held: what they have cached.
        moved: bytes read, by origin.
        growth: autoscaling; `None` if the size is fixed.
        hand_overs: running and latest hand-overs of leaving workers, newest last.
        peer_s: measured latency of a request to another worker, seconds.
        peer_bytes_per_s: measured bandwidth between workers, bytes per second.
    """

    kind: Literal["local", "dask"]
    address: str
    trouble: str
    batches: int
    workers: Sequence[Member]
    held: Sequence[HeldObject]
    moved: TrafficCounts = field(default_factory=TrafficCounts)
    growth: GrowthStatus | None = None
    hand_overs: Sequence[HandOver] = ()
    peer_s: float = 0.0
    peer_bytes_per_s: float = 0.0


def pauses(first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> Iterator[float]:
    """Yield the pauses after the first, second, ... failure in a row, in seconds."""
    while True:
        yield first_s
        first_s = min(2 * first_s, longest_s)


def describe_error(error: BaseException) -> str:
    """Return the text of an error; a bug is marked as internal."""
    if isinstance(error, SwatheError):
        return str(error)
    return f"internal: {type(error).__name__}: {error}"


class Pool(Protocol):
    """Executes batches."""

    @property
    def batch_s(self) -> float:
        """Intended duration of a batch, in seconds."""

    def start(self, back: Back) -> None:
        """Start; `back` is called once for each accepted batch, from any thread."""

    def wait_for_room(self, timeout_s: float, work: Work | None = None) -> frozenset[Work]:
        """Wait until another batch, or one of a kind of work, can be accepted.

        Called by one thread. Returns the kinds that can be accepted.
        """

    def submit(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> None:
        """Accept a batch after `wait_for_room`; it comes back soon after `should_stop` is true."""

    def stop(self, timeout_s: float) -> None:
        """Stop. Accepted batches are stopped and come back first.

        Raises:
            JobError: If that takes longer.
        """

    def status(self) -> PoolStatus:
        """Return the status."""
