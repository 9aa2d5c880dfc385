"""Scan a dataset: read the headers and arrays of a store's objects into the catalogue.

A scan lists the objects, reads new and changed ones, and marks missing ones as vanished. Results
are stored every few seconds, so an interrupted scan can continue. Headers are read by several
threads; astropy is not thread-safe and processes them in one.
"""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe.catalog.records.datasets import Granule, Replica, State
from swathe.core.errors import FormatError, NotFoundError, OnTapeError, StagingError, SwatheError
from swathe.core.host import cores
from swathe.datasets.read_granules import ObjectHeaders, granules_of, read_headers
from swathe.stores.listing import ListedObject, UnlistedObject
from swathe.stores.registry import with_store_names
from swathe.stores.staging.on_disk import places_off_disk
from swathe.stores.staging.stager import divide, in_tape_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from swathe.catalog import Catalog
    from swathe.stores.staging.hold import TapeHold

KEEP_OBJECTS = 500
KEEP_S = 3.0
"""Number of objects, and interval, after which results are stored."""
THREADS_PER_CORE = 4
"""Threads per core; most of the time they wait for the store."""
AHEAD = 4
"""Number of objects per thread that are read ahead."""
MOST_ON_DISK = 1000
"""Number of objects that are asked for from tape at the same time."""
ON_TAPE = "on tape"
"""Reason of an object whose headers were not read, as it is on tape only."""


@dataclass(frozen=True)
class SkippedObject:
    """An object that cannot be catalogued, and the reason."""

    path: str
    reason: str


@dataclass
class ScanReport:
    """Outcome of a scan.

    Attributes:
        dataset: name of the dataset.
        listed: number of objects in the store.
        unchanged: number of objects not read again.
        read: number of objects read and catalogued.
        images: number of granules in these objects.
        arrays: number of those that are arrays, not images.
        vanished: number of objects that no longer exist.
        returned: number of vanished objects that exist again, unchanged.
        on_tape: number of objects on tape only, whose headers were not read.
        faults: objects that cannot be catalogued, with the reason.
        notes: reasons why images have no position though they should, with counts.
        refusals: reasons why arrays of files that are read are not catalogued, with counts.
        elapsed_s: duration.
    """

    dataset: str
    listed: int = 0
    unchanged: int = 0
    read: int = 0
    images: int = 0
    arrays: int = 0
    vanished: int = 0
    returned: int = 0
    on_tape: int = 0
    faults: list[SkippedObject] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    elapsed_s: float = 0.0


def scan(
    catalog: Catalog,
    dataset: str,
    objects: Iterable[ListedObject | UnlistedObject],
    *,
    threads: int | None = None,
    reread: bool = False,
    hold: TapeHold | None = None,
    show: Callable[[int, int], None] = lambda _done, _total: None,
) -> ScanReport:
    """Update a dataset from a listing of its store.

    Objects on tape only are entered without their headers, unless there is a `hold`.

    Args:
        catalog: catalogue of the dataset.
        dataset: name of the dataset.
        objects: all objects of the listing; others have vanished.
        threads: number of threads that read headers.
        reread: whether to read the headers of unchanged objects, too.
        hold: what brings objects from tape; each is released when its headers are read.
        show: function called with the number of finished objects, and of all.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
    """
    start_s = time.monotonic()
    store = catalog.dataset(dataset).store
    replicas = {replica.object_path: replica for replica in catalog.replicas(dataset, store)}
    report = ScanReport(dataset)
    objects_by_path, unread_paths = _sort_out(objects, report)
    returned_paths = [
        path
        for path, now in objects_by_path.items()
        if path in replicas and replicas[path].state == "vanished" and _is_same(replicas[path], now)
    ]
    catalog.set_states(dataset, store, returned_paths, "ok")
    report.returned = len(returned_paths)
    to_read: list[tuple[ListedObject, Replica | None]] = []
    for path, now in objects_by_path.items():
        before = replicas.get(path)
        if before is None or reread or not _is_settled(before, now):
            to_read.append((now, before))
            continue
        report.unchanged += 1
        if before.state == "damaged":
            report.faults.append(SkippedObject(path, before.reason or "damaged"))
    count = report.unchanged
    total = len(objects_by_path)
    show(count, total)
    keeper = _Keeper(catalog, dataset, store)
    if reread:
        to_read = [(now, before and replace(before, version=None)) for now, before in to_read]
    for outcome, before in _with_tape(store, to_read, threads or THREADS_PER_CORE * cores(), hold):
        replica, images = _catalogue_entry(outcome, before, report)
        keeper.add(replica, images)
        count += 1
        show(count, total)
    keeper.flush()
    missing = [
        path
        for path, replica in replicas.items()
        if path not in objects_by_path
        and replica.state != "vanished"
        and not any(path == at or path.startswith(f"{at}/") for at in unread_paths)
    ]
    catalog.set_states(dataset, store, missing, "vanished")
    report.vanished = len(missing)
    catalog.set_sync_time(dataset)
    report.elapsed_s = time.monotonic() - start_s
    return report


