"""Names of objects in a cache, where they lie now: for looks that must not fetch an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.catalog.records.caches import READABLE
from swathe.core.errors import NotFoundError
from swathe.stores.registry import caches_of, has_catalogue

if TYPE_CHECKING:
    from swathe import _swathe


def open_to_look(engine: _swathe.Stores, name: str) -> _swathe.Source:
    """Open an object to look at it. One of a cache is not fetched: its source is looked at.

    If that is on tape, or it is not written to its source yet, its near copy is.

    Raises:
        NotFoundError, AccessError, SourceError: If it cannot be opened.
    """
    cache = caches_of([name]).get(name.partition(":")[0])
    if cache is None:
        return engine.open(name)
    path = name.partition(":")[2]
    near, is_unwritten = _near_name(cache.name, path)
    if near is not None and is_unwritten:
        return engine.open(near)
    try:
        return engine.open(cache.source_name(path))
    except NotFoundError:
        if near is None or not _is_on_tape(cache.source_name(path)):
            raise
        return engine.open(near)


def source_name(name: str) -> str:
    """Return the name of an object in the slow store, if it is in a cache; else its name."""
    cache = caches_of([name]).get(name.partition(":")[0])
    return name if cache is None else cache.source_name(name.partition(":")[2])


def _near_name(store: str, path: str) -> tuple[str | None, bool]:
    """Return the name of the readable copy of an object, and whether it is not written yet."""
    if not has_catalogue():
        return None, False
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        copies = [each for each in catalog.near_objects(store, path) if each.state in READABLE]
    if not copies:
        return None, False
    cache = caches_of([f"{store}:"])[store]
    return cache.near_name(copies[-1].token, path), copies[-1].state == "unwritten"


def _is_on_tape(name: str) -> bool:
    from swathe.stores.staging.on_disk import places_off_disk

    place = places_off_disk([name]).get(name)
    return place is not None and place.locality != "lost"
