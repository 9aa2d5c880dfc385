"""Work on queries that are jobs, while a portal runs."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self

from swathe.catalog.read_only import ReadLimit
from swathe.core.errors import NoSuchJobError, SwatheError
from swathe.portal.vo.errors import to_vo_error
from swathe.portal.vo.parameters import RequestParameters
from swathe.portal.vo.tap.answers import write_answer
from swathe.portal.vo.tap.query_jobs import QueryJobs
from swathe.portal.vo.tap.query_request import QueryRequest
from swathe.portal.vo.tap.query_uws import NAMES
from swathe.workers.restarting_thread import RestartingThread

if TYPE_CHECKING:
    from swathe.catalog.records.queries import QueryRecord
    from swathe.portal.context import Portal

log = logging.getLogger(__name__)

THREADS = 2
"""Queries that run at the same time; more wait."""
PAUSE_S = 1.0
LEASE_S = 60.0
RENEWAL_S = 2.0
"""Interval between renewals of a lease. A query that was cancelled ends at the next one."""


class QueryWork:
    """Threads of a portal that run queries."""

    def __init__(self, portal: Portal) -> None:
        """Set the portal."""
        self._portal = portal
        self._jobs = QueryJobs(portal)
        self._ending = threading.Event()
        self._threads = [
            RestartingThread(f"swathe-queries-{number}", self._turn, self._ending)
            for number in range(THREADS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _turn(self) -> None:
        """Run one query, or delete those that have expired and pause."""
        catalog = self._portal.catalog
        record = catalog.lease_query(LEASE_S)
        if record is not None:
            self._run(record)
            return
        for job_id in catalog.expired_queries():
            try:
                self._jobs.delete(job_id)
            except NoSuchJobError:
                continue  # deleted by its user meanwhile
        self._ending.wait(PAUSE_S)

    def _run(self, record: QueryRecord) -> None:
        lease = _Lease(self._portal, record.id, self._ending)
        with lease:
            failure, size, media_type = None, 0, ""
            try:
                media_type, size = self._answer(record, lease)
            except SwatheError as error:
                if self._ending.is_set():
                    self._portal.catalog.release_query(record.id)
                    return
                if lease.is_lost:
                    return  # cancelled or deleted
                failure = to_vo_error(error).line
            except Exception:
                log.exception("query %s", record.id)
                failure = "Error: an internal error; the log of the portal has it"
        try:
            catalog = self._portal.catalog
            catalog.end_query(record.id, size=size, media_type=media_type, failure=failure)
        except NoSuchJobError:
            self._portal.jobs.place.begin_removal(record.id)

    def _answer(self, record: QueryRecord, lease: _Lease) -> tuple[str, int]:
        """Answer a query; return media type and size."""
        place = self._portal.jobs.place
        request = QueryRequest.read(RequestParameters(record.parameters))
        limit = ReadLimit.of(record.duration_s, lambda: lease.is_lost)
        sources = self._jobs.sources(record, lambda: limit.is_over)
        folder = place.scratch(record.id)
        folder.mkdir(parents=True, exist_ok=True)
        name = NAMES[request.media_type]
        path = folder / f".{name}"
        try:
            with path.open("wb") as file:
                write_answer(self._portal.catalog, sources, request, limit, file)
            size = path.stat().st_size
            list(place.put(record.id, [(str(path), name)], lambda: lease.is_lost))
        finally:
            path.unlink(missing_ok=True)
        return request.media_type, size


class _Lease:
    """The lease of a query, renewed while it runs."""

    def __init__(self, portal: Portal, job_id: str, ending: threading.Event) -> None:
        self._catalog, self._job_id, self._ending = portal.catalog, job_id, ending
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="swathe-query-lease", daemon=True)
        self.is_lost = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._end.wait(RENEWAL_S):
            try:
                if self._ending.is_set() or not self._catalog.renew_query(self._job_id, LEASE_S):
                    self.is_lost = True
                    return
            except SwatheError as error:
                log.warning("lease of query %s: %s", self._job_id, error)
