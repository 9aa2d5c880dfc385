"""A store of kind `cache:`: whole objects of a slow store, kept on a near one.

The engine asks where an object lies, and reads and writes there. An object that has no near copy is
first fetched whole. Others that ask for it meanwhile wait for this copy.
"""

from __future__ import annotations

import atexit
import secrets
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog.cache_settings import CACHE_URL, CacheSettings
from swathe.catalog.records.caches import READABLE
from swathe.core.errors import ChangedError, NotFoundError, SourceError, SwatheError
from swathe.core.format import size_text
from swathe.core.host import process_name
from swathe.stores.front.near_copy import copy_whole, remove_copies, stable_version
from swathe.stores.front.near_writer import (
    NearWriter,
    SourceWriter,
    forget_copies,
    write_back,
)
from swathe.stores.front.readers import Readers
from swathe.stores.front.room import make_room
from swathe.stores.protocol import StoredObject
from swathe.stores.registry import has_catalogue, native_stores, tape_objects, tape_stores
from swathe.stores.staging.cache_pins import move_pins
from swathe.stores.staging.on_disk import fault_text, forget_places, places_off_disk
from swathe.stores.staging.stager import ObjectPlace

if TYPE_CHECKING:
    from swathe import _swathe
    from swathe.catalog import Catalog
    from swathe.catalog.records.caches import NearObject

STORES_S = 5.0
"""Seconds for which the stores of the catalogue are not read again."""
WAIT_S, ROOM_WAIT_S = 0.1, 5.0
"""Seconds between looks at another process, and for room that readers may give back."""
MOST_TRIES = 3


