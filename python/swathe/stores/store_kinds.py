"""The stores that are written in Python: databases, caches, and schemes that packages add."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import TypeAlias

from swathe.core.errors import StoreSettingsError
from swathe.core.paths import default_url
from swathe.core.store_schemes import CACHE, DATABASE, find_entry_point, package_of, scheme_of
from swathe.stores.protocol import FrontStore, ObjectStore

Factory: TypeAlias = Callable[[str, dict[str, str]], ObjectStore | FrontStore]
MOST_STORES = 100
"""Stores that are kept; with more, they are created anew."""

_stores: dict[tuple[object, ...], ObjectStore | FrontStore] = {}


def store_at(root: str, options: Mapping[str, str]) -> ObjectStore | FrontStore | None:
    """Return the store with this URL; None if no package adds its scheme.

    Each process has one of its own. Threads that ask for the first time at the same moment may
    create several, of which one is kept.

    Raises:
        StoreSettingsError: If the package that adds the scheme cannot be imported, or returns
            something else than a store.
    """
    key: tuple[object, ...] = (os.getpid(), root, *sorted(options.items()))
    if scheme_of(root) == CACHE:
        key = (*key, default_url())  # it has its state in the catalogue
    store = _stores.get(key)
    if store is None:
        factory = _factory_of(scheme_of(root))
        if factory is None:
            return None
        if len(_stores) >= MOST_STORES:
            _stores.clear()
        store = _stores.setdefault(key, factory(root, dict(options)))
    return store


def _factory_of(scheme: str) -> Factory | None:
    if scheme == DATABASE:
        from swathe.stores.database_store import DatabaseStore

        return DatabaseStore
    if scheme == CACHE:
        from swathe.stores.front.cache_store import CacheStore

        return CacheStore
    point = find_entry_point(scheme)
    if point is None:
        return None
    make = _load(point)

    def factory(root: str, options: dict[str, str]) -> ObjectStore:
        store = make(root, options)
        if not isinstance(store, ObjectStore):
            raise StoreSettingsError(
                f"the package {package_of(point)}: expected a store with the methods of "
                f"swathe.stores.ObjectStore, found {type(store).__name__}"
            )
        return store

    return factory


def _load(point: EntryPoint) -> Factory:
    """Import what an entry point names."""
    try:
        make = point.load()
    except Exception as error:  # a package may fail in any way
        raise StoreSettingsError(
            f"the package {package_of(point)} adds the stores {point.name}://, and its "
            f"{point.value} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(make):
        raise StoreSettingsError(
            f"the package {package_of(point)}: expected that {point.value} is a class or a "
            f"function, found {type(make).__name__}"
        )
    factory: Factory = make
    return factory
