"""Whether objects can be read now, or are on tape: asked before they are opened.

An open of an object on tape would wait for hours, or fetch it without its neighbours.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from swathe.catalog.records.caches import READABLE
from swathe.core.errors import OnTapeError
from swathe.stores.registry import caches_of, has_catalogue, tape_objects, tape_stores
from swathe.stores.staging.stager import SERVICE_FAULTS, divide

if TYPE_CHECKING:
    from swathe.stores.staging.stager import ObjectPlace

VALID_S = 10.0
"""Seconds that an object is taken to be on disk, after it was found there."""
MOST_NAMES = 100_000
_on_disk: dict[str, float] = {}
"""Objects that were on disk, and when."""


def places_off_disk(
    names: Iterable[str], silent: dict[str, str] | None = None
) -> dict[str, ObjectPlace]:
    """Return where those of some objects are that cannot be read now; services are asked in bulk.

    Args:
        names: names, paths or URLs of objects. Only those in stores whose objects are staged are
            looked for, and those of caches of such stores that have no copy.
        silent: receives the stores whose service fails, each with the reason; without it that is
            an error.

    Raises:
        StagingError, AccessError: If a staging service fails.
        CatalogError: If a catalogue exists but cannot be read.
    """
    all_names = list(dict.fromkeys(names))
    sources = uncached_sources(all_names)
    places = _places_off_disk([*all_names, *sources], silent)
    off_disk = {name: places[name] for name in all_names if name in places}
    return off_disk | {name: places[each] for each, name in sources.items() if each in places}


def uncached_sources(names: Sequence[str]) -> dict[str, str]:
    """Return the sources of objects that a cache has no copy of, each with the name there.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    caches = caches_of(names)
    if not caches:
        return {}
    sources: dict[str, str] = {}
    copies: dict[str, set[str]] = {}
    if has_catalogue():
        from swathe.catalog import Catalog

        only = names[0].partition(":")[2] if len(names) == 1 else None
        with Catalog.open() as catalog:
            for store in caches:
                of_store = catalog.near_objects(store, only)
                copies[store] = {each.path for each in of_store if each.state in READABLE}
    for name in names:
        store, _, path = name.partition(":")
        if store in caches and path not in copies.get(store, ()):
            sources[caches[store].source_name(path)] = name
    return sources


def _places_off_disk(names: Sequence[str], silent: dict[str, str] | None) -> dict[str, ObjectPlace]:
    objects = tape_objects(names)
    if not objects:
        return {}
    from swathe.stores.staging.stagers import stager_of

    by_store: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, place in objects.items():
        if not _was_on_disk(place.name):
            by_store[place.store][place.path].append(name)
    off_disk: dict[str, ObjectPlace] = {}
    stores = tape_stores()
    for store, paths in by_store.items():
        try:
            with closing(stager_of(stores[store])) as stager:
                for part in divide(list(paths), stager.most_paths):
                    for path, place_of_it in stager.locate(part).items():
                        if place_of_it.locality == "disk":
                            note_on_disk([f"{store}:{path}"])
                        else:
                            off_disk |= dict.fromkeys(paths[path], place_of_it)
        except SERVICE_FAULTS as error:
            if silent is None:
                raise
            silent[store] = str(error)
    return off_disk


def faults_on_tape(names: Iterable[str]) -> dict[str, str]:
    """Return which of some objects cannot be read now, and why, as `places_off_disk`.

    Raises:
        StagingError: If a staging service fails.
        CatalogError: If a catalogue exists but cannot be read.
    """
    return {name: fault_text(name, place) for name, place in places_off_disk(names).items()}


def check_on_disk(name: str) -> None:
    """Check that an object can be read now.

    Raises:
        OnTapeError: If it is on tape only, or lost.
        StagingError: If its staging service fails.
        CatalogError: If a catalogue exists but cannot be read.
    """
    if fault := faults_on_tape([name]).get(name):
        raise OnTapeError(fault)


def forget_places(names: Iterable[str] | None = None) -> None:
    """Forget that objects were on disk; by default of all."""
    if names is None:
        _on_disk.clear()
    for name in names or ():
        _on_disk.pop(name, None)


def _was_on_disk(name: str) -> bool:
    return time.monotonic() - _on_disk.get(name, -VALID_S) < VALID_S


def note_on_disk(names: Iterable[str]) -> None:
    """Note that objects, `NAME:path`, are on disk now, so that their services are not asked."""
    for name in names:
        if len(_on_disk) >= MOST_NAMES:
            _on_disk.clear()
        _on_disk[name] = time.monotonic()


def fault_text(name: str, place: ObjectPlace) -> str:
    """Return why an object cannot be read now, and what to do."""
    if place.locality == "nearline":
        of_store = tape_objects([name]).get(name)
        stage = f"swathe tape stage {name if of_store is None else of_store.name}"
        return f"{name}: expected an object on disk, found it on tape; stage it: {stage}"
    reason = f": {place.reason}" if place.reason else ""
    return f"{name}: expected an object on disk, found it {place.locality}{reason}"
