"""Which stores the dumps of a run go to: hints by tier and room, in the order of the settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError
from swathe.core.format import size_text
from swathe.runs.run_settings import ArraySettings

HINTS = {"localdisk": ("local",), "remotedisk": ("lan", "wan"), "remotetape": ("tape",)}
"""Tiers of stores by hint."""
DEFAULT, DISABLE = "default", "disable"


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


class _Rooms:
    """What is left of stores; those on one file system share it."""

    def __init__(self, stores: Sequence[StoreRoom]) -> None:
        self._disks: dict[str, object] = {
            each.name: each.name if each.disk is None else each.disk for each in stores
        }
        self._left = {self._disks[each.name]: each.room_bytes for each in stores}

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
) -> dict[str, tuple[Placement, ...]]:
    """Return where the dumps of each array go, by its name; arrays that are disabled go nowhere.

    Arrays are placed in their order. One goes to the first store of its locations that has room for
    all its dumps; if none has, its dumps fill the stores in order.

    Args:
        arrays: the arrays by name.
        iterations: number of the last iteration of the run.
        stores: stores that can be written to, each at most once.
        default: the store that the location `default` means. By default it is the one of tier tape
            with most room, else the one with most room.

    Raises:
        NoSuchStoreError: If a location is neither a store that can be written to nor a hint.
        OptionError: If there is no store for a hint.
        LimitError: If stores have too little room.
    """
    by_name = {store.name: store for store in stores}
    rooms = _Rooms(stores)
    placements: dict[str, tuple[Placement, ...]] = {}
    for name, array in arrays.items():
        dumps = array.dumps(iterations)
        if not dumps:
            placements[name] = ()
            continue
        kept_bytes = array.dump_bytes * array.stored_dumps(iterations)
        candidates = _candidates(name, array, by_name, rooms, default)
        whole = next((each for each in candidates if rooms.count(each, kept_bytes)), None)
        if whole is not None:
            placements[name] = (Placement(whole, 0, dumps),)
            rooms.take(whole, kept_bytes)
        elif array.mode == "overwrite":
            raise _no_room(name, candidates, rooms, kept_bytes)
        else:
            placements[name] = tuple(_fill(name, candidates, rooms, array.dump_bytes, dumps))
    return placements


def _candidates(
    name: str,
    array: ArraySettings,
    stores: Mapping[str, StoreRoom],
    rooms: _Rooms,
    default: str | None,
) -> list[str]:
    """Return the stores that an array may go to, the first choice first."""
    candidates: dict[str, None] = {}
    for place in array.location:
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
            raise NoSuchStoreError(
                f"arrays.{name}.location: expected a store that can be written to "
                f"({', '.join(stores) or 'there is none'}) or a hint "
                f"({', '.join([*HINTS, DEFAULT, DISABLE])}), found {place!r:.80}"
            )
        candidates |= dict.fromkeys(choices)
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


def _store_texts(stores: Mapping[str, StoreRoom]) -> str:
    return ", ".join(f"{each.name} ({each.tier})" for each in stores.values()) or "none"
