"""Objects on tape that jobs need: asked for in bulk, waited for, pinned, and let go.

All that this knows is in the catalogue: which rows wait (`StagedRows`), and which objects the jobs
have pinned (`StagingRecords`). Each look compares the two. So it does not matter how a job ended,
or whether this process began it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from swathe.jobs.near_copies import names_near
from swathe.jobs.staging_progress import progress
from swathe.jobs.store_jobs import StoreJobs, is_ready, owner_of
from swathe.stores.registry import tape_sources

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import JobRecord

LOOK_S = 0.5
"""Seconds between looks at the jobs."""
IDLE_S = 5.0
"""The same, if there is no store whose objects are staged."""


def objects_on_disk(
    catalog: Catalog, job: JobRecord, names: Iterable[str], *, reads_caches: bool
) -> list[str] | None:
    """Return the staged objects behind some names; `None` if one of these cannot be read now.

    Args:
        catalog: the catalogue.
        job: the job.
        names: objects that are about to be read.
        reads_caches: whether they are read in a process that has the catalogue, and so from caches.

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    stores = job.staging or {}
    objects = tape_sources(names)
    paths: dict[str, list[str]] = defaultdict(list)
    for each in objects.values():
        if each.store in stores:
            paths[each.store].append(each.path)
    ready = {
        f"{store}:{pin.file.path}"
        for store, of_store in paths.items()
        for pin in catalog.stage_pins(store, owner_of(job.id), of_store)
        if is_ready(pin)
    }
    away = {name for name, each in objects.items() if each.store in stores} - {
        name for name, each in objects.items() if each.name in ready
    }
    if away and (not reads_caches or away - names_near(catalog, owner_of(job.id))):
        return None
    return [each.name for name, each in objects.items() if name not in away]


class JobStaging:
    """Staging for the jobs of a catalogue; a thread for each store, since a service may hang."""

    def __init__(
        self,
        catalog: Catalog,
        size: Callable[[JobRecord, bool], int],
        wake: Callable[[], None],
        stopping: threading.Event,
        *,
        reads_caches: bool,
    ) -> None:
        """Set up; nothing is asked for yet.

        Args:
            catalog: the catalogue.
            size: function that returns the approximate number of rows of a chunk of a job.
            wake: function that is called when rows may be leased.
            stopping: event that ends the threads.
            reads_caches: whether objects of caches are read near; else they are read at their
                source, as by workers that have no catalogue.
        """
        self._reads_caches = reads_caches
        self._catalog, self._size, self._wake, self._stopping = catalog, size, wake, stopping
        self._stores: dict[str, StoreJobs] = {}
        self._threads: dict[str, threading.Thread] = {}

    def turn(self) -> None:
        """Look once at all stores that are not being asked; then wait a moment.

        Raises:
            CatalogError: If the catalogue cannot be used.
        """
        # Not what the process knows of stores: of PostgreSQL that is as old as 5 s.
        tapes = {each.name: each for each in self._catalog.stores() if each.is_staged}
        jobs = self._catalog.staging_jobs()
        for job in jobs:
            for name in (job.staging or {}).keys() - tapes.keys():
                self._free(job, name)
        for name, store in tapes.items():
            thread = self._threads.get(name)
            if thread is not None and thread.is_alive():
                continue
            if name not in self._stores or self._stores[name].store != store:
                self._stores[name] = StoreJobs(
                    store, self._catalog, self._size, self._wake, self._reads_caches
                )
            look = partial(self._stores[name].look, jobs)
            thread = threading.Thread(target=look, name=f"swathe-jobs-tape-{name}", daemon=True)
            self._threads[name] = thread
            thread.start()
            # Most have nothing to do.
            thread.join(LOOK_S)
        self._stopping.wait(LOOK_S if tapes else IDLE_S)

    def _free(self, job: JobRecord, store: str) -> None:
        """Let rows be leased whose store is not there any more, or is staged no more."""

        def without_pending(before: dict[str, Any], _: int) -> dict[str, Any]:
            return progress(before["objects"], 0, before["failed"])

        self._catalog.move_staged_rows(
            job.number, lambda name: not tape_sources([name]), store, without_pending, self._size
        )
