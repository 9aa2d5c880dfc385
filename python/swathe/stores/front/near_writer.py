"""Objects that are written to a cache: first near, then to their source, at once or later."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import NotFoundError, OutputExistsError, SwatheError
from swathe.core.host import process_name
from swathe.core.outputs import EXISTS
from swathe.stores.front.near_copy import copy_whole, remove_copies, stable_version
from swathe.stores.near_names import open_to_look

if TYPE_CHECKING:
    from swathe import _swathe
    from swathe.catalog import Catalog
    from swathe.catalog.cache_settings import CacheSettings
    from swathe.catalog.records.caches import NearObject, NearState
    from swathe.stores.front.readers import Readers

WAIT_S = 0.2
MOST_WAIT_S = 3600.0
"""Seconds that an object is waited for that another process writes to its source."""


@dataclass
class NearWriter:
    """An object that is written near; `number`: of its copy."""

    catalog: Catalog
    stores: _swathe.Stores
    settings: CacheSettings
    readers: Readers
    path: str
    number: int
    name: str

    def __post_init__(self) -> None:
        """Renew the claim until the end."""
        self._claim = ExitStack()
        self._claim.enter_context(self.readers)

    def finish(self, replace: bool) -> None:
        """Write the object to its source, or note in the catalogue that it is to be written."""
        settings, source = self.settings, self.settings.source_name(self.path)
        if not replace:
            refuse_existing(self.stores, f"{settings.name}:{self.path}")
        near_version = self.stores.open(self.name).version
        version, owner = "", process_name()
        if settings.write == "through":
            version = copy_whole(self.stores, self.name, near_version, source, replace)
            version = stable_version(settings, version)
        state: NearState = "cached" if settings.write == "through" else "unwritten"
        is_ours = self.catalog.finish_near_object(self.number, owner, state, version, near_version)
        self._claim.close()
        self.readers.release(self.number)
        if not is_ours and settings.write == "back":
            raise SwatheError(
                f"{settings.name}:{self.path}: expected the claim of its room to last until it was "
                "written, found that it was lost: write it again"
            )

    def abort(self) -> None:
        """Remove what was written."""
        self._claim.close()
        self.readers.release(self.number)
        claims = self.catalog.drop_claim(self.number, process_name())
        remove_copies(self.catalog, self.stores, self.settings, claims, is_eviction=False)


@dataclass
class SourceWriter:
    """An object that is written to its source, as the cache has no room for it."""

    catalog: Catalog
    stores: _swathe.Stores
    settings: CacheSettings
    path: str
    name: str

    def finish(self, replace: bool) -> None:
        """Forget older copies: the object has its name."""
        del replace
        forget_copies(self.catalog, self.stores, self.settings, self.path)

    def abort(self) -> None:
        """Do nothing: the store of the source removes what was written."""


def refuse_existing(engine: _swathe.Stores, name: str) -> None:
    """Check that there is no object of a name.

    Raises:
        OutputExistsError: If there is one.
    """
    try:
        open_to_look(engine, name)
    except NotFoundError:
        return
    raise OutputExistsError(f"{name}: {EXISTS}")


def forget_copies(
    catalog: Catalog, engine: _swathe.Stores, settings: CacheSettings, path: str
) -> int:
    """Remove all copies of an object; return their number."""
    numbers = [each.id for each in catalog.near_objects(settings.name, path)]
    claims = catalog.begin_removal(numbers, process_name(), force=True)
    remove_copies(catalog, engine, settings, claims, is_eviction=False)
    return len(numbers)


def write_back(
    catalog: Catalog,
    engine: _swathe.Stores,
    settings: CacheSettings,
    readers: Readers,
    copy: NearObject,
) -> bool:
    """Write an object to its source; return whether it was done here.

    Raises:
        SwatheError: If it cannot be written; it stays, and is written later.
    """
    owner = process_name()
    begin_s = time.monotonic()
    while (claim := catalog.begin_write_back(copy.id, owner)) is None:
        states = {each.id: each.state for each in catalog.near_objects(settings.name, copy.path)}
        if states.get(copy.id) != "unwritten" or time.monotonic() - begin_s > MOST_WAIT_S:
            return False
        time.sleep(WAIT_S)
    version = None
    try:
        with readers:
            near = settings.near_name(claim.token, claim.path)
            source = settings.source_name(claim.path)
            version = copy_whole(engine, near, claim.near_version, source, True)
            version = stable_version(settings, version)
    finally:
        catalog.end_write_back(copy.id, owner, version)
        readers.release(copy.id)
    return True
