"""The choice of stores for arrays: the least cost within the room of disks and limits of time.

The search is branch and bound over arrays and stores. It is exact, unless it would take more than
`MOST_STEPS` steps; then it returns the best that it has seen, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from swathe.core.errors import LimitError

MOST_STEPS = 200_000
MOST_STATES = 100_000
"""States whose least cost is remembered, at most."""
SAME = 1e-12
"""Relative difference of costs that count as equal."""


@dataclass(frozen=True)
class Offer:
    """What it costs to have an array in one store.

    Attributes:
        store: name of the store.
        cost_s: what is minimised: seconds of writing and, weighted, of reading.
        write_s: seconds to write all dumps.
        read_s: seconds to read the array once.
        risk_s: seconds of `cost_s` that count besides, since writing was not measured.
        shared_s: seconds by which `cost_s` is less, since arrays that are written together share
            time; negative if it is more.
    """

    store: str
    cost_s: float
    write_s: float
    read_s: float
    risk_s: float = 0.0
    shared_s: float = 0.0


@dataclass(frozen=True)
class Demand:
    """An array for which a store is chosen.

    Attributes:
        name: its name.
        dumps: number of dumps for which there must be room.
        dump_bytes: size of one.
        can_span: whether dumps may go to several stores.
        offers: what each store that it may go to costs.
    """

    name: str
    dumps: int
    dump_bytes: int
    can_span: bool
    offers: tuple[Offer, ...]

    @property
    def bytes(self) -> int:
        """Return the bytes for which there must be room."""
        return self.dumps * self.dump_bytes


Part: TypeAlias = tuple[Offer, int]
"""An offer, and how many dumps go to its store."""
Rooms: TypeAlias = tuple[int | None, ...]
Objective: TypeAlias = Callable[[Demand, Offer], float]


@dataclass(frozen=True)
class Disks:
    """The disks of stores; stores on one disk share its room.

    Attributes:
        disk_of: disk of each store, by its name.
        room_bytes: free bytes of each disk; `None` if unknown, which counts as enough.
    """

    disk_of: Mapping[str, Hashable]
    room_bytes: Mapping[Hashable, int | None]


@dataclass(frozen=True)
class Choice:
    """The stores that were chosen.

    Attributes:
        parts: for each array by name, where its dumps go.
        cost_s: cost of all.
        is_exact: whether it is known to be the least possible.
    """

    parts: Mapping[str, tuple[Part, ...]]
    cost_s: float
    is_exact: bool

    @property
    def write_s(self) -> float:
        """Return the seconds to write all arrays."""
        return math.fsum(
            offer.write_s * dumps / max(sum(each for _, each in parts), 1)
            for parts in self.parts.values()
            for offer, dumps in parts
        )


def choose(
    demands: Sequence[Demand],
    disks: Disks,
    budget_s: float = math.inf,
    objective: Objective | None = None,
    most_steps: int = MOST_STEPS,
) -> Choice | None:
    """Return the choice of least cost; among equals the one whose stores have most room left.

    Each array goes to one store. Only if there is no such choice, arrays may span stores, as few
    as can be: each fills its stores in the order of their costs.

    Args:
        demands: the arrays.
        disks: the disks of their stores.
        budget_s: seconds of writing in all, at most.
        objective: what is minimised; by default `Offer.cost_s`.
        most_steps: steps of the search, at most.

    Returns:
        `None` if there is no choice.

    Raises:
        LimitError: If none was seen in `most_steps` steps, but there may be one.
    """
    value = objective or (lambda _demand, offer: offer.cost_s)
    search = _Search(demands, disks, budget_s, value, can_span=False, most_steps=most_steps)
    choice = search.best()
    if choice is None and any(each.can_span for each in demands):
        search = _Search(demands, disks, budget_s, value, can_span=True, most_steps=most_steps)
        choice = search.best()
    if choice is None and not search.is_whole:
        raise no_choice(len(demands), most_steps)
    return choice


def no_choice(arrays: int, most_steps: int) -> LimitError:
    """Return the error of a search that was ended before it saw a choice."""
    return LimitError(
        f"the run: expected a choice of stores for {arrays} arrays within {most_steps} "
        "steps, found none yet; name the stores of some of them"
    )


@dataclass(frozen=True)
class _Step:
    """A place in the search: the arrays before `at` have stores.

    Attributes:
        at: number of the next array.
        rooms: free bytes of each disk.
        cost: number of arrays that span stores, then the objective.
        write_s: seconds of writing.
        parts: where the last array went.
        before: the step before.
    """

    at: int
    rooms: Rooms
    cost: tuple[int, float] = (0, 0.0)
    write_s: float = 0.0
    parts: tuple[Part, ...] = ()
    before: _Step | None = None


@dataclass
class _Search:
    """One search. Arrays that need most room come first."""

    demands: Sequence[Demand]
    disks: Disks
    budget_s: float
    objective: Objective
    can_span: bool
    most_steps: int
    is_whole: bool = field(default=False, init=False)
    _states: dict[tuple[int, Rooms], list[tuple[tuple[int, float], float]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        order = sorted(range(len(self.demands)), key=lambda at: -self.demands[at].bytes)
        self._order = [self.demands[at] for at in order]
        self._disks = list(self.disks.room_bytes)
        self._number = {
            store: self._disks.index(disk) for store, disk in self.disks.disk_of.items()
        }
        self._rest_cost, self._rest_write_s = [0.0], [0.0]
        for demand in reversed(self._order):
            least = min((self.objective(demand, each) for each in demand.offers), default=math.inf)
            least_s = min((each.write_s for each in demand.offers), default=math.inf)
            self._rest_cost.append(self._rest_cost[-1] + least)
            self._rest_write_s.append(self._rest_write_s[-1] + least_s)
        self._rest_cost.reverse()
        self._rest_write_s.reverse()

    def best(self) -> Choice | None:
        """Return the best choice; `None` if there is none."""
        best: _Step | None = None
        pending = [_Step(0, tuple(self.disks.room_bytes.values()))]
        steps = 0
        while pending and steps < self.most_steps:
            step = pending.pop()
            steps += 1
            if not self._can_be_better(step, best) or self._is_dominated(step):
                continue
            if step.at == len(self._order):
                best = step
                continue
            # The last is followed first.
            pending += reversed(list(self._next(step)))
        self.is_whole = not pending
        return None if best is None else self._choice(best, self.is_whole)

    def _can_be_better(self, step: _Step, best: _Step | None) -> bool:
        if step.write_s + self._rest_write_s[step.at] > self.budget_s * (1 + SAME):
            return False
        spans, cost = step.cost
        bound = cost + self._rest_cost[step.at]
        if best is None:
            return bound < math.inf
        return spans < best.cost[0] or (
            spans == best.cost[0] and bound < best.cost[1] - SAME * abs(best.cost[1])
        )

    def _is_dominated(self, step: _Step) -> bool:
        """Check whether the same room was left before at no more cost; else remember this."""
        states = self._states.get((step.at, step.rooms))
        if states is None:
            if len(self._states) < MOST_STATES:
                self._states[step.at, step.rooms] = [(step.cost, step.write_s)]
            return False
        spans, cost_s = step.cost
        cost, write_s = (spans, cost_s * (1 + SAME)), step.write_s * (1 + SAME)
        is_free = self.budget_s == math.inf
        if any(least <= cost and (is_free or least_s <= write_s) for least, least_s in states):
            return True
        states.append((step.cost, step.write_s))
        return False

    def _next(self, step: _Step) -> Iterator[_Step]:
        """Yield the steps after one, the cheapest first; of equals, the one with most room."""
        demand = self._order[step.at]
        offers = sorted(
            demand.offers,
            key=lambda each: (
                self.objective(demand, each),
                -(self._left(step.rooms, each.store) or 0),
            ),
        )
        for offer in offers:
            left = self._left(step.rooms, offer.store)
            if left is None or left >= demand.bytes:
                yield self._after(step, demand, ((offer, demand.dumps),), 0)
        if self.can_span and demand.can_span:
            parts = tuple(self._fill(step.rooms, demand, offers))
            if len(parts) > 1 and sum(dumps for _, dumps in parts) == demand.dumps:
                yield self._after(step, demand, parts, 1)

    def _fill(self, rooms: Rooms, demand: Demand, offers: Sequence[Offer]) -> Iterator[Part]:
        """Yield how the dumps of an array fill stores in their order."""
        rest, left = demand.dumps, list(rooms)
        for offer in offers:
            disk = self._number[offer.store]
            room = left[disk]
            dumps = rest if room is None else min(rest, room // demand.dump_bytes)
            if dumps > 0:
                yield offer, dumps
                rest -= dumps
                left[disk] = None if room is None else room - dumps * demand.dump_bytes

    def _after(self, step: _Step, demand: Demand, parts: tuple[Part, ...], spans: int) -> _Step:
        rooms, cost_s, write_s = list(step.rooms), step.cost[1], step.write_s
        for offer, dumps in parts:
            disk, share = self._number[offer.store], dumps / demand.dumps
            room = rooms[disk]
            rooms[disk] = None if room is None else room - dumps * demand.dump_bytes
            cost_s += share * self.objective(demand, offer)
            write_s += share * offer.write_s
        cost = (step.cost[0] + spans, cost_s)
        return _Step(step.at + 1, tuple(rooms), cost, write_s, parts, step)

    def _left(self, rooms: Rooms, store: str) -> int | None:
        return rooms[self._number[store]]

    def _choice(self, best: _Step, is_exact: bool) -> Choice:
        parts: dict[str, tuple[Part, ...]] = {}
        step: _Step | None = best
        while step is not None and step.before is not None:
            parts[self._order[step.at - 1].name] = step.parts
            step = step.before
        in_order = {each.name: parts[each.name] for each in self.demands}
        return Choice(in_order, best.cost[1], is_exact)
