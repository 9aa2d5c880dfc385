"""Rows of a user's jobs, as rows of the table `jobs.row`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import NoSuchJobError, QueryError
from swathe.jobs.types import Options
from swathe.jobs.views import row_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import JobRecord

MOST_ROWS = 100_000
"""Maximum number of rows that a query reads: they are unpacked one by one."""
PAGE_ROWS = 5_000


class JobRows:
    """Reads the rows of the jobs that a user sees."""

    def __init__(
        self, catalog: Catalog, owner: str | None, should_stop: Callable[[], bool]
    ) -> None:
        """Set the catalogue, the user (None: all users), and what ends the reading."""
        self._catalog, self._owner, self._should_stop = catalog, owner, should_stop

    def __call__(self, job_id: str | None) -> list[tuple[Any, ...]]:
        """Return the rows of one job, or of all.

        Raises:
            QueryError: If there are too many, or it takes too long.
        """
        rows: list[tuple[Any, ...]] = []
        for job in self._jobs(job_id):
            options, start = Options.from_catalog(job.options), 0
            while True:
                if self._should_stop():
                    raise QueryError("jobs.row: the rows of your jobs were not read in time")
                page = [
                    row_view(row, options)
                    for row in self._catalog.job_rows(job.number, start=start, limit=PAGE_ROWS)
                ]
                rows += [
                    (
                        job.id,
                        row.number,
                        row.id,
                        row.name,
                        row.source,
                        row.status,
                        row.reason or None,
                        row.bytes,
                    )
                    for row in page
                ]
                start += len(page)
                if len(rows) > MOST_ROWS:
                    raise QueryError(
                        f"jobs.row: expected at most {MOST_ROWS:,} rows of your jobs, found more; "
                        "read those of one job, by job_id = '...'"
                    )
                if len(page) < PAGE_ROWS:
                    break
        return rows

    def _jobs(self, job_id: str | None) -> list[JobRecord]:
        if job_id is None:
            return self._catalog.jobs(self._owner)
        try:
            job = self._catalog.job(job_id)
        except NoSuchJobError:
            return []
        return [job] if self._owner in (None, job.owner) else []
