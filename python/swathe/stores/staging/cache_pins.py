"""Pins of objects that are staged for a cache: they move there with the object."""

from __future__ import annotations

import warnings
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.stores.registry import tape_objects
from swathe.stores.staging.stager import SERVICE_FAULTS
from swathe.stores.staging.store_staging import StoreStaging

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.cache_settings import CacheSettings


def owner_for(user: str, cache: str) -> str:
    """Return the owner of pins of a user at the source of a cache."""
    return f"{user} {cache}:"


def user_of(owner: str, cache: str) -> str | None:
    """Return whose pins these are, if they are for a cache; else `None`."""
    user, blank, name = owner.rpartition(" ")
    return user if blank and name == f"{cache}:" else None


def move_pins(catalog: Catalog, cache: CacheSettings, path: str) -> None:
    """Pin the new copy of an object for those who had it staged for this cache.

    Its source is released. If the service cannot be told, its pins end by time.
    """
    place = tape_objects([cache.source_name(path)]).get(cache.source_name(path))
    if place is None:
        return
    now = datetime.now(UTC)
    for pin in catalog.stage_pins(place.store, "", [place.path]):
        user, left_s = user_of(pin.owner, cache.name), (pin.expires_at - now).total_seconds()
        if user is None or left_s <= 0:
            continue
        catalog.pin_near_objects(cache.name, [path], user, left_s)
        try:
            staging = StoreStaging(catalog, catalog.store(place.store), pin.owner, left_s)
            with closing(staging):
                staging.release([place.path])
        except SERVICE_FAULTS as error:
            warnings.warn(f"{place.name}: it could not be released: {error}", stacklevel=1)
