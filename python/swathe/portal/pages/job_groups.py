"""The groups of a job that runs an algorithm: a part of its page, and a page for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import NoSuchResultError
from swathe.core.format import harmless_text
from swathe.operations.operation import ProgramOperation
from swathe.portal.access import Reader
from swathe.portal.api.jobs import ReadJob
from swathe.portal.context import portal_of
from swathe.portal.pages.render import PageRoute, page
from swathe.portal.pages.row_pages import page_before

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.jobs import Job, Jobs, Row, RowStatus

router = APIRouter(route_class=PageRoute)
GROUPS = 50


@dataclass(frozen=True)
class JobGroups:
    """A page of the groups of a job.

    Attributes:
        rows: groups of the page.
        back: first row of the previous page; `None` on the first.
        after: first row of the next page; `None` on the last.
    """

    rows: Sequence[Row]
    back: int | None
    after: int | None


def groups_of_job(
    jobs: Jobs, catalog: Catalog, job: Job, start: int, status: RowStatus | None
) -> JobGroups:
    """Return groups of a job from a row on, of one status or all."""
    record = catalog.job(job.id)
    first = max(start, record.inputs)
    rows = jobs.rows(job.id, start=first, limit=GROUPS + 1, status=status)
    back = page_before(jobs, job.id, first, status, GROUPS, record.inputs)
    after = rows[GROUPS].number if len(rows) > GROUPS else None
    return JobGroups(rows[:GROUPS], back, after)


@router.api_route("/jobs/{job_id}/groups/{number}", methods=["GET", "HEAD"])
def group(
    request: Request, _user: Reader, job: ReadJob, number: Annotated[int, Path(ge=0, le=10**9)]
) -> Response:
    """Show a group: what became of it, its outputs, and its log."""
    portal = portal_of(request)
    record = portal.catalog.job(job.id)
    rows = portal.jobs.rows(job.id, start=number, limit=1)
    is_group = isinstance(job.options.results.kind, ProgramOperation) and number >= record.inputs
    if not is_group or not rows:
        raise NoSuchResultError(f"job {job.id}: it has no group in row {number}")
    try:
        run = portal.catalog.group_run(record.number, number)
    except NoSuchResultError:
        run = None  # it waits, or could not be run
    return page(
        request,
        "group.html",
        job=job,
        row=rows[0],
        run=run,
        log="" if run is None else harmless_text(run.log),
    )
