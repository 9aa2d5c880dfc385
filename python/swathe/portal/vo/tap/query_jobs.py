"""Queries as jobs: kept in the catalogue, their answers beside the results of other jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.queries import QueryRecord
from swathe.core.errors import LimitError, NoSuchJobError
from swathe.jobs.quota import SOON_S
from swathe.jobs.service import new_id
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import RequestParameters
from swathe.portal.vo.tap.job_rows import JobRows
from swathe.portal.vo.tap.sources import Sources, Upload
from swathe.portal.vo.tap.tables import UPLOAD_SCHEMA, TapColumn, TapTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swathe.portal.context import Portal
    from swathe.portal.users import User

DEFAULT_S = 600
LONGEST_S = 3600
"""How long a query may run, seconds."""
NAMES = ("REQUEST", "LANG", "QUERY", "MAXREC", "RESPONSEFORMAT", "FORMAT", "UPLOAD", "RUNID")
"""Parameters that a job keeps."""
UPLOADS = "uploads.json"
LONGEST_NAME = 200
LOOK_S = 0.5
"""Interval between looks at a query that somebody waits for."""


@dataclass(frozen=True)
class QueryJob(QueryRecord):
    """A query as UWS sees it: nothing is predicted or staged."""

    staging: None = None
    predicted: None = None

    @classmethod
    def of(cls, record: QueryRecord) -> QueryJob:
        """Return a query of the catalogue."""
        return cls(**vars(record))


class QueryJobs:
    """The queries of one portal."""

    def __init__(self, portal: Portal) -> None:
        """Set the portal."""
        self._portal = portal
        self._catalog = portal.catalog

    def create(
        self,
        user: User,
        parameters: RequestParameters,
        uploads: Sequence[Upload],
        links_url: str,
        *,
        starts: bool,
    ) -> QueryJob:
        """Store a query.

        Raises:
            LimitError: If the user has too many, or too many results.
        """
        limits = self._portal.jobs.limits

        def check(count: int) -> None:
            if count >= limits.jobs:
                raise LimitError(
                    f"you have {count} queries that have not ended; {limits.jobs} are allowed",
                    SOON_S,
                )

        self._portal.jobs.check_result_room(user.name)
        now = datetime.now(UTC)
        run_id = (parameters.one("RUNID") or "").strip()[:LONGEST_NAME]
        lifetime_s = min(limits.default_s, limits.longest_s)
        context = {"links_url": links_url, "sees_all": user.sees is None, "uploads": bool(uploads)}
        record = QueryRecord(
            new_id(),
            user.name,
            run_id,
            "PENDING",
            _own_pairs(parameters),
            context,
            now,
            None,
            None,
            now + timedelta(seconds=lifetime_s),
            DEFAULT_S,
        )
        if uploads:
            self._store(record.id, UPLOADS, json.dumps([_to_json(each) for each in uploads]))
        try:
            record = self._catalog.add_query(record, check)
        except BaseException:
            self._portal.jobs.place.begin_removal(record.id)
            raise
        return QueryJob.of(self._catalog.start_query(record.id)) if starts else QueryJob.of(record)

    def job(self, job_id: str, user: User) -> QueryJob:
        """Return a query that a user may see.

        Raises:
            NoSuchJobError: If there is none.
        """
        record = self._catalog.query(job_id)
        if user.sees not in (None, record.owner):
            raise NoSuchJobError(f"no job {job_id[:50]!r}, or it has expired")
        return QueryJob.of(record)

    def start(self, job: QueryJob) -> QueryJob:
        """Release a pending query. Whether its parameters are valid is known when it runs."""
        return QueryJob.of(self._catalog.start_query(job.id))

    def delete(self, job_id: str) -> None:
        """Stop a query, and delete it with its answer."""
        self._catalog.delete_query(job_id)
        self._portal.jobs.place.begin_removal(job_id)

    def set_expiry(self, job: QueryJob, moment: datetime) -> QueryJob:
        """Set when a query is deleted, within the limits."""
        latest = job.created_at + timedelta(seconds=self._portal.jobs.limits.longest_s)
        return QueryJob.of(self._catalog.change_query(job.id, expires_at=min(moment, latest)))

    def set_duration(self, job: QueryJob, seconds: int) -> QueryJob:
        """Set how long a query may run, within the limits; 0 = as long as these allow."""
        seconds = min(seconds or LONGEST_S, LONGEST_S)
        return QueryJob.of(self._catalog.change_query(job.id, duration_s=seconds))

    def set_parameters(self, job: QueryJob, parameters: RequestParameters) -> QueryJob:
        """Set parameters of a query that was not started; those that it has are replaced.

        Raises:
            JobError: If it was started.
            VoError: If there is an upload among them.
        """
        pairs = _own_pairs(parameters)
        if any(name.upper() == "UPLOAD" for name, _ in pairs):
            raise usage("UPLOAD: expected it with the new job, found it in its parameters")
        names = {name.upper() for name, _ in pairs}
        others = [pair for pair in job.parameters if pair[0].upper() not in names]
        return QueryJob.of(self._catalog.change_query(job.id, parameters=[*others, *pairs]))

    def sources(self, record: QueryRecord, should_stop: Callable[[], bool]) -> Sources:
        """Return the tables that a query may use."""
        owner = None if record.context["sees_all"] else record.owner
        return Sources(
            on_sqlite=self._catalog.is_sqlite,
            authority=self._portal.config.vo.authority,
            links_url=record.context["links_url"],
            owner=owner,
            job_rows=JobRows(self._catalog, owner, should_stop),
            uploads=self._uploads(record),
        )

    def _uploads(self, record: QueryRecord) -> list[Upload]:
        if not record.context["uploads"]:
            return []
        with self._portal.jobs.place.find(record.id, UPLOADS).open() as file:
            return [_from_json(each) for each in json.load(file)]

    def _store(self, job_id: str, name: str, text: str) -> None:
        place = self._portal.jobs.place
        folder = place.scratch(job_id)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f".{name}"
        path.write_text(text)
        list(place.put(job_id, [(str(path), name)], lambda: False))


def _own_pairs(parameters: RequestParameters) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parameters.pairs if name.upper() in NAMES]


def _to_json(upload: Upload) -> Any:
    columns = [vars(column) for column in upload.table.columns]
    return {"name": upload.table.name, "columns": columns, "rows": upload.rows}


def _from_json(content: Any) -> Upload:
    columns = tuple(TapColumn(**column) for column in content["columns"])
    table = TapTable(UPLOAD_SCHEMA, content["name"], "", columns)
    return Upload(table, [tuple(row) for row in content["rows"]])
