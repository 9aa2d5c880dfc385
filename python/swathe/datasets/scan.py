"""Reading what objects of a store hold into the catalogue.

A scan lists, reads what is new or changed, and notes what is gone. What was read is kept every
few seconds, so a scan that was ended goes on where it was. Headers are read by several threads;
astropy, which is not made for that, works on them in one.
"""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe.catalog.records.datasets import Granule, Replica, State
from swathe.core.errors import FormatError, NotFoundError, SwatheError
from swathe.core.host import cores
from swathe.datasets.read_granules import ObjectHeaders, granules_of, read_headers
from swathe.stores.listing import Listed, Unlisted
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from swathe.catalog import Catalog

KEEP_OBJECTS = 500
KEEP_S = 3.0
"""What was read is kept after so many objects, or this time."""
THREADS_PER_CORE = 4
"""Most of the time is waiting for a storage."""
AHEAD = 4
"""Objects of each thread that are asked for before they can be worked on."""


@dataclass(frozen=True)
class Fault:
    """An object that cannot be catalogued, and why."""

    path: str
    reason: str


@dataclass
class Report:
    """What a scan found.

    Attributes:
        dataset: its name.
        listed: objects that there are.
        unchanged: of these, not read again.
        read: read, and catalogued.
        images: granules in what was read.
        vanished: objects that were there before.
        returned: objects that were gone before, and are as they were.
        faults: what cannot be catalogued.
        notes: why images have no place in the sky though they should, and how many.
        seconds: how long it took.
    """

    dataset: str
    listed: int = 0
    unchanged: int = 0
    read: int = 0
    images: int = 0
    vanished: int = 0
    returned: int = 0
    faults: list[Fault] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def scan(
    catalog: Catalog,
    dataset: str,
    objects: Iterable[Listed | Unlisted],
    *,
    threads: int | None = None,
    reread: bool = False,
    show: Callable[[int, int], None] = lambda _done, _total: None,
) -> Report:
    """Bring a dataset up to date with a listing of its store.

    Args:
        catalog: where the dataset is.
        dataset: its name.
        objects: all there are; what is not among them has vanished.
        threads: how many read headers.
        reread: read the headers of all, also of what is as it was.
        show: is told how many objects are done, of how many.

    Raises:
        NoSuchDatasetError: where there is none of that name.
    """
    started = time.monotonic()
    store = catalog.dataset(dataset).store
    known = {replica.object_path: replica for replica in catalog.replicas(dataset, store)}
    report = Report(dataset)
    listed, unlisted = _sorted_out(objects, report)
    returned = [
        path
        for path, now in listed.items()
        if path in known and known[path].state == "vanished" and _is_same(known[path], now)
    ]
    catalog.set_states(dataset, store, returned, "ok")
    report.returned = len(returned)
    to_read: list[tuple[Listed, Replica | None]] = []
    for path, now in listed.items():
        before = known.get(path)
        if before is None or reread or not _is_settled(before, now):
            to_read.append((now, before))
            continue
        report.unchanged += 1
        if before.state == "damaged":
            report.faults.append(Fault(path, before.reason or "damaged"))
    done = report.unchanged
    total = len(listed)
    show(done, total)
    keeper = _Keeper(catalog, dataset, store)
    if reread:
        to_read = [(now, before and replace(before, version=None)) for now, before in to_read]
    for found, before in _headers(store, to_read, threads or THREADS_PER_CORE * cores()):
        replica, images = _catalogued(found, before, report)
        keeper.add(replica, images)
        done += 1
        show(done, total)
    keeper.flush()
    gone = [
        path
        for path, replica in known.items()
        if path not in listed
        and replica.state != "vanished"
        and not any(path == at or path.startswith(f"{at}/") for at in unlisted)
    ]
    catalog.set_states(dataset, store, gone, "vanished")
    report.vanished = len(gone)
    catalog.set_synced(dataset)
    report.seconds = time.monotonic() - started
    return report


def _sorted_out(
    objects: Iterable[Listed | Unlisted], report: Report
) -> tuple[dict[str, Listed], list[str]]:
    listed: dict[str, Listed] = {}
    unlisted = []
    for each in objects:
        if isinstance(each, Unlisted):
            unlisted.append(each.path)
            report.faults.append(Fault(each.path, each.reason))
        else:
            listed[each.path] = each
    report.listed = len(listed)
    return listed, unlisted


