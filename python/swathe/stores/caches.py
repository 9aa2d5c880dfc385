"""Write back, clear and evict from caches: `swathe.stores`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swathe.core.argument_checks import check_text, check_texts
from swathe.core.errors import NoSuchStoreError, OptionError
from swathe.stores.front.cache_store import CacheStore
from swathe.stores.objects import store_of
from swathe.stores.registry import caches_of
from swathe.stores.staging.tape_objects import evict_from_tape
from swathe.stores.store_kinds import store_at


@dataclass(frozen=True)
class CacheReport:
    """What was done with the objects of a cache.

    Attributes:
        done: number of objects that were written or removed.
        left: number of objects that stay as they were.
        faults: why some could not be written, by name.
    """

    done: int
    left: int = 0
    faults: dict[str, str] = field(default_factory=dict)


def flush(name: str) -> CacheReport:
    """Write the objects of a cache to the store that it is of, if they are not there yet.

    Example:
        >>> swathe.stores.flush("hot").done

    Args:
        name: name of the cache.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is no cache.
        CatalogError: If the catalogue cannot be used.
    """
    count, faults = _cache_of(name).flush()
    return CacheReport(count, len(faults), faults)


def clear(name: str) -> CacheReport:
    """Remove the copies of a cache, but for those pinned, being read, or not written yet.

    Example:
        >>> swathe.stores.clear("hot").left

    Args:
        name: name of the cache.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is no cache.
        OutputError, AccessError, SourceError: If a copy cannot be removed.
        CatalogError: If the catalogue cannot be used.
    """
    return CacheReport(*_cache_of(name).clear())


def evict_objects(names: str | Sequence[str]) -> dict[str, str]:
    """Remove objects from disk that nobody has pinned: copies of caches, and what was staged.

    Their copies on tape stay.

    Example:
        >>> swathe.stores.evict_objects("tape:2026/frame-0001.fits")

    Args:
        names: `NAME:path` of objects in stores whose objects are staged, or in caches.

    Returns:
        Why some stay on disk, by name: they are pinned, or in a cache only.

    Raises:
        OptionError: If an object is in no such store.
        StagingError, AccessError: If a staging service fails, refuses, or has no way to do it;
            other services are told.
        OutputError, SourceError: If a copy cannot be removed.
        CatalogError: If the catalogue cannot be used.
    """
    all_names = check_texts("names", names)
    caches = caches_of(all_names)
    reasons: dict[str, str] = {}
    for cache in caches:
        paths = {name.partition(":")[2] for name in all_names if name.startswith(f"{cache}:")}
        stay = _cache_of(cache).evict(None if "" in paths else paths)
        reasons |= {f"{cache}:{path}": reason for path, reason in stay.items()}
    others = [name for name in all_names if name.partition(":")[0] not in caches]
    return reasons | evict_from_tape(others)


def _cache_of(name: str) -> CacheStore:
    store_of(f"{check_text('name', name)}:x")
    settings = caches_of([f"{name}:"]).get(name)
    if settings is None:
        raise OptionError(f"store {name}: expected a cache, found another kind of store")
    store = store_at(settings.root, settings.options)
    if not isinstance(store, CacheStore):
        raise NoSuchStoreError(f"there is no store {name!r}; see: swathe store list")
    return store
