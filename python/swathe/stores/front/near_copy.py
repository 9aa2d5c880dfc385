"""Copies between the slow and the near store of a cache, verified; and their removal."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core import errors
from swathe.core.errors import SwatheError
from swathe.stores.registry import tape_stores

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.cache_settings import CacheSettings
    from swathe.catalog.records.caches import NearObject

POLL_S = 0.2
INODE = re.compile(r"-ino:\d+$")


def stable_version(settings: CacheSettings, version: str) -> str:
    """Return a version of a source as it is compared: a file staged anew has another inode."""
    return INODE.sub("", version) if settings.source.partition(":")[0] in tape_stores() else version


def copy_whole(
    engine: _swathe.Stores, source: str, version: str | None, target: str, replace: bool
) -> str:
    """Copy an object as `cp` does, from server to server where both can; return its version.

    Args:
        engine: the stores.
        source: name of the object.
        version: version that it must have; `None`: any.
        target: name of the copy.
        replace: whether an object of this name is replaced.

    Raises:
        SwatheError: If it cannot be read or written, or has another version; by its class.
    """
    copies = _swathe.Copies([(source, version, target, replace)], 1, engine)
    try:
        while (outcomes := copies.poll(POLL_S)) is not None:
            for outcome in outcomes:
                if outcome.kind is None:
                    return outcome.version
                raise getattr(errors, outcome.kind)(outcome.reason)
    finally:
        copies.cancel()
    raise SwatheError(f"{source}: the copy to {target} was stopped")


def remove_copy(engine: _swathe.Stores, settings: CacheSettings, copy: NearObject) -> None:
    """Remove a copy from the near store, and what a process that was killed left of it.

    Raises:
        OutputError, AccessError, SourceError: If it cannot be removed.
    """
    engine.remove(settings.near_name(copy.token, copy.path))
    if copy.near_version is None:
        folder = settings.near_name(copy.token, "")
        listing = engine.list(folder, with_hidden=True, may_lack=True)
        while (page := listing.next_page()) is not None:
            for path, *_ in page:
                engine.remove(_name_below(settings.near, folder, path))
    _remove_folders(engine, settings, copy)


def _name_below(near: str, folder: str, path: str) -> str:
    """Return the name of an object in a listing, whose paths begin at the root of its store."""
    if near.startswith("/"):
        return f"{folder}{path.rpartition(folder)[2]}" if folder in path else f"/{path.lstrip('/')}"
    return f"{near.partition(':')[0]}:{path}"


def _remove_folders(engine: _swathe.Stores, settings: CacheSettings, copy: NearObject) -> None:
    """Remove the empty folders that a copy lay in, of a store that is a folder."""
    path = engine.local_path(settings.near_name(copy.token, copy.path))
    top = engine.local_path(settings.near_name(copy.token, "x"))
    if path is None or top is None:
        return
    with suppress(OSError):  # not empty, or another has removed it
        folder = path.parent
        while folder != top.parent.parent:
            folder.rmdir()
            folder = folder.parent


def remove_copies(
    catalog: Catalog,
    engine: _swathe.Stores,
    settings: CacheSettings,
    claims: list[NearObject],
    *,
    is_eviction: bool,
) -> int:
    """Remove copies that are claimed, and forget them; return their bytes."""
    free_bytes = 0
    for copy in claims:
        remove_copy(engine, settings, copy)
        catalog.end_removal(copy.id, is_eviction=is_eviction)
        free_bytes += copy.bytes
    return free_bytes