class CacheStore:
    """The objects of a cache; see `swathe.stores.protocol.FrontStore` for the methods."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        """Prepare a cache.

        Args:
            root: `cache://NAME`.
            options: its options, as the catalogue has them.
        """
        self.settings = CacheSettings.of(root.removeprefix(f"{CACHE_URL}//"), options)
        self._has_catalogue = has_catalogue()
        self._engine: _swathe.Stores | None = None
        self._engine_s = 0.0
        if self._has_catalogue:
            from swathe.catalog import Catalog

            self._catalog: Catalog = Catalog.open()
            self._readers = Readers(self._catalog, self.settings.name)
            atexit.register(self._end)

    @property
    def engine(self) -> _swathe.Stores:
        """Return the stores of the catalogue. Uses of objects change it, not the stores."""
        if self._engine is None or time.monotonic() - self._engine_s > STORES_S:
            self._engine, self._engine_s = native_stores(), time.monotonic()
        return self._engine

    def open_source(self, path: str) -> _swathe.Source:
        """Open the near copy of an object, after fetching it if there is none.

        If the near store fails, or has no room, the object is opened at its source, with a warning.

        Raises:
            NotFoundError: If there is no such object.
            OnTapeError: If it has to be staged first.
        """
        if not self._has_catalogue:
            return self.engine.open(self.settings.source_name(path))
        for _ in range(MOST_TRIES):
            copy = self._catalog.use_near_object(self.settings.name, path, process_name())
            if copy is not None and (source := self._open_copy(copy)) is not None:
                return source
            try:
                return self._fetch(path)
            except ChangedError:
                continue  # it changed while it was copied
        name = f"{self.settings.name}:{path}"
        raise ChangedError(f"{name}: expected one version, found that it changes again and again")

    def _open_copy(self, copy: NearObject) -> _swathe.Source | None:
        """Open a copy that is pinned; `None` if it is of an older version, or lost.

        Raises:
            SourceError: If it is lost, and was not written to its source.
            NotFoundError: If its source was removed.
        """
        name = self.settings.near_name(copy.token, copy.path)
        is_unwritten = copy.state == "unwritten"
        try:
            if not is_unwritten and not self._is_current(copy):
                self._catalog.check_near_object(copy.id, None)
                self._readers.release(copy.id)
                return None
            source = self.engine.open(name)
            if source.version != copy.near_version:
                raise NotFoundError(f"{name}: expected the copy, found another object")
        except NotFoundError as error:
            self._readers.release(copy.id)
            if is_unwritten:
                raise SourceError(
                    f"{self.settings.name}:{copy.path}: expected its only copy, found none: {error}"
                ) from error
            self._catalog.check_near_object(copy.id, None)
            return None
        except SwatheError as error:
            self._readers.release(copy.id)
            if is_unwritten:
                raise
            return self._past(copy.path, f"the near store fails: {error}")
        self._readers.add(copy.id, source, is_hit=True, fetched_bytes=0)
        return source

    def _is_current(self, copy: NearObject) -> bool:
        """Return whether the source still has the version of a copy.

        Of an object that is on tape only, its size is compared.

        Raises:
            NotFoundError: If the source is gone.
            SwatheError: If it cannot be asked.
        """
        checked_at, now = copy.checked_at, datetime.now(UTC)
        if (
            checked_at is not None
            and 0 <= (now - checked_at).total_seconds() < self.settings.check_s
        ):
            return True
        source = self._look(copy.path)
        if isinstance(source, ObjectPlace):
            return source.locality != "lost" and source.bytes in (None, copy.bytes)
        version = stable_version(self.settings, source.version)
        if version != copy.version:
            return False
        if self.settings.check_s:
            self._catalog.check_near_object(copy.id, version)
        return True

    def _look(self, path: str) -> _swathe.Source | ObjectPlace:
        """Open an object at its source, or return where it is, if it cannot be read there now.

        Raises:
            NotFoundError: If it is gone.
        """
        name = self.settings.source_name(path)
        for is_last in (False, True):
            if place := places_off_disk([name]).get(name):
                return place
            try:
                return self.engine.open(name)
            except NotFoundError:
                # It may have left the disk since it was seen there.
                if is_last or not tape_objects([name]):
                    raise
                forget_places([name])
        raise NotFoundError(f"{name}: no such object")

    def _past(self, path: str, reason: str) -> _swathe.Source:
        """Open an object at its source, and warn."""
        source = self._open_at_source(path)
        name = self.settings.source_name(path)
        warnings.warn(f"{self.settings.name}:{path}: read from {name}: {reason}", stacklevel=1)
        return source

    def _open_at_source(self, path: str) -> _swathe.Source:
        """Open an object at its source.

        Raises:
            SourceError: If it is on tape only.
        """
        source = self._look(path)
        if not isinstance(source, ObjectPlace):
            return source
        if source.locality == "lost":
            name = self.settings.source_name(path)
            raise NotFoundError(f"{name}: {source.reason or 'no such object'}")
        raise SourceError(fault_text(f"{self.settings.name}:{path}", source))

    def _fetch(self, path: str) -> _swathe.Source:
        """Fetch an object whole, and open it.

        Raises:
            ChangedError: If it changes meanwhile.
        """
        begin_s = time.monotonic()
        source = self._open_at_source(path)
        size, limit = source.size, self.settings.limit_bytes
        if size > limit:
            return self._past(
                path, f"it has {size_text(size)}, the cache at most {size_text(limit)}"
            )
        version = stable_version(self.settings, source.version)
        waits_since_s = time.monotonic()
        while True:
            token = secrets.token_hex(8)
            claim = self._catalog.claim_room(
                self.settings.name, path, token, "fetching", size, version, process_name(), limit
            )
            if claim.id is not None:
                return self._copy(path, claim.id, token, source.version, begin_s)
            if claim.has_rival:
                copy = self._catalog.use_near_object(self.settings.name, path, process_name())
                if copy is not None and (near := self._open_copy(copy)) is not None:
                    return near
                time.sleep(WAIT_S)
                continue
            try:
                free_bytes = self._make_room(claim.lacking_bytes)
            except SwatheError as error:
                return self._past(path, f"no room could be made near: {error}")
            if not free_bytes:
                if time.monotonic() - waits_since_s > ROOM_WAIT_S:
                    return self._past(path, "all objects of the cache are pinned or being read")
                time.sleep(WAIT_S)

    def _make_room(self, lacking_bytes: int) -> int:
        """Evict objects, and write back those that wait for it; return the bytes that are free."""
        self._readers.sweep()
        free_bytes = make_room(self._catalog, self.engine, self.settings, lacking_bytes)
        if free_bytes:
            return free_bytes
        written_bytes = 0
        for copy in self._catalog.near_objects(self.settings.name):
            if copy.state == "unwritten" and written_bytes < lacking_bytes:
                with_us = write_back(self._catalog, self.engine, self.settings, self._readers, copy)
                written_bytes += copy.bytes if with_us else 0
        return written_bytes

    def _copy(
        self, path: str, number: int, token: str, version: str, begin_s: float
    ) -> _swathe.Source:
        """Copy an object to the room that is claimed for it, and open it."""
        name, source_name = self.settings.near_name(token, path), self.settings.source_name(path)
        owner = process_name()
        with self._readers:
            try:
                copy_whole(self.engine, source_name, version, name, True)
                near = self.engine.open(name)
                seconds = time.monotonic() - begin_s
                stable = stable_version(self.settings, version)
                is_ours = self._catalog.finish_near_object(
                    number, owner, "cached", stable, near.version, seconds
                )
            except BaseException as error:
                claims = self._catalog.drop_claim(number, owner)
                with suppress(SwatheError):  # it is removed later, as of a killed process
                    remove_copies(
                        self._catalog, self.engine, self.settings, claims, is_eviction=False
                    )
                if isinstance(error, SwatheError) and not isinstance(error, ChangedError):
                    return self._past(path, f"it could not be copied near: {error}")
                raise
        if not is_ours:
            return self._past(path, "its room was given to another, as this process stood still")
        self._readers.add(number, near, is_hit=False, fetched_bytes=near.size)
        move_pins(self._catalog, self.settings, path)
        return near

    def begin_write(self, path: str, size: int) -> NearWriter | SourceWriter:
        """Begin to write an object near, or to its source if it is larger than the cache.

        Raises:
            NotImplementedError: If nothing can be written to the source.
        """
        name = self.settings.source_name(path)
        if not self.engine.is_writable(name):
            raise NotImplementedError(
                f"{name}: cannot be written: the store of the cache is read only"
            )
        if not self._has_catalogue:
            raise NotImplementedError(f"{self.settings.name}: expected a catalogue, found none")
        limit, begin_s = self.settings.limit_bytes, time.monotonic()
        while size <= limit:
            token = secrets.token_hex(8)
            claim = self._catalog.claim_room(
                self.settings.name, path, token, "writing", size, "", process_name(), limit
            )
            if claim.id is not None:
                near = self.settings.near_name(token, path)
                return NearWriter(
                    self._catalog, self.engine, self.settings, self._readers, path, claim.id, near
                )
            if not self._make_room(claim.lacking_bytes):
                if time.monotonic() - begin_s > ROOM_WAIT_S:
                    break
                time.sleep(WAIT_S)
        return SourceWriter(self._catalog, self.engine, self.settings, path, name)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects of the source; those not written there, and those on tape, as near."""
        entries = self._near_entries(prefix)
        yield from entries
        place, near = self.settings.source, {each.path for each in entries}
        top = place.partition(":")[2]
        listing = self.engine.list(f"{place}{prefix}", with_hidden=True, may_lack=True)
        while (page := listing.next_page()) is not None:
            for path, size, time_text, etag, why in page:
                below = path.removeprefix(top)
                if why is not None:
                    raise SourceError(f"{self.settings.source_name(below)}: {why}")
                if below not in near:
                    yield StoredObject(below, size or 0, etag or "", time_text)

    def _near_entries(self, prefix: str) -> Sequence[StoredObject]:
        if not self._has_catalogue:
            return []
        on_tape = self.settings.source.partition(":")[0] in tape_stores()
        states = READABLE if on_tape else ("unwritten",)
        return [
            StoredObject(each.path, each.bytes, "", each.used_at.isoformat())
            for each in self._catalog.near_objects(self.settings.name)
            if each.state in states
            and (not prefix or each.path == prefix or each.path.startswith(f"{prefix}/"))
        ]

    def remove(self, path: str) -> None:
        """Remove an object from its source, then its copies."""
        self.engine.remove(self.settings.source_name(path))
        if self._has_catalogue:
            forget_copies(self._catalog, self.engine, self.settings, path)

    def flush(self) -> tuple[int, dict[str, str]]:
        """Write all objects to their source that are not yet; return how many, and the faults."""
        count, faults = 0, {}
        for copy in self._catalog.near_objects(self.settings.name):
            if copy.state != "unwritten":
                continue
            try:
                count += write_back(self._catalog, self.engine, self.settings, self._readers, copy)
            except SwatheError as error:
                faults[f"{self.settings.name}:{copy.path}"] = str(error)
        return count, faults

    def clear(self) -> tuple[int, int]:
        """Remove copies that nobody needs and that are written; return how many, and the rest."""
        self._readers.sweep()
        copies = self._catalog.near_objects(self.settings.name)
        left = self._remove(copies)
        return len(copies) - len(left), len(left)

    def evict(self, paths: Collection[str] | None) -> dict[str, str]:
        """Remove copies of some objects, by default of all; return why some stay, by path.

        Raises:
            OutputError, AccessError, SourceError: If a copy cannot be removed.
        """
        self._readers.sweep()
        copies = self._catalog.near_objects(self.settings.name)
        left = self._remove([each for each in copies if paths is None or each.path in paths])
        flush_first = "it is not written to its store yet: flush it first"
        in_use = "it is pinned, or being read"
        return {each.path: flush_first if each.state == "unwritten" else in_use for each in left}

    def _remove(self, copies: Sequence[NearObject]) -> Sequence[NearObject]:
        """Remove copies; return those that somebody needs, or that are not written."""
        numbers = [each.id for each in copies]
        claims = self._catalog.begin_removal(numbers, process_name(), force=False)
        remove_copies(self._catalog, self.engine, self.settings, claims, is_eviction=False)
        ids = {each.id for each in claims}
        return [each for each in copies if each.id not in ids]

    def _end(self) -> None:
        """Release what this process has pinned, and write its counts."""
        with suppress(SwatheError):  # its pins end by themselves
            self._readers.sweep()
            self._catalog.release_near_objects(process_name(), store=self.settings.name)
            self._catalog.close()