def add_objects(
    catalog: Catalog,
    dataset: str,
    objects: Mapping[ListedObject, tuple[float | None, float | None]],
) -> list[SkippedObject]:
    """Catalogue new objects of a dataset. One that is of no known format is recorded as damaged.

    Args:
        catalog: catalogue of the dataset.
        dataset: name of the dataset.
        objects: first and last time, MJD (UTC), of what is in each object, for images and arrays
            that do not have their own.

    Returns:
        Objects that could not be read, perhaps for a time, and the reason.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
    """
    store, report = catalog.dataset(dataset).store, ScanReport(dataset)
    entries, failed = [], []
    for outcome, _ in _headers(store, [(each, None) for each in objects], cores()):
        replica, images = _catalogue_entry(outcome, None, report)
        if replica.state == "failed":
            failed.append(SkippedObject(replica.path, replica.reason or ""))
            continue
        first, last = objects[outcome.entry]
        new = [
            image if image.t_min is not None else replace(image, t_min=first, t_max=last)
            for image in images or ()
        ]
        entries.append((replica, new))
    catalog.put_objects(dataset, store, entries)
    return failed


def _sort_out(
    objects: Iterable[ListedObject | UnlistedObject], report: ScanReport
) -> tuple[dict[str, ListedObject], list[str]]:
    objects_by_path: dict[str, ListedObject] = {}
    unread_paths = []
    for each in objects:
        if isinstance(each, UnlistedObject):
            unread_paths.append(each.path)
            report.faults.append(SkippedObject(each.path, each.reason))
        else:
            objects_by_path[each.path] = each
    report.listed = len(objects_by_path)
    return objects_by_path, unread_paths


def _is_same(before: Replica, now: ListedObject) -> bool:
    """Check whether the listing shows that an object is unchanged."""
    previous = before.size, before.modified
    return now.shows_changes() and (now.size, now.mark) == previous and before.version is not None


def _is_settled(before: Replica, now: ListedObject) -> bool:
    if before.state == "damaged":
        return now.shows_changes() and (now.size, now.mark) == (before.size, before.modified)
    return before.state != "failed" and _is_same(before, now)


@dataclass(frozen=True)
class _Read:
    """Outcome of reading an object: its headers, or an error."""

    entry: ListedObject
    headers: ObjectHeaders | None = None
    error: SwatheError | None = None


def _with_tape(
    store: str,
    entries: list[tuple[ListedObject, Replica | None]],
    threads: int,
    hold: TapeHold | None,
) -> Iterator[tuple[_Read, Replica | None]]:
    """Read headers of what is on disk, then of what comes from tape, part by part."""
    by_name = {f"{store}:{entry.path}": (entry, before) for entry, before in entries}
    places = places_off_disk(by_name)
    # The others are read, or are an error when they are opened.
    on_tape = {name: each for name, each in places.items() if each.locality == "nearline"}
    yield from _headers(
        store, [each for name, each in by_name.items() if name not in on_tape], threads
    )
    if hold is None:
        for name in on_tape:
            entry, before = by_name[name]
            yield _Read(entry, error=OnTapeError(name)), before
        return
    for part in divide(in_tape_order(on_tape), MOST_ON_DISK):
        for news in hold.arrivals(part):
            for name in news.intersection(hold.faults):
                entry, before = by_name[name]
                yield _Read(entry, error=StagingError(f"{name}: {hold.faults[name]}")), before
            sound = [name for name in part if name in news and name not in hold.faults]
            yield from _headers(store, [by_name[name] for name in sound], threads)
            hold.release(sound)


