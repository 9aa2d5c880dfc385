"""The choice of a store for each array by what the whole placement costs.

Arrays that are written together share time, so the cost of one depends on where the others are.
Branch and bound over arrays and stores, from the best that single moves lead to. An array never
makes others faster, so what the arrays with stores cost is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from swathe.runs.planning.choice import SAME, Demand, Disks
from swathe.runs.planning.shared_writes import GroupKey, SharedCosts, WholeCost

Groups: TypeAlias = dict[GroupKey, tuple[tuple[int, str], ...]]
Rooms: TypeAlias = dict[Hashable, int | None]


@dataclass(frozen=True)
class WholeChoice:
    """The stores that were chosen.

    Attributes:
        stores: store of each array, by its number.
        cost: what that costs.
        is_exact: whether it is known to be the least possible.
    """

    stores: Mapping[int, str]
    cost: WholeCost
    is_exact: bool


class _NextStep(NamedTuple):
    """Groups, cost and free bytes of disks when one more array has a store."""

    groups: Groups
    cost: WholeCost
    rooms: Rooms


@dataclass
class WholeSearch:
    """One search.

    Attributes:
        costs: costs of placements.
        demands: arrays by their number in `costs`; others have their stores.
        other_stores: stores of these.
        disks: disks of all stores.
        limit_s: seconds of writing in all, at most.
        most_steps: steps of the search, at most.
        by_writing: whether only writing counts.
    """

    costs: SharedCosts
    demands: Mapping[int, Demand]
    other_stores: Mapping[int, str]
    disks: Disks
    limit_s: float = math.inf
    most_steps: int = 200_000
    by_writing: bool = False
    _best: WholeChoice | None = field(default=None, init=False)
    _steps: int = field(default=0, init=False)

    def best(self, starts: Sequence[Mapping[int, str]]) -> WholeChoice | None:
        """Return the best choice; `None` if there is none, or none was seen.

        Args:
            starts: choices with room for all arrays, from which better ones are looked for first.
        """
        for start in (*starts, *self._together()):
            self._improve(dict(start))
        # Equal arrays follow each other; those that need most room come first.
        self._kinds = {at: self._kind(at) for at in self.demands}
        self._order = sorted(
            self.demands, key=lambda at: (-self.demands[at].bytes, self._kinds[at], at)
        )
        self._rest_s = [0.0]
        for at in reversed(self._order):
            apart = self.costs.apart_s[at]
            least_s = min((apart[each.store] for each in self.demands[at].offers), default=math.inf)
            self._rest_s.append(self._rest_s[-1] + (0.0 if self.by_writing else least_s))
        self._rest_s.reverse()
        groups: Groups = {}
        for at in sorted(self.other_stores):
            key = self.costs.key(at, self.other_stores[at])
            groups[key] = (*groups.get(key, ()), (at, self.other_stores[at]))
        rooms = dict(self.disks.room_bytes)
        self._follow(0, {}, groups, self.costs.whole(self.other_stores), rooms)
        if self._best is None:
            return None
        return WholeChoice(self._best.stores, self._best.cost, self.is_whole)

    @property
    def is_whole(self) -> bool:
        """Check whether the search came to its end."""
        return self._steps < self.most_steps

    def _value(self, cost: WholeCost) -> float:
        return cost.write_s if self.by_writing else cost.cost_s

    def _kind(self, at: int) -> str:
        """Return what is equal for arrays that can change places."""
        first = next(iter(self.costs.options[at].values()))
        return f"{first.array}{[each.store for each in self.demands[at].offers]}"

    def _is_better(self, cost: WholeCost) -> bool:
        if cost.write_s > self.limit_s * (1 + SAME):
            return False
        if self._best is None:
            return True
        best_s = self._value(self._best.cost)
        return self._value(cost) < best_s - SAME * abs(best_s)

    def _together(self) -> Iterator[dict[int, str]]:
        """Yield choices in which all arrays are in one store, where they may and there is room."""
        for store in self.disks.disk_of:
            stores: dict[int, str] = {}
            rooms = dict(self.disks.room_bytes)
            for at, demand in self.demands.items():
                offers = sorted(demand.offers, key=lambda each: (each.store != store, each.cost_s))
                fit = next((each.store for each in offers if self._take(rooms, each.store, at)), "")
                if not fit:
                    break
                stores[at] = fit
            else:
                yield stores

    def _take(self, rooms: Rooms, store: str, at: int) -> bool:
        """Take room for an array, if there is enough."""
        disk = self.disks.disk_of[store]
        room, size = rooms[disk], self.demands[at].bytes
        if room is not None and room < size:
            return False
        rooms[disk] = None if room is None else room - size
        return True

    def _improve(self, stores: dict[int, str]) -> None:
        """Move one array after the other while that costs less."""
        cost = self.costs.whole({**self.other_stores, **stores})
        while True:
            if self._is_better(cost):
                self._best = WholeChoice(dict(stores), cost, is_exact=False)
            moves = [
                (
                    self._value(self.costs.whole({**self.other_stores, **stores, at: each.store})),
                    at,
                    each,
                )
                for at, demand in self.demands.items()
                for each in demand.offers
                if each.store != stores[at] and self._has_room({**stores, at: each.store})
            ]
            least = min(moves, key=lambda move: move[0], default=None)
            if least is None or least[0] >= self._value(cost) * (1 - SAME):
                return
            stores[least[1]] = least[2].store
            cost = self.costs.whole({**self.other_stores, **stores})

    def _has_room(self, stores: Mapping[int, str]) -> bool:
        rooms = dict(self.disks.room_bytes)
        return all(self._take(rooms, store, at) for at, store in stores.items())

    def _follow(
        self,
        level: int,
        stores: dict[int, str],
        groups: Groups,
        cost: WholeCost,
        rooms: Rooms,
    ) -> None:
        """Look at all choices that begin with these stores."""
        self._steps += 1
        if self._steps >= self.most_steps:
            return
        if not self._is_better(WholeCost(cost.cost_s + self._rest_s[level], cost.write_s)):
            return
        if level == len(self._order):
            self._best = WholeChoice(dict(stores), cost, is_exact=False)
            return
        at = self._order[level]
        offers = self.demands[at].offers
        first = self._first_offer(level, stores)
        steps: list[tuple[float, str, _NextStep]] = []
        for offer in offers[first:]:
            left = dict(rooms)
            if not self._take(left, offer.store, at):
                continue
            key = self.costs.key(at, offer.store)
            members = groups.get(key, ())
            more = tuple(sorted((*members, (at, offer.store))))
            increase = self.costs.group(more) - self.costs.group(members)
            step = _NextStep({**groups, key: more}, cost + increase, left)
            steps.append((self._value(increase), offer.store, step))
        # What adds least comes first: the others are then more often cut off.
        for _, store, step in sorted(steps, key=lambda each: each[:2]):
            self._follow(level + 1, {**stores, at: store}, *step)

    def _first_offer(self, level: int, stores: Mapping[int, str]) -> int:
        """Return the first offer to look at: arrays that are equal have stores in order."""
        at = self._order[level]
        if level == 0 or self._kinds[self._order[level - 1]] != self._kinds[at]:
            return 0
        before = stores[self._order[level - 1]]
        return [each.store for each in self.demands[at].offers].index(before)
