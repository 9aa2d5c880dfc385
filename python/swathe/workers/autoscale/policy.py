"""Growth policy: number of workers, which to let go, and which cached objects to hand over.

The target covers running work, enough workers to finish the waiting work in time, and a few spare
ones. It rises at once. It falls only if fewer workers were needed during the whole idle time. Times
are seconds of the caller's clock.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class GrowthLimits:
    """Limits set by the operator.

    Attributes:
        minimum: workers that always run.
        maximum: upper limit, whatever waits or is reserved.
        spare: idle workers kept ready, so that a new job does not wait for workers to start.
        soon_s: seconds within which the waiting work is to be done.
        idle_s: seconds without work after which a worker may leave.
        start_s: seconds from the request of a worker until it has joined.
        hand_over_s: seconds a leaving worker may take to hand over its cache.
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
    """Workers reserved from `start` until `until`."""

    start: float
    until: float
    workers: int

    def __post_init__(self) -> None:
        if not self.start < self.until:
            raise ValueError(f"until: expected later than {self.start}, found {self.until}")
        if self.workers < 1:
            raise ValueError(f"workers: expected at least 1, found {self.workers}")


@dataclass(frozen=True)
class PoolDemand:
    """Current demand, and the workers that serve it.

    Attributes:
        waiting_s: predicted thread seconds of all work that has not begun.
        threads: threads per worker.
        busy: workers that have a batch.
        ending: workers whose walltime ends before a worker requested now would have joined.
    """

    waiting_s: float
    threads: int
    busy: int
    ending: int = 0


@dataclass(frozen=True)
class IdleWorker:
    """A worker without work.

    Attributes:
        since: time of its last work.
        worth_s: seconds to fetch again what only this worker has cached.
        ends: end of its walltime.
    """

    worker: str
    since: float
    worth_s: float = 0.0
    ends: float = math.inf


@dataclass(frozen=True)
class HeldBlock:
    """Cached blocks of one object on a leaving worker, and the cost of fetching them again."""

    source: str
    size: int
    refetch_s: float


Refusal = Literal["cheaper to fetch again", "no other worker", "no room", "no time"]


class HandOverPlan(NamedTuple):
    """Hand-over plan: objects and heirs, the most valuable first; what stays, with reasons."""

    heirs: list[tuple[str, str]]
    refusals: dict[str, Refusal]


def needed_workers(
    demand: PoolDemand, limits: GrowthLimits, now: float, reservations: Iterable[Reservation] = ()
) -> int:
    """Return how many workers the current demand needs.

    A worker whose walltime ends is not counted, so that its replacement is requested in time.
    """
    for_waiting = math.ceil(demand.waiting_s / (demand.threads * limits.soon_s))
    working = max(demand.busy, for_waiting) + limits.spare
    reserved_count = sum(
        reservation.workers
        for reservation in reservations
        if reservation.start - limits.start_s <= now < reservation.until
    )
    count = max(working, reserved_count, limits.minimum) + demand.ending
    return min(count, limits.maximum)


class Growth:
    """Recent demand, so that a short lull does not end workers."""

    def __init__(self, limits: GrowthLimits) -> None:
        """Take the limits."""
        self.limits = limits
        # Values decrease and times increase: the first is the maximum of the last `idle_s`.
        self._counts: deque[tuple[float, int]] = deque()

    def target(
        self, demand: PoolDemand, now: float, reservations: Iterable[Reservation] = ()
    ) -> int:
        """Return the target number of workers, including those already requested."""
        count = needed_workers(demand, self.limits, now, reservations)
        while self._counts and self._counts[-1][1] <= count:
            self._counts.pop()
        self._counts.append((now, count))
        while self._counts[0][0] < now - self.limits.idle_s:
            self._counts.popleft()
        return self._counts[0][1]


def choose_leavers(
    idle: Iterable[IdleWorker], surplus: int, limits: GrowthLimits, now: float
) -> list[str]:
    """Return which workers to let go, at most `surplus`, the least valuable cache first.

    Among equals the longest idle goes first. A worker that was busy within `idle_s` stays.
    """
    may = [each for each in idle if now - each.since >= limits.idle_s]
    may.sort(key=lambda each: (each.worth_s, each.since))
    return [each.worker for each in may[: max(0, surplus)]]


def count_ending(ends: Iterable[float], limits: GrowthLimits, now: float) -> int:
    """Count the workers whose walltime ends before a worker requested now would have joined."""
    return sum(now + limits.start_s + limits.hand_over_s >= each for each in ends)


def plan_hand_over(
    blocks: Sequence[HeldBlock], heirs: Mapping[str, int], bytes_per_s: float, budget_s: float
) -> HandOverPlan:
    """Plan which cached objects a leaving worker hands to whom, the most valuable first.

    Args:
        blocks: its cached blocks; if others hold them too, they cost little to fetch again.
        heirs: remaining workers, and free bytes in their caches.
        bytes_per_s: measured sending rate.
        budget_s: time limit for all of it.

    An object is not handed over if sending takes as long as fetching again, if no other worker has
    room, or if no time is left.
    """
    if not bytes_per_s > 0:
        return HandOverPlan([], {each.source: "no time" for each in blocks})
    gaining = [each for each in blocks if each.size / bytes_per_s < each.refetch_s]
    refusals: dict[str, Refusal] = {each.source: "cheaper to fetch again" for each in blocks}
    gaining.sort(key=lambda each: (-each.refetch_s / max(each.size, 1), each.source))
    rooms = [(-room, heir) for heir, room in heirs.items()]
    heapq.heapify(rooms)
    remaining = budget_s * bytes_per_s
    transfers = []
    for block in gaining:
        if not rooms or block.size > -rooms[0][0]:
            refusals[block.source] = "no room" if rooms else "no other worker"
            continue
        if block.size > remaining:
            refusals[block.source] = "no time"
            continue
        del refusals[block.source]
        room, heir = rooms[0]
        heapq.heapreplace(rooms, (room + block.size, heir))
        remaining -= block.size
        transfers.append((block.source, heir))
    return HandOverPlan(transfers, refusals)
