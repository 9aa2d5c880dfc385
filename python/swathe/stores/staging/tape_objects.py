"""Stage objects of stores, show how far they are, and release them: `swathe.stores`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog.records.staging import IN_PROGRESS, StageFile
from swathe.core.argument_checks import check_texts
from swathe.core.errors import OptionError, SwatheError
from swathe.core.format import count_text
from swathe.core.host import this_host
from swathe.stores.registry import caches_of, native_stores, tape_objects, tape_stores
from swathe.stores.staging.cache_pins import owner_for, user_of
from swathe.stores.staging.on_disk import forget_places, uncached_sources
from swathe.stores.staging.stage_costs import StageCosts, StageParts
from swathe.stores.staging.stage_wait import wait_for_objects
from swathe.stores.staging.stager import SERVICE_FAULTS
from swathe.stores.staging.store_staging import StoreStaging

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Store
    from swathe.catalog.cache_settings import CacheSettings


@dataclass(frozen=True)
class StagedObjects:
    """Objects that were asked for.

    Attributes:
        files: the objects as they are now.
        faults: why some cannot be had, by name.
    """

    files: list[StageFile]
    faults: dict[str, str]


@dataclass(frozen=True)
class TapeStatus:
    """What is to come to the disk of a store.

    Attributes:
        store: name of the store.
        files: all objects that were asked for, those asked for first first.
        bytes_per_s: rate at which objects came since the oldest that is to come was asked for;
            `None` if none came.
        left_bytes: size of the objects that are to come; `None` if a size is not known.
        earliest_s: seconds until all have come at this rate; `None` if it is not known.
        fault: why the staging service could not be asked; then all is as it was known before.
        parts: parts of the time of earlier requests; `None` if there were too few.
    """

    store: str
    files: list[StageFile]
    bytes_per_s: float | None
    left_bytes: int | None
    earliest_s: float | None
    fault: str | None = None
    parts: StageParts | None = None


def stage_objects(
    names: str | Sequence[str],
    *,
    lifetime_s: float | None = None,
    wait: bool = False,
    patience_s: float | None = None,
    report: Callable[[list[StageFile]], object] | None = None,
) -> StagedObjects:
    """Ask for objects on tape, ordered by medium and position, and pin them on disk.

    An object that was asked for already is not asked for again.

    Example:
        >>> swathe.stores.stage_objects("tape:2026/frame-0001.fits", wait=True)

    Args:
        names: `NAME:path` of objects in stores whose objects are staged, or in caches of such
            stores. Those are pinned in the cache once they are there: at the end of `wait`, else
            when they are first read.
        lifetime_s: seconds that they stay on disk once they have come; by default the option
            `staging_lifetime` of the store.
        wait: whether to wait until all have come or failed.
        patience_s: seconds without any progress after which waiting ends with an error; the
            requests stay. By default time in the queue has no limit.
        report: function that is called after each look while waiting, with the objects of a store.

    Raises:
        OptionError: If an object is in no such store, or a whole store is named.
        StagingError: If a staging service fails or refuses, or there is no progress; objects of
            other stores are staged nevertheless.
        AccessError: If a service refuses access; as before.
        CatalogError: If the catalogue cannot be used.
    """
    from swathe.catalog import Catalog

    all_names = check_texts("names", names)
    sources = uncached_sources(all_names)
    with Catalog.open() as catalog, _all_services() as service, ExitStack() as stack:
        parts = []
        caches = caches_of(all_names)
        on_tape = [name for name in all_names if name.partition(":")[0] not in caches]
        by_owner = {_user(): on_tape}
        for source in tape_objects(sources):
            owner = owner_for(_user(), sources[source].partition(":")[0])
            by_owner.setdefault(owner, []).append(source)
        for owner, of_owner in by_owner.items():
            for store, paths in _by_store(catalog, of_owner):
                _check_objects(store, paths)
                with service():
                    staging = _staging(catalog, store, lifetime_s, owner)
                    stack.enter_context(closing(staging))
                    parts.append((staging, paths, staging.stage(paths)))
        faults: dict[str, str] = {}
        files: list[StageFile] = []
        for staging, paths, refusals in parts:
            name = staging.store.name
            sound = [path for path in paths if path not in refusals]
            with service():
                failures = (
                    wait_for_objects(staging, sound, patience_s=patience_s, report=report)
                    if wait
                    else {}
                )
                faults |= {f"{name}:{path}": why for path, why in (refusals | failures).items()}
                files += catalog.stage_files(name, sound)
        if caches:
            _pin_near(catalog, all_names, sources, faults, lifetime_s, wait)
    return StagedObjects(files, faults)


def _pin_near(
    catalog: Catalog,
    names: Sequence[str],
    sources: Mapping[str, str],
    faults: Mapping[str, str],
    lifetime_s: float | None,
    wait: bool,
) -> None:
    """Fetch objects of caches that have come, and pin their copies."""
    from swathe.catalog.staging_settings import DEFAULT_LIFETIME_S

    missing = {name for source, name in sources.items() if source in faults or not wait}
    engine, seconds = native_stores(), lifetime_s or DEFAULT_LIFETIME_S
    for store in caches_of(names):
        of_store = [name for name in names if name.partition(":")[0] == store]
        for name in of_store:
            if name not in missing:
                engine.open(name)
        paths = [name.partition(":")[2] for name in of_store]
        catalog.pin_near_objects(store, paths, _user(), seconds)


def release_objects(names: str | Sequence[str], *, of_all: bool = False) -> int:
    """Remove the pins of this user, so that objects may leave the disk; return how many may.

    Example:
        >>> swathe.stores.release_objects("tape:2026/frame-0001.fits")

    Args:
        names: `NAME:path` of objects, or `NAME:` for all of a store.
        of_all: whether to remove the pins of everybody.

    Raises:
        OptionError: If an object is in no store whose objects are staged.
        StagingError, AccessError: If a staging service fails or refuses access; the pins are
            removed, and other services are told.
        CatalogError: If the catalogue cannot be used.
    """
    from swathe.catalog import Catalog

    count = 0
    with Catalog.open() as catalog, _all_services() as service:
        all_names = check_texts("names", names)
        caches = caches_of(all_names)
        for cache in caches:
            paths = [name.partition(":")[2] for name in all_names if name.startswith(f"{cache}:")]
            owner, some = None if of_all else _user(), None if "" in paths else paths
            count += catalog.release_near_objects(owner, store=cache, paths=some)
            with service():
                count += _release_sources(catalog, caches[cache], some, of_all=of_all)
        on_tape = [name for name in all_names if name.partition(":")[0] not in caches]
        for store, paths in _by_store(catalog, on_tape):
            with service(), closing(_staging(catalog, store, None)) as staging:
                count += staging.release(None if "" in paths else paths, of_all=of_all)
    return count


def _release_sources(
    catalog: Catalog, cache: CacheSettings, paths: Sequence[str] | None, *, of_all: bool
) -> int:
    """Release objects that were staged for a cache and have not been read from there yet."""
    tape = tape_stores().get(cache.source.partition(":")[0])
    if tape is None:
        return 0
    some = None
    if paths is not None:
        some = [cache.source_name(path).partition(":")[2] for path in paths]
    ours = {owner_for(_user(), cache.name)}
    if of_all:
        ours = {pin.owner for pin in catalog.stage_pins(tape.name, "")}
        ours = {owner for owner in ours if user_of(owner, cache.name) is not None}
    count = 0
    for owner in sorted(ours):
        with closing(_staging(catalog, tape, None, owner)) as staging:
            count += staging.release(some)
    return count


def evict_from_tape(names: Sequence[str]) -> dict[str, str]:
    """Remove objects from the disk of their staging services; return why some stay.

    Raises:
        OptionError: If an object is in no store whose objects are staged.
        StagingError, AccessError: If a staging service fails, refuses, or has no way to do it;
            other services are told.
        CatalogError: If the catalogue cannot be used.
    """
    from swathe.catalog import Catalog

    reasons: dict[str, str] = {}
    with Catalog.open() as catalog, _all_services() as service:
        for store, paths in _by_store(catalog, names):
            _check_objects(store, paths)
            pins = {file.path: file.pins for file in catalog.stage_files(store.name, paths)}
            for path in paths:
                if pins.get(path):
                    times = count_text(pins[path], "time")
                    reasons[f"{store.name}:{path}"] = f"it is pinned {times}: release it first"
            free = [path for path in paths if not pins.get(path)]
            with service(), closing(_staging(catalog, store, None)) as staging:
                staging.release(free)
                staging.evict(free)
                forget_places()
    return reasons


def _check_objects(store: Store, paths: Sequence[str]) -> None:
    if "" in paths:
        raise OptionError(
            f"{store.name}: expected objects, NAME:path, a table of them, or a dataset or run, "
            "found the whole store"
        )


def tape_status(store: str | None = None) -> list[TapeStatus]:
    """Ask the staging services how far objects are; return this by store.

    Example:
        >>> [status.earliest_s for status in swathe.stores.tape_status()]

    Args:
        store: name of a store; by default all whose objects are staged.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If its objects are not staged.
        CatalogError: If the catalogue cannot be used.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        if store is not None:
            stores = [_tape_store(catalog, store)]
        else:
            stores = [each for each in catalog.stores() if each.is_staged]
        return [_status(catalog, each) for each in stores]