def _is_same(before: Replica, now: Listed) -> bool:
    """Tell whether the listing vouches that an object is what it was."""
    told = before.size, before.modified
    return now.is_told() and (now.size, now.mark) == told and before.version is not None


def _is_settled(before: Replica, now: Listed) -> bool:
    if before.state == "damaged":
        return now.is_told() and (now.size, now.mark) == (before.size, before.modified)
    return before.state != "failed" and _is_same(before, now)


@dataclass(frozen=True)
class _Read:
    """What became of reading an object: headers, or the version it still has, or an error."""

    listed: Listed
    headers: ObjectHeaders | None = None
    error: SwatheError | None = None


def _headers(
    store: str, wanted: list[tuple[Listed, Replica | None]], threads: int
) -> Iterator[tuple[_Read, Replica | None]]:
    """Read headers in threads, not far ahead of whoever takes them."""

    def read(listed: Listed, before: Replica | None) -> _Read:
        known = before.version if before is not None else None
        try:
            return _Read(listed, read_headers(f"{store}:{listed.path}", known))
        except SwatheError as error:
            return _Read(listed, error=error)
        except Exception as error:  # one file must not end the scan of a million
            told = SwatheError(f"{type(error).__name__}: {error}")
            return _Read(listed, error=told)

    with ThreadPoolExecutor(threads, "headers") as pool:
        waiting: dict[Future[_Read], Replica | None] = {}
        rest = iter(wanted)
        try:
            while True:
                while len(waiting) < threads * AHEAD and (next_one := next(rest, None)):
                    listed, before = next_one
                    begun = pool.submit(copy_context().run, read, listed, before)
                    waiting[begun] = before
                if not waiting:
                    return
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result(), waiting.pop(future)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _catalogued(
    found: _Read, before: Replica | None, report: Report
) -> tuple[Replica, list[Granule] | None]:
    """Give what to keep of an object; no granules where those there are still hold."""
    listed = found.listed
    path = listed.path
    replica = Replica(path, path, listed.size, listed.mark, None, "ok")
    error = found.error
    images: list[Granule] = []
    if found.headers is not None:
        replica = replace(replica, version=found.headers.version)
        if found.headers.images is None:
            assert before is not None
            report.unchanged += 1
            if before.state == "damaged":
                report.faults.append(Fault(path, before.reason or "damaged"))
                return replace(replica, state="damaged", reason=before.reason), None
            return replica, None
        try:
            images = granules_of(path, found.headers)
        except Exception as raised:  # one header must not end the scan of a million
            error = FormatError(f"{path}: {type(raised).__name__}: {raised}")
    if error is not None:
        report.faults.append(Fault(path, str(error)))
        if isinstance(error, FormatError):
            return replace(replica, state="damaged", reason=with_store_names(str(error))), []
        # What was moved away meanwhile, or cannot be reached, may be there the next time.
        state: State = "vanished" if before and isinstance(error, NotFoundError) else "failed"
        version = before.version if before else None
        return replace(
            replica, state=state, version=version, reason=with_store_names(str(error))
        ), None
    report.read += 1
    report.images += len(images)
    for image in images:
        if image.note is not None:
            report.notes[image.note] = report.notes.get(image.note, 0) + 1
    return replica, images


class _Keeper:
    """Puts what was read into the catalogue, many objects at a time."""

    def __init__(self, catalog: Catalog, dataset: str, store: str) -> None:
        self._catalog, self._dataset, self._store = catalog, dataset, store
        self._found: list[tuple[Replica, list[Granule] | None]] = []
        self._kept_at = time.monotonic()

    def add(self, replica: Replica, images: list[Granule] | None) -> None:
        self._found.append((replica, images))
        if len(self._found) >= KEEP_OBJECTS or time.monotonic() - self._kept_at > KEEP_S:
            self.flush()

    def flush(self) -> None:
        if self._found:
            self._catalog.put_objects(self._dataset, self._store, self._found)
        self._found = []
        self._kept_at = time.monotonic()
