"""Pages of the rows of a job: where the previous one begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe.jobs import Jobs, RowStatus

LOOK_BACK = 1000
"""Number of rows that are searched for the previous page."""


def page_before(
    jobs: Jobs, job_id: str, start: int, status: RowStatus | None, rows: int, least: int = 0
) -> int | None:
    """Return the first row of the previous page; `None` on the first page.

    Args:
        jobs: all jobs.
        job_id: id of the job.
        start: first row of this page.
        status: status of the rows that are shown; `None`: all.
        rows: number of rows of a page.
        least: first row of all pages.
    """
    if start <= least:
        return None
    first = max(least, start - LOOK_BACK)
    near = jobs.rows(job_id, start=first, limit=LOOK_BACK, status=status)
    numbers = [row.number for row in near if row.number < start]
    return first if len(numbers) <= rows else numbers[-rows]