def bound_s(catalog: Catalog, store: str, files: int, size: int, media: int = 1) -> float | None:
    """Return the seconds that staging takes at most if the queue is empty; `None` if unknown."""
    return StageCosts(catalog.stage_outcomes(store)).at_most_s(files, size, media)


def _status(catalog: Catalog, store: Store) -> TapeStatus:
    fault = None
    try:
        with closing(_staging(catalog, store, None)) as staging:
            files = staging.refresh()
    except SERVICE_FAULTS as error:
        fault, files = str(error), catalog.stage_files(store.name)
    pending = [file for file in files if file.state in IN_PROGRESS]
    parts = StageCosts(catalog.stage_outcomes(store.name)).parts()
    if not pending:
        return TapeStatus(store.name, files, None, 0, None, fault, parts)
    begin = min(file.began_at for file in pending)
    arrivals = [file for file in files if file.ended_at is not None and file.ended_at > begin]
    come_bytes = sum(file.bytes or 0 for file in arrivals if file.state == "disk")
    seconds = (datetime.now(UTC) - begin).total_seconds()
    rate = come_bytes / seconds if come_bytes and seconds > 0 else None
    sizes = [file.bytes for file in pending if file.bytes is not None]
    left = sum(sizes) if len(sizes) == len(pending) else None
    earliest_s = left / rate if left is not None and rate is not None else None
    return TapeStatus(store.name, files, rate, left, earliest_s, fault, parts)


