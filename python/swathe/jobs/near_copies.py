"""Copies in caches that jobs have pinned: their objects need not be staged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from swathe.catalog.records.caches import READABLE
from swathe.catalog.staging import SPARE
from swathe.stores.registry import caches_of, tape_sources

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.caches import NearPin


def names_near(catalog: Catalog, owner: str) -> set[str]:
    """Return the objects whose copies an owner has pinned for some time to come."""
    limit = datetime.now(UTC) + SPARE
    pins = catalog.near_pins(owner)
    return {pin.name for pin in pins if pin.owner == owner and pin.expires_at > limit}


def owners_near(catalog: Catalog, store: str, prefix: str) -> set[str]:
    """Return who has pinned copies of objects of a store; names that begin with a prefix."""
    return {pin.owner for pin in _pins_of(catalog, store, prefix)}


def keep_near(
    catalog: Catalog, store: str, owner: str, names: Iterable[str], lifetime_s: float
) -> set[str]:
    """Pin the copies that caches of a store have of some objects; return those that have one.

    Copies that are pinned for a third of the lifetime or more stay as they are. Those that are not
    needed any more are released.
    """
    limit = datetime.now(UTC) + timedelta(seconds=lifetime_s / 3)
    ends = {pin.name: pin.expires_at for pin in _pins_of(catalog, store, owner)}
    by_cache: dict[str, set[str]] = defaultdict(set)
    for name in ends:
        by_cache[name.partition(":")[0]].add(name)
    needs: dict[str, set[str]] = defaultdict(set)
    caches = caches_of(all_names := list(names))
    for name in all_names:
        if (cache := name.partition(":")[0]) in caches:
            needs[cache].add(name)
    near: set[str] = set()
    for cache in by_cache.keys() | needs.keys():
        if others := by_cache[cache] - needs[cache]:
            catalog.release_near_objects(owner, store=cache, paths=_paths(others))
        fresh = {name for name in by_cache[cache] & needs[cache] if ends[name] > limit}
        copies = catalog.near_objects(cache) if needs[cache] - fresh else []
        there = {f"{cache}:{each.path}" for each in copies if each.state in READABLE}
        due = _paths((needs[cache] - fresh) & there)
        pins = catalog.pin_near_objects(cache, due, owner, lifetime_s) if due else []
        near |= fresh.union(f"{cache}:{path}" for path in pins)
    return near


def _pins_of(catalog: Catalog, store: str, prefix: str) -> list[NearPin]:
    pins = catalog.near_pins(prefix)
    sources = tape_sources(pin.name for pin in pins)
    return [pin for pin in pins if pin.name in sources and sources[pin.name].store == store]


def _paths(names: Iterable[str]) -> list[str]:
    return sorted(name.partition(":")[2] for name in names)
