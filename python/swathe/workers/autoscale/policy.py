"""How many workers to want, which to let go, and what of their caches to hand over.

Wanted are those that have work, as many as do what waits soon enough, and a few that are ready for
what comes next. More are wanted at once; fewer only when fewer were wanted all the while that one
may be idle. Times are seconds of the caller's clock.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Limits:
    """What the operator allows and expects.

    Attributes:
        minimum: workers there are always.
        maximum: never more, whatever waits or is reserved.
        spare: idle ones to be ready, so that a new job does not wait for workers to start.
        soon_s: what waits is to be done in so long.
        idle_s: one that had no work for so long may go.
        start_s: how long one takes from being asked for until it is there.
        hand_over_s: how long one that leaves may take to hand over its cache.
    """

    minimum: int = 0
    maximum: int = 10
    spare: int = 1
    soon_s: float = 60.0
    idle_s: float = 300.0
    start_s: float = 30.0
    hand_over_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum:
            raise ValueError(
                f"minimum, maximum: expected 0 <= minimum <= maximum, "
                f"found {self.minimum} and {self.maximum}"
            )
        if self.spare < 0:
            raise ValueError(f"spare: expected 0 or more, found {self.spare}")
        for name in ("soon_s", "idle_s", "start_s", "hand_over_s"):
            value = getattr(self, name)
            if not 0 <= value < math.inf or (name == "soon_s" and value == 0):
                raise ValueError(f"{name}: expected seconds, found {value}")


@dataclass(frozen=True)
class Reservation:
    """Workers that somebody wants to be there, from `start` until `until`."""

    start: float
    until: float
    workers: int

    def __post_init__(self) -> None:
        if not self.start < self.until:
            raise ValueError(f"until: expected later than {self.start}, found {self.until}")
        if self.workers < 1:
            raise ValueError(f"workers: expected at least 1, found {self.workers}")


@dataclass(frozen=True)
class Demand:
    """What there is to do, and who does it.

    Attributes:
        waiting_s: predicted seconds of one thread, of all that was not begun yet.
        threads: of each worker.
        busy: workers that have a batch.
        ending: workers whose walltime ends before one asked for now would be there.
    """

    waiting_s: float
    threads: int
    busy: int
    ending: int = 0


@dataclass(frozen=True)
class Idle:
    """A worker with nothing to do.

    Attributes:
        since: when it had work last.
        worth_s: what it would take to fetch again what only it holds.
        ends: when its walltime does.
    """

    worker: str
    since: float
    worth_s: float = 0.0
    ends: float = math.inf


@dataclass(frozen=True)
class Block:
    """What a worker that leaves holds of an object, and what it costs to fetch it again."""

    source: str
    size: int
    refetch_s: float


Refusal = Literal["cheaper to fetch again", "no other worker", "no room", "no time"]


class Plan(NamedTuple):
    """What a worker that leaves gives to whom, the worthiest first; what not, and why."""

    given: list[tuple[str, str]]
    refused: dict[str, Refusal]


def needed(
    demand: Demand, limits: Limits, now: float, reservations: Iterable[Reservation] = ()
) -> int:
    """Give how many workers there should be for what there is to do now.

    One whose walltime ends counts as if it were gone, so that another is asked for before.
    """
    for_waiting = math.ceil(demand.waiting_s / (demand.threads * limits.soon_s))
    working = max(demand.busy, for_waiting) + limits.spare
    reserved = sum(
        reservation.workers
        for reservation in reservations
        if reservation.start - limits.start_s <= now < reservation.until
    )
    wanted = max(working, reserved, limits.minimum) + demand.ending
    return min(wanted, limits.maximum)


class Growth:
    """Remembers what was needed of late, so that a short lull sends nobody away."""

    def __init__(self, limits: Limits) -> None:
        """Take the limits."""
        self.limits = limits
        # Ever fewer, ever later: the first is the most of the last `idle_s`.
        self._needed: deque[tuple[float, int]] = deque()

    def target(self, demand: Demand, now: float, reservations: Iterable[Reservation] = ()) -> int:
        """Give how many workers there should be, those included that were asked for."""
        wanted = needed(demand, self.limits, now, reservations)
        while self._needed and self._needed[-1][1] <= wanted:
            self._needed.pop()
        self._needed.append((now, wanted))
        while self._needed[0][0] < now - self.limits.idle_s:
            self._needed.popleft()
        return self._needed[0][1]


def leaving(idle: Iterable[Idle], surplus: int, limits: Limits, now: float) -> list[str]:
    """Give which workers to let go, at most `surplus`: first those that hold the least of worth.

    Of equal worth those go first that were idle longest. None goes that had work just now.
    """
    may = [each for each in idle if now - each.since >= limits.idle_s]
    may.sort(key=lambda each: (each.worth_s, each.since))
    return [each.worker for each in may[: max(0, surplus)]]


def ending(ends: Iterable[float], limits: Limits, now: float) -> int:
    """Count the workers whose walltime ends before one asked for now would be there."""
    return sum(now + limits.start_s + limits.hand_over_s >= each for each in ends)


def hand_over(
    blocks: Sequence[Block], heirs: Mapping[str, int], bytes_per_s: float, budget_s: float
) -> Plan:
    """Say what a worker that leaves gives to whom: (object, heir), the worthiest first.

    Args:
        blocks: what it holds; those that others hold as well cost little to fetch again.
        heirs: who stays, and bytes of room in their caches.
        bytes_per_s: at which it can send, as measured.
        budget_s: how long all of it may take.

    Not handed over is what takes as long to send as to fetch again, or for what no other
    worker has room, or no time is left.
    """
    if not bytes_per_s > 0:
        return Plan([], {each.source: "no time" for each in blocks})
    gaining = [each for each in blocks if each.size / bytes_per_s < each.refetch_s]
    refused: dict[str, Refusal] = {each.source: "cheaper to fetch again" for each in blocks}
    gaining.sort(key=lambda each: (-each.refetch_s / max(each.size, 1), each.source))
    rooms = [(-room, heir) for heir, room in heirs.items()]
    heapq.heapify(rooms)
    left = budget_s * bytes_per_s
    given = []
    for block in gaining:
        if not rooms or block.size > -rooms[0][0]:
            refused[block.source] = "no room" if rooms else "no other worker"
            continue
        if block.size > left:
            refused[block.source] = "no time"
            continue
        del refused[block.source]
        room, heir = rooms[0]
        heapq.heapreplace(rooms, (room + block.size, heir))
        left -= block.size
        given.append((block.source, heir))
    return Plan(given, refused)