@contextmanager
def _all_services() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Give a context for each service; the first error of one is raised when all were asked."""
    errors: list[SwatheError] = []

    @contextmanager
    def service() -> Iterator[None]:
        try:
            yield
        except SERVICE_FAULTS as error:
            errors.append(error)

    yield service
    if errors:
        raise errors[0]


def _by_store(catalog: Catalog, names: Sequence[str]) -> list[tuple[Store, list[str]]]:
    """Return the stores of objects, and their paths.

    Raises:
        OptionError: If an object is in no store whose objects are staged.
    """
    paths: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        store, colon, path = name.partition(":")
        if not colon:
            raise OptionError(f"{name}: expected NAME:path of an object in a store")
        paths[store].append(path)
    return [(_tape_store(catalog, name), paths[name]) for name in paths]


def _tape_store(catalog: Catalog, name: str) -> Store:
    store = catalog.store(name)
    if "staging" not in store.options:
        raise OptionError(
            f"store {name}: expected one whose objects are staged (option staging), found none"
        )
    return store


def _staging(
    catalog: Catalog, store: Store, lifetime_s: float | None, owner: str | None = None
) -> StoreStaging:
    from swathe.catalog.staging_settings import DEFAULT_LIFETIME_S

    if lifetime_s is None:
        lifetime_s = float(store.options.get("staging_lifetime", DEFAULT_LIFETIME_S))
    return StoreStaging(catalog, store, owner or _user(), lifetime_s)


def _user() -> str:
    """Return the owner of the pins of this user."""
    return f"uid{os.getuid()}@{this_host()}"
