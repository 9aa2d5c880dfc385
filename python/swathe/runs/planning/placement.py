"""Which stores the dumps of a run go to: hints by tier and room, then those that AUTO chooses."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError
from swathe.core.format import seconds_text, size_text
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.auto_placement import AutoChoice, choose_stores
from swathe.runs.planning.choice import MOST_STEPS, Disks, Offer
from swathe.runs.planning.shared_writes import Placement, in_groups, share_of, stored_arrays
from swathe.runs.planning.store_rate import StoreRate
from swathe.runs.planning.write_method import choose_write

HINTS = {"localdisk": ("local",), "remotedisk": ("lan", "wan"), "remotetape": ("tape",)}
"""Tiers of stores by hint."""
DEFAULT, DISABLE, AUTO = "default", "disable", "auto"
PLACES = (*HINTS, DEFAULT, AUTO)
"""Hints that mean stores."""
Rates: TypeAlias = Callable[[Iterable[str]], Mapping[str, StoreRate]]
"""What gives the costs of stores by their names."""


@dataclass(frozen=True)
class StoreRoom:
    """A store that a run may write to.

    Attributes:
        name: its name.
        tier: `local`, `lan`, `wan` or `tape`.
        room_bytes: free bytes; `None` if unknown, which counts as enough.
        disk: what all stores on one file system have in common; `None` if unknown.
    """

    name: str
    tier: str
    room_bytes: int | None = None
    disk: int | None = None

    @property
    def disk_key(self) -> Hashable:
        """Return what is equal for stores that share their room."""
        return self.name if self.disk is None else self.disk


@dataclass(frozen=True)
class Decision:
    """Where the arrays of a run go.

    Attributes:
        placements: for each array by name, where its dumps go.
        auto: what was chosen for the arrays with the hint `auto`; `None` if there are none.
    """

    placements: Mapping[str, tuple[Placement, ...]]
    auto: AutoChoice | None


class _Rooms:
    """What is left of stores; those on one file system share it."""

    def __init__(self, stores: Sequence[StoreRoom]) -> None:
        self._disks: dict[str, Hashable] = {each.name: each.disk_key for each in stores}
        self._left: dict[Hashable, int | None] = {}
        for disk in self._disks.values():
            rooms = [
                each.room_bytes
                for each in stores
                if each.disk_key == disk and each.room_bytes is not None
            ]
            self._left[disk] = min(rooms, default=None)

    @property
    def disks(self) -> Disks:
        """Return the disks of the stores, and what is left of them."""
        return Disks(self._disks, self._left)

    def left(self, store: str) -> int | None:
        """Return the bytes left; `None` if unknown."""
        return self._left[self._disks[store]]

    def count(self, store: str, size: int) -> int:
        """Return how many times a number of bytes has room."""
        left = self.left(store)
        return sys.maxsize if left is None else max(left, 0) // size

    def take(self, store: str, size: int) -> None:
        """Take bytes of a store."""
        left = self.left(store)
        self._left[self._disks[store]] = None if left is None else left - size


def place(
    arrays: Mapping[str, ArraySettings],
    iterations: int,
    stores: Sequence[StoreRoom],
    default: str | None = None,
    rates: Rates | None = None,
    ranks: int = 1,
) -> dict[str, tuple[Placement, ...]]:
    """Return where the dumps of each array go, as `decide` does."""
    return dict(decide(arrays, iterations, stores, default, rates, ranks=ranks).placements)


def decide(
    arrays: Mapping[str, ArraySettings],
    iterations: int,
    stores: Sequence[StoreRoom],
    default: str | None = None,
    rates: Rates | None = None,
    within_s: float | None = None,
    ranks: int = 1,
    most_steps: int = MOST_STEPS,
) -> Decision:
    """Return where the dumps of each array go, by its name; arrays that are disabled go nowhere.

    Arrays are placed in their order. One goes to the first store of its locations that has room for
    all its dumps; if none has, its dumps fill the stores in order. The stores of arrays with the
    hint `auto` are chosen after that, for all of them at once, from their other locations, or from
    all stores if there are none.

    Args:
        arrays: the arrays by name.
        iterations: number of the last iteration of the run.
        stores: stores that can be written to, each at most once.
        default: the store that the location `default` means. By default it is the one of tier tape
            with most room, else the one with most room.
        rates: costs of stores; needed for `auto` and for `within_s`.
        within_s: seconds for writing all arrays, at most.
        ranks: number of processes that share each array.
        most_steps: steps of the search for stores of `auto`, at most.

    Raises:
        NoSuchStoreError: If a location is neither a store that can be written to nor a hint.
        OptionError: If there is no store for a hint, or `rates` is needed and not given.
        LimitError: If stores have too little room, or a limit of time cannot be met.
    """
    by_name = {store.name: store for store in stores}
    rooms = _Rooms(stores)
    placements: dict[str, tuple[Placement, ...]] = dict.fromkeys(arrays, ())
    auto: dict[str, ArraySettings] = {}
    for name, array in arrays.items():
        if not array.dumps(iterations):
            continue
        if is_auto(array):
            auto[name] = array
        else:
            candidates = _candidates(name, array, by_name, rooms, default)
            placements[name] = _place_one(name, array, iterations, candidates, rooms)
    if not auto and within_s is None:
        return Decision(placements, None)
    if rates is None:
        raise OptionError(f"arrays {', '.join(auto)}: expected costs of stores, found none")
    candidates_of = {
        name: _candidates(name, array, by_name, rooms, default) for name, array in auto.items()
    }
    names = {store for some in candidates_of.values() for store in some}
    names |= {each.store for some in placements.values() for each in some}
    nears = {near_store(name, array, stores) for name, array in arrays.items()}
    costs = rates(names.union(near for near in nears if near is not None))
    spent_s = 0.0
    if within_s is not None:
        spent_s = _writing_s(arrays, placements, costs, ranks)
        if spent_s > within_s:
            raise LimitError(
                f"the run: expected writing within {seconds_text(within_s)}, found "
                f"{seconds_text(spent_s)} for arrays whose stores are given"
            )
    if not auto:
        return Decision(placements, None)
    limit_s = math.inf if within_s is None else within_s
    auto_choice = choose_stores(
        *(arrays, placements, iterations, candidates_of, rooms.disks, costs),
        *(ranks, limit_s, spent_s, most_steps),
    )
    for name, parts in auto_choice.choice.parts.items():
        placements[name] = tuple(_parts(auto[name], iterations, parts))
    return Decision(placements, auto_choice)


def is_auto(array: ArraySettings) -> bool:
    """Check whether the store of an array is chosen by its cost."""
    return AUTO in (each.lower() for each in array.location)


def near_store(name: str, array: ArraySettings, stores: Iterable[StoreRoom]) -> str | None:
    """Return the store that the dumps of an array are written to first (`via`), if there is one.

    Raises:
        NoSuchStoreError: If nothing can be written to it, or it is not there.
    """
    if array.via is not None and all(each.name != array.via for each in stores):
        raise NoSuchStoreError(
            f"arrays.{name}.via: expected a store that can be written to, found {array.via!r:.80}"
        )
    return array.via


def check_failover(name: str, array: ArraySettings, stores: Sequence[StoreRoom]) -> None:
    """Check that the setting `failover` of an array names stores.

    Raises:
        NoSuchStoreError: If one is neither a store that can be written to nor a hint.
    """
    names = [each.name for each in stores]
    for place in () if isinstance(array.failover, bool) else array.failover:
        if place not in names and place.lower() not in PLACES:
            raise _no_store(f"arrays.{name}.failover", place, names, PLACES)


def _writing_s(
    arrays: Mapping[str, ArraySettings],
    placements: Mapping[str, Sequence[Placement]],
    rates: Mapping[str, StoreRate],
    ranks: int,
) -> float:
    """Return the predicted seconds of writing what is placed."""
    in_stores = []
    for name, some in placements.items():
        parts = [(rates[each.store], each.dumps) for each in some]
        array = choose_write(name, arrays[name], ranks, parts).array
        in_stores += stored_arrays(array, some, rates, ranks)
    return math.fsum(
        each.write_s(share_of(group)).median_s
        for group in in_groups(in_stores).values()
        for each in group
    )


def _parts(
    array: ArraySettings, iterations: int, parts: Sequence[tuple[Offer, int]]
) -> Iterator[Placement]:
    """Yield where the dumps of an array go whose stores were chosen."""
    if len(parts) == 1:
        yield Placement(parts[0][0].store, 0, array.dumps(iterations))
        return
    first = 0
    for offer, dumps in parts:
        yield Placement(offer.store, first, dumps)
        first += dumps


def _place_one(
    name: str, array: ArraySettings, iterations: int, candidates: Sequence[str], rooms: _Rooms
) -> tuple[Placement, ...]:
    """Return where the dumps of an array go, and take the room."""
    dumps = array.dumps(iterations)
    kept_bytes = array.dump_bytes * array.stored_dumps(iterations)
    whole = next((each for each in candidates if rooms.count(each, kept_bytes)), None)
    if whole is not None:
        rooms.take(whole, kept_bytes)
        return (Placement(whole, 0, dumps),)
    if array.mode == "overwrite":
        raise _no_room(name, candidates, rooms, kept_bytes)
    return tuple(_fill(name, candidates, rooms, array.dump_bytes, dumps))


def _candidates(
    name: str,
    array: ArraySettings,
    stores: Mapping[str, StoreRoom],
    rooms: _Rooms,
    default: str | None,
) -> list[str]:
    """Return the stores that an array may go to, the first choice first."""
    candidates: dict[str, None] = {}
    places = [each for each in array.location if each.lower() != AUTO]
    for place in places:
        if place in stores:
            candidates[place] = None
            continue
        hint = place.lower()
        if hint == DEFAULT:
            choices = _default(stores, rooms, default)
        elif hint in HINTS:
            choices = _by_room(
                [each for each in stores.values() if each.tier in HINTS[hint]], rooms
            )
        else:
            raise _no_store(f"arrays.{name}.location", place, stores, (*PLACES, DISABLE))
        candidates |= dict.fromkeys(choices)
    if not places:
        # What staging takes is not known beforehand: a store on tape must be named.
        others = [each.name for each in stores.values() if each.tier != "tape"]
        candidates = dict.fromkeys(others or stores)
    if not candidates:
        raise OptionError(
            f"arrays.{name}.location: no store for {', '.join(array.location)}; stores that can be "
            f"written to: {_store_texts(stores)}"
        )
    return list(candidates)


def _default(stores: Mapping[str, StoreRoom], rooms: _Rooms, default: str | None) -> list[str]:
    if default is not None:
        if default not in stores:
            raise NoSuchStoreError(f"the default store {default!r:.80} cannot be written to")
        return [default]
    on_tape = [each for each in stores.values() if each.tier == "tape"]
    return _by_room(on_tape or list(stores.values()), rooms)


def _by_room(stores: Sequence[StoreRoom], rooms: _Rooms) -> list[str]:
    """Return the names of stores, those with most room first, then those whose room is unknown."""
    return [each.name for each in sorted(stores, key=lambda each: -(rooms.left(each.name) or 0))]


def _fill(
    name: str, candidates: Sequence[str], rooms: _Rooms, dump_bytes: int, dumps: int
) -> Iterator[Placement]:
    """Yield where the dumps of an array go that no store holds alone."""
    first, total_bytes = 0, dump_bytes * dumps
    no_room = _no_room(name, candidates, rooms, total_bytes)
    for store in candidates:
        number = min(dumps - first, rooms.count(store, dump_bytes))
        if number > 0:
            yield Placement(store, first, number)
            rooms.take(store, number * dump_bytes)
            first += number
    if first < dumps:
        raise no_room


def _no_room(name: str, candidates: Sequence[str], rooms: _Rooms, size: int) -> LimitError:
    room = ", ".join(f"{each} {size_text(rooms.left(each) or 0)}" for each in candidates)
    return LimitError(f"arrays.{name}: expected room for {size_text(size)}, found {room}")


def _no_store(
    key: str, place: str, stores: Iterable[str], hints: Iterable[str]
) -> NoSuchStoreError:
    return NoSuchStoreError(
        f"{key}: expected a store that can be written to ({', '.join(stores) or 'there is none'}) "
        f"or a hint ({', '.join(hints)}), found {place!r:.80}"
    )


def _store_texts(stores: Mapping[str, StoreRoom]) -> str:
    return ", ".join(f"{each.name} ({each.tier})" for each in stores.values()) or "none"
