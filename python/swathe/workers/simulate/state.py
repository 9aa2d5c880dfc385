"""What there is in a simulated pool: workers, the blocks that they have, batches on their way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from swathe._swathe import SimulatedShelf
    from swathe.workers.simulate.network import Line
    from swathe.workers.simulate.workload import Batch


@dataclass(slots=True, eq=False)
class Task:
    """A batch on its way.

    Attributes:
        asked_at: when it was asked for.
        client: whether one waits for it.
        chosen: the peer that was chosen to be asked; `None`: the store.
        peers: those that are asked, the first first.
        fetched: whether it lacked anything.
        from_store: bytes that it will ask the store for.
    """

    batch: Batch
    asked_at: float
    client: bool
    chosen: str | None = None
    peers: tuple[str, ...] = ()
    fetched: bool = False
    from_store: int = 0
    begun_at: float = 0.0
    fetched_at: float = 0.0


class Blocks(NamedTuple):
    """Those that a worker has of an object, a bit for each.

    Attributes:
        bits: those that are there, or come.
        each: bytes of one.
        ready_at: when those are there that come.
        late: which these are.
        came_at: when the oldest came from the store.
    """

    bits: int = 0
    each: int = 0
    ready_at: float = 0.0
    late: int = 0
    came_at: float = inf

    @property
    def bytes(self) -> int:
        """Bytes of them."""
        return self.bits.bit_count() * self.each

    def there(self, now: float) -> int:
        """Give those that are there now."""
        return self.bits if self.ready_at <= now else self.bits & ~self.late

    def without(self, count: int) -> Blocks:
        """Give the same without so many of the last."""
        return self._replace(bits=first(self.bits, self.bits.bit_count() - count))


@dataclass(slots=True, eq=False)
class Worker:
    """A worker.

    Attributes:
        blocks: that it has, by their object.
        opened: objects of which it knows the header.
        changed: those of which it has not told what it has now.
    """

    name: str
    since: float
    kept: SimulatedShelf
    down: Line
    up: Line
    ends: float
    blocks: dict[str, Blocks] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    changed: dict[str, None] = field(default_factory=dict)
    queue: deque[Task] = field(default_factory=deque)
    running: dict[Task, None] = field(default_factory=dict)
    flights: dict[Task, None] = field(default_factory=dict)
    idle_since: float = 0.0
    gone: bool = False


def first(bits: int, count: int) -> int:
    """Give so many of them, the first."""
    while bits.bit_count() > count:
        bits &= ~(1 << (bits.bit_length() - 1))
    return bits
