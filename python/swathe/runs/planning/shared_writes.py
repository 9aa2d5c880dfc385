"""What arrays cost that are written together: those of one store at the same iterations.

Predictions and the choice of stores use these same costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from swathe.runs.planning.store_rate import (
    DumpSize,
    Forecast,
    StoreRate,
    placed_s,
    replacements,
)

if TYPE_CHECKING:
    from swathe.runs.definition.run_settings import ArraySettings

GroupKey: TypeAlias = tuple[int, int, int, str]
"""Iterations from one dump to the next, number of the first dump, dumps, and their first store."""


@dataclass(frozen=True)
class Placement:
    """Dumps of an array that follow each other and go to one store.

    Attributes:
        store: name of the store.
        first: number of the first of them, from 0.
        dumps: how many.
    """

    store: str
    first: int
    dumps: int


@dataclass(frozen=True)
class StoredArray:
    """Dumps of an array that go to one store.

    Attributes:
        array: its settings, with the objects as they are written there.
        first_dump: number of the first of the dumps.
        dumps: how many.
        first_store: store that they are written to first: that of `via` if there is one.
        first: costs of it.
        last: costs of their place; the same without `via`.
        ranks: number of processes that share the array.
    """

    array: ArraySettings
    first_dump: int
    dumps: int
    first_store: str
    first: StoreRate
    last: StoreRate
    ranks: int

    @property
    def key(self) -> GroupKey:
        """Return what all dumps have in common that are written together."""
        return self.array.every, self.first_dump, self.dumps, self.first_store

    @cached_property
    def storing(self) -> Forecast:
        """Return the time of all dumps in their first store, if they are written alone."""
        return self.first.stored_s(self.array, self.dumps, self.ranks)

    def write_s(self, share: float = 1.0) -> Forecast:
        """Return the time of writing all dumps, if they take this part of their time alone."""
        storing = self.storing.times(share)
        return placed_s(self.array, self.dumps, storing, self.first, self.last, self.ranks)


def stored_arrays(
    array: ArraySettings,
    placements: Iterable[Placement],
    rates: Mapping[str, StoreRate],
    ranks: int,
) -> list[StoredArray]:
    """Return what an array is in each of its stores; with `via` it is written to the near one."""
    return [
        StoredArray(array, each.first, each.dumps, first, rates[first], rates[each.store], ranks)
        for each in placements
        for first in [array.via or each.store]
    ]


def share_of(group: Sequence[StoredArray]) -> float:
    """Return the time of dumps that are begun together, over the sum of their times alone."""
    if len(group) == 1:
        return 1.0
    alone_s = math.fsum(each.storing.median_s for each in group)
    return _together_s(group) / alone_s if alone_s else 1.0


def _together_s(group: Sequence[StoredArray]) -> float:
    """Return the seconds of all dumps of arrays that are written at the same iterations."""
    first = group[0]
    sizes = [DumpSize.of(each.array, each.dumps) for each in group]
    repeats = max(replacements(each.array, each.dumps) for each in group)
    new_s = _iteration_s(first.first, sizes, first.ranks, is_replacing=False)
    if not repeats:
        return first.dumps * new_s
    replacing_s = _iteration_s(first.first, sizes, first.ranks, is_replacing=True)
    return (first.dumps - repeats) * new_s + repeats * replacing_s


def _iteration_s(
    rate: StoreRate, sizes: Sequence[DumpSize], ranks: int, *, is_replacing: bool
) -> float:
    """Return the seconds until the dumps of an iteration are stored, and their metadata.

    One rank writes metadata, of one array after the other: before a dump that replaces another is
    begun, and after it. Dumps that were begun before are written meanwhile.
    """
    change_s = rate.change_s().median_s
    begin_s, end_s = 0.0, rate.dumps_s(sizes, ranks).median_s
    changes = []
    for at, size in enumerate(sizes):
        if is_replacing and size.array.mode == "overwrite":
            begin_s += change_s
            end_s = max(end_s, begin_s + rate.dumps_s(sizes[at:], ranks).median_s)
        if size.array.mode != "create":
            changes.append((size.bytes, begin_s))
    # Dumps share the store evenly: while one is written, as much of each other one is.
    ready_s = 0.0
    for most_bytes, begun_s in sorted(changes):
        parts = [replace(each, bytes=min(each.bytes, most_bytes)) for each in sizes]
        stored_s = min(begun_s + rate.dumps_s(parts, ranks).median_s, end_s)
        ready_s = max(ready_s, stored_s) + change_s
    return max(end_s, ready_s)


def in_groups(arrays: Iterable[StoredArray]) -> dict[GroupKey, list[StoredArray]]:
    """Return arrays by what they share, in their order."""
    groups: dict[GroupKey, list[StoredArray]] = {}
    for each in arrays:
        groups.setdefault(each.key, []).append(each)
    return groups


@dataclass(frozen=True)
class WholeCost:
    """What a placement of all arrays costs.

    Attributes:
        cost_s: what is minimised: seconds of writing, of risk, and of reading by its weight.
        write_s: seconds of writing.
    """

    cost_s: float = 0.0
    write_s: float = 0.0

    def __add__(self, other: WholeCost) -> WholeCost:
        """Return the cost of both."""
        return WholeCost(self.cost_s + other.cost_s, self.write_s + other.write_s)

    def __sub__(self, other: WholeCost) -> WholeCost:
        """Return what one costs more than the other."""
        return WholeCost(self.cost_s - other.cost_s, self.write_s - other.write_s)


@dataclass
class SharedCosts:
    """Costs of placements, each group of arrays computed once.

    Attributes:
        options: for each array, in the order of the run, what it is in each store it may go to.
        apart_s: seconds that count for each of these besides writing: of reading, weighted.
        risky: stores that count with the upper bound of their time.
    """

    options: Sequence[Mapping[str, StoredArray]]
    apart_s: Sequence[Mapping[str, float]]
    risky: frozenset[str] = frozenset()
    _groups: dict[tuple[tuple[int, str], ...], WholeCost] = field(default_factory=dict)

    def key(self, at: int, store: str) -> GroupKey:
        """Return the group of an array in a store."""
        return self.options[at][store].key

    def group(self, members: tuple[tuple[int, str], ...]) -> WholeCost:
        """Return the cost of arrays that are written together, each with its store, in order."""
        if members not in self._groups:
            self._groups[members] = self._cost(members)
        return self._groups[members]

    def whole(self, stores: Mapping[int, str]) -> WholeCost:
        """Return the cost of a placement: the store of each array, by its number."""
        groups: dict[GroupKey, list[tuple[int, str]]] = {}
        for at in sorted(stores):
            groups.setdefault(self.key(at, stores[at]), []).append((at, stores[at]))
        costs = [self.group(tuple(members)) for members in groups.values()]
        cost_s = math.fsum(each.cost_s for each in costs)
        return WholeCost(cost_s, math.fsum(each.write_s for each in costs))

    def _cost(self, members: Sequence[tuple[int, str]]) -> WholeCost:
        if not members:
            return WholeCost()
        group = [self.options[at][store] for at, store in members]
        share, cost_s, write_s = share_of(group), 0.0, 0.0
        for (at, store), each in zip(members, group, strict=True):
            time = each.write_s(share)
            write_s += time.median_s
            cost_s += time.high_s if store in self.risky else time.median_s
            cost_s += self.apart_s[at][store]
        return WholeCost(cost_s, write_s)
