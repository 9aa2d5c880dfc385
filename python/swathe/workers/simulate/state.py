"""State of a simulated pool: workers, their cached blocks, batches in flight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from swathe._swathe import SimulatedCache
    from swathe.workers.simulate.network import NetworkLink
    from swathe.workers.simulate.workload import SimulatedBatch


@dataclass(slots=True, eq=False)
class Task:
    """A batch in flight.

    Attributes:
        asked_at: time of the request.
        client: whether a client waits for it.
        choice: chosen peer; `None`: the store.
        peers: peers to ask, in order.
        has_fetched: whether its worker lacked some blocks.
        from_store: bytes it will request from the store.
    """

    batch: SimulatedBatch
    asked_at: float
    client: bool
    choice: str | None = None
    peers: tuple[str, ...] = ()
    has_fetched: bool = False
    from_store: int = 0
    begun_at: float = 0.0
    fetched_at: float = 0.0


class Blocks(NamedTuple):
    """Cached blocks of an object on a worker, one bit each.

    Attributes:
        bits: blocks that are there, or coming.
        each: bytes per block.
        ready_at: arrival of the coming ones.
        late: the coming ones.
        came_at: when the oldest came from the store.
    """

    bits: int = 0
    each: int = 0
    ready_at: float = 0.0
    late: int = 0
    came_at: float = inf

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.bits.bit_count() * self.each

    def present(self, now: float) -> int:
        """Return the blocks that are there now."""
        return self.bits if self.ready_at <= now else self.bits & ~self.late

    def without(self, count: int) -> Blocks:
        """Return the same without the last `count` blocks."""
        return self._replace(bits=first(self.bits, self.bits.bit_count() - count))


@dataclass(slots=True, eq=False)
class SimulatedWorker:
    """A worker.

    Attributes:
        blocks: its cached blocks, by object.
        opened_files: objects whose header it has read.
        changes: objects whose changes it has not yet reported.
    """

    name: str
    since: float
    cache: SimulatedCache
    down: NetworkLink
    up: NetworkLink
    ends: float
    blocks: dict[str, Blocks] = field(default_factory=dict)
    opened_files: set[str] = field(default_factory=set)
    changes: dict[str, None] = field(default_factory=dict)
    queue: deque[Task] = field(default_factory=deque)
    running: dict[Task, None] = field(default_factory=dict)
    flights: dict[Task, None] = field(default_factory=dict)
    idle_since: float = 0.0
    is_gone: bool = False


def first(bits: int, count: int) -> int:
    """Return the first `count` bits."""
    while bits.bit_count() > count:
        bits &= ~(1 << (bits.bit_length() - 1))
    return bits
