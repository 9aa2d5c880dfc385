"""Which stores the dumps of a run go to: hints by tier and room, in the order of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError
from swathe.core.format import size_text
from swathe.runs.run_settings import ArraySettings, RunSettings

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
    """

    name: str
    tier: str
    room_bytes: int | None = None


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


def place(
    run: RunSettings, stores: Sequence[StoreRoom], default: str | None = None
) -> dict[str, tuple[Placement, ...]]:
    """Return where the dumps of each array go, by its name; arrays that are disabled go nowhere.

    Arrays are placed in their order. One goes to the first store of its locations that has room for
    all its dumps; if none has, its dumps fill the stores in order.

    Args:
        run: the arrays and their locations.
        stores: stores that can be written to, each at most once.
        default: the store that the location `default` means. By default it is the one of tier tape
            with most room, else the one with most room.

    Raises:
        NoSuchStoreError: If a location is neither a store that can be written to nor a hint.
        OptionError: If there is no store for a hint.
        LimitError: If stores have too little room.
    """
    by_name = {store.name: store for store in stores}
    rooms = {store.name: store.room_bytes for store in stores}
    placements: dict[str, tuple[Placement, ...]] = {}
    for name, array in run.arrays.items():
        dumps = array.dumps(run.iterations)
        if not dumps:
            placements[name] = ()
            continue
        kept_bytes = array.dump_bytes * (1 if array.mode == "overwrite" else dumps)
        candidates = _candidates(name, array, by_name, rooms, default)
        whole = next((each for each in candidates if _has_room(rooms[each], kept_bytes)), None)
        if whole is not None:
            placements[name] = (Placement(whole, 0, dumps),)
            _take(rooms, whole, kept_bytes)
        elif array.mode == "overwrite":
            raise _no_room(name, candidates, rooms, kept_bytes)
        else:
            placements[name] = tuple(_fill(name, candidates, rooms, array.dump_bytes, dumps))
    return placements


def _candidates(
    name: str,
    array: ArraySettings,
    stores: Mapping[str, StoreRoom],
    rooms: Mapping[str, int | None],
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
                f"({', '.join([*HINTS, DEFAULT, DISABLE])}), choices {place!r:.80}"
            )
        candidates |= dict.fromkeys(choices)
    if not candidates:
        raise OptionError(
            f"arrays.{name}.location: no store for {', '.join(array.location)}; stores that can be "
            f"written to: {_store_texts(stores)}"
        )
    return list(candidates)


def _default(
    stores: Mapping[str, StoreRoom], rooms: Mapping[str, int | None], default: str | None
) -> list[str]:
    if default is not None:
        if default not in stores:
            raise NoSuchStoreError(f"the default store {default!r:.80} cannot be written to")
        return [default]
    on_tape = [each for each in stores.values() if each.tier == "tape"]
    return _by_room(on_tape or list(stores.values()), rooms)


def _by_room(stores: Sequence[StoreRoom], rooms: Mapping[str, int | None]) -> list[str]:
    """Return the names of stores, those with most room first, then those whose room is unknown."""
    return [each.name for each in sorted(stores, key=lambda each: -(rooms[each.name] or 0))]


def _has_room(room_bytes: int | None, size: int) -> bool:
    return room_bytes is None or size <= room_bytes


def _take(rooms: dict[str, int | None], store: str, size: int) -> None:
    room_bytes = rooms[store]
    rooms[store] = None if room_bytes is None else room_bytes - size


def _fill(
    name: str, candidates: Sequence[str], rooms: dict[str, int | None], dump_bytes: int, dumps: int
) -> Iterator[Placement]:
    """Yield where the dumps of an array go that no store holds alone."""
    first, before = 0, dict(rooms)
    for store in candidates:
        room_bytes = rooms[store]
        number = (
            dumps - first if room_bytes is None else min(dumps - first, room_bytes // dump_bytes)
        )
        if number > 0:
            yield Placement(store, first, number)
            _take(rooms, store, number * dump_bytes)
            first += number
    if first < dumps:
        raise _no_room(name, candidates, before, dump_bytes * dumps)


def _no_room(
    name: str, candidates: Sequence[str], rooms: Mapping[str, int | None], size: int
) -> LimitError:
    room = ", ".join(f"{each} {size_text(rooms[each] or 0)}" for each in candidates)
    return LimitError(f"arrays.{name}: expected room for {size_text(size)}, found {room}")


def _store_texts(stores: Mapping[str, StoreRoom]) -> str:
    return ", ".join(f"{each.name} ({each.tier})" for each in stores.values()) or "none"