def _headers(
    store: str, entries: list[tuple[ListedObject, Replica | None]], threads: int
) -> Iterator[tuple[_Read, Replica | None]]:
    """Read headers in threads, a limited number ahead of the consumer."""

    def read(listed_object: ListedObject, before: Replica | None) -> _Read:
        version = before.version if before is not None else None
        try:
            return _Read(listed_object, read_headers(f"{store}:{listed_object.path}", version))
        except SwatheError as error:
            return _Read(listed_object, error=error)
        except Exception as error:  # one file must not end the scan of a million
            failure = SwatheError(f"{type(error).__name__}: {error}")
            return _Read(listed_object, error=failure)

    with ThreadPoolExecutor(threads, "headers") as pool:
        waiting: dict[Future[_Read], Replica | None] = {}
        rest = iter(entries)
        try:
            while True:
                while len(waiting) < threads * AHEAD and (next_one := next(rest, None)):
                    candidate, before = next_one
                    pending = pool.submit(copy_context().run, read, candidate, before)
                    waiting[pending] = before
                if not waiting:
                    return
                futures, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in futures:
                    yield future.result(), waiting.pop(future)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _catalogue_entry(
    outcome: _Read, before: Replica | None, report: ScanReport
) -> tuple[Replica, list[Granule] | None]:
    """Return the record of an object and its granules; `None` to keep the known granules."""
    entry = outcome.entry
    path = entry.path
    replica = Replica(path, path, entry.size, entry.mark, None, "ok")
    error = outcome.error
    if isinstance(error, OnTapeError):
        report.on_tape += 1
        if before is not None and before.state == "ok" and _is_same(before, entry):
            return replace(replica, version=before.version), None
        version = before.version if before else None
        return replace(replica, state="failed", version=version, reason=ON_TAPE), None
    images: list[Granule] = []
    if outcome.headers is not None:
        replica = replace(replica, version=outcome.headers.version)
        if outcome.headers.images is None:
            assert before is not None
            report.unchanged += 1
            if before.state == "damaged":
                report.faults.append(SkippedObject(path, before.reason or "damaged"))
                return replace(replica, state="damaged", reason=before.reason), None
            return replica, None
        try:
            images = granules_of(path, outcome.headers)
        except Exception as fault:  # one header must not end the scan of a million
            error = FormatError(f"{path}: {type(fault).__name__}: {fault}")
    if error is not None:
        report.faults.append(SkippedObject(path, str(error)))
        if isinstance(error, FormatError):
            return replace(replica, state="damaged", reason=with_store_names(str(error))), []
        # An object that was moved meanwhile, or is unreachable, may be readable the next time.
        state: State = "vanished" if before and isinstance(error, NotFoundError) else "failed"
        version = before.version if before else None
        return replace(
            replica, state=state, version=version, reason=with_store_names(str(error))
        ), None
    report.read += 1
    report.images += len(images)
    report.arrays += sum(image.array is not None for image in images)
    for image in images:
        if image.note is not None:
            report.notes[image.note] = report.notes.get(image.note, 0) + 1
    for why in outcome.headers.refusals if outcome.headers is not None else ():
        report.refusals[why] = report.refusals.get(why, 0) + 1
    return replica, images


class _Keeper:
    """Writer of results into the catalogue, many objects at a time."""

    def __init__(self, catalog: Catalog, dataset: str, store: str) -> None:
        self._catalog, self._dataset, self._store = catalog, dataset, store
        self._rows: list[tuple[Replica, list[Granule] | None]] = []
        self._kept_at = time.monotonic()

    def add(self, replica: Replica, images: list[Granule] | None) -> None:
        self._rows.append((replica, images))
        if len(self._rows) >= KEEP_OBJECTS or time.monotonic() - self._kept_at > KEEP_S:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._catalog.put_objects(self._dataset, self._store, self._rows)
        self._rows = []
        self._kept_at = time.monotonic()
