"""Pages on jobs: the list, one job with its progress and results, and actions on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.catalog.records.jobs import END_PHASES, count_finished_rows
from swathe.core.errors import NoSuchResultError
from swathe.core.row_record import STATUSES, WITHOUT_RESULT
from swathe.files.preview import Stretch
from swathe.jobs import Phase, RowStatus
from swathe.jobs.staging_progress import staging_text
from swathe.operations.operation import ProgramOperation
from swathe.portal.access import Reader
from swathe.portal.api.jobs import ChangeJob, ReadJob
from swathe.portal.context import portal_of
from swathe.portal.pages.job_groups import groups_of_job
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.row_pages import LOOK_BACK, page_before
from swathe.portal.pages.words import job_title, plural, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.jobs import Job, Jobs, Row

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
JOBS = 50
PICTURES = 24
ROWS = 50

Action = Literal["start", "cancel", "resume", "delete"]
# A form also sends empty fields.
Percentile = Annotated[
    float | None, Query(ge=0, le=100), BeforeValidator(lambda value: value or None)
]
From = Annotated[int, Query(ge=0, le=10**9)]

QUESTIONS = {
    "start": ("Start this job?", "It will run when it reaches the head of the queue.", "Start"),
    "cancel": (
        "Cancel this job?",
        "Finished results are kept and can be fetched. Resume runs the other rows.",
        "Cancel the job",
    ),
    "resume": (
        "Resume this job?",
        "Failed and unfinished rows are tried again. The others are kept.",
        "Resume",
    ),
    "delete": (
        "Delete this job?",
        "The job, its manifest and all its results are deleted. This cannot be undone.",
        "Delete for good",
    ),
}


@dataclass(frozen=True)
class Bar:
    """A part of the progress bar, in thousandths of its width."""

    status: str
    start: float
    width: float


@router.api_route("/jobs", methods=READ)
def jobs(
    request: Request,
    user: Reader,
    phase: Phase | None = None,
    last: Annotated[int, Query(ge=1, le=1000)] = JOBS,
) -> Response:
    """List jobs, newest first."""
    visible_jobs = portal_of(request).jobs.list(
        user.sees, phases=(phase,) if phase else (), last=last + 1
    )
    return page(
        request,
        "jobs.html",
        jobs=visible_jobs[:last],
        more=min(1000, last + JOBS) if len(visible_jobs) > last and last < 1000 else None,
        phase=phase,
        phases=get_args(Phase),
        sees_all=user.sees is None,
        done=count_finished_rows,
    )


@router.api_route("/jobs/{job_id}", methods=READ)
def job(
    request: Request,
    user: Reader,
    job: ReadJob,
    status: RowStatus | None = None,
    row: From = 0,
    picture: From = 0,
    group: From = 0,
    state: RowStatus | None = None,
    stretch: Stretch = "asinh",
    low: Percentile = None,
    high: Percentile = None,
) -> Response:
    """Show a job: its progress, its results, and the outcome of each row."""
    all_jobs = portal_of(request).jobs
    groups = None
    if isinstance(job.options.results.kind, ProgramOperation):
        groups = groups_of_job(all_jobs, portal_of(request).catalog, job, group, state)
    pictures, pictures_back, pictures_next = _pictures(all_jobs, job, picture)
    rows = all_jobs.rows(job.id, start=row, limit=ROWS + 1, status=status)
    return page(
        request,
        "job.html",
        job=job,
        bars=bars(job),
        done=count_finished_rows(job.totals),
        failed=sum(job.totals.get(each, 0) for each in WITHOUT_RESULT),
        ended=job.phase in END_PHASES,
        progress_text=progress_text(job),
        staging_text=staging_text(job.staging) if job.staging else "",
        times=times(job),
        ratio=_ratio,
        status=status,
        statuses=STATUSES,
        rows=rows[:ROWS],
        rows_next=rows[ROWS].number if len(rows) > ROWS else None,
        rows_back=page_before(all_jobs, job.id, row, status, ROWS),
        groups=groups,
        state=state,
        pictures=pictures,
        pictures_next=pictures_next,
        pictures_back=pictures_back,
        stretch=stretch,
        stretches=get_args(Stretch),
        low=low,
        high=high,
        shown=_stretch_text(stretch, low, high),
        may_submit=user.may("submit"),
    )


@router.api_route("/jobs/{job_id}/results/{name}", methods=READ)
def result(
    request: Request,
    job: ReadJob,
    name: str,
    row: From = 0,
    stretch: Stretch = "asinh",
    low: Percentile = None,
    high: Percentile = None,
) -> Response:
    """Show the result of one row of a job."""
    all_jobs = portal_of(request).jobs
    result_row = next(
        (each for each in all_jobs.rows(job.id, start=row, limit=1) if each.name == name), None
    )
    if result_row is None:
        raise NoSuchResultError(f"row {row}: no such result: {name[:100]!r}")
    return page(
        request,
        "result.html",
        job=job,
        row=result_row,
        stretch=stretch,
        stretches=get_args(Stretch),
        low=low,
        high=high,
        shown=_stretch_text(stretch, low, high),
    )


@router.api_route("/jobs/{job_id}/{action}", methods=READ)
def ask(request: Request, job: ChangeJob, action: Action) -> Response:
    """Ask the user to confirm an action."""
    question, consequence, yes = QUESTIONS[action]
    return page(
        request,
        "confirm.html",
        question=question,
        subject=job_title(job),
        about=f"{plural(sum(job.totals.values()), job.unit)}, {size(job.bytes)} of results.",
        consequence=consequence,
        yes=yes,
        action=f"/jobs/{job.id}/{action}",
        back=f"/jobs/{job.id}",
        is_bad=action == "delete",
    )


@router.post("/jobs/{job_id}/{action}")
def act(request: Request, job: ChangeJob, action: Action) -> Response:
    """Perform a confirmed action."""
    getattr(portal_of(request).jobs, action)(job.id)
    return RedirectResponse("/jobs" if action == "delete" else f"/jobs/{job.id}", 303, HEADERS)


def _stretch_text(stretch: str, low: float | None, high: float | None) -> str:
    """Return the stretch of pictures as a URL query."""
    settings = {"stretch": stretch, "low": low, "high": high}
    return urlencode({name: value for name, value in settings.items() if value is not None})


def _pictures(all_jobs: Jobs, job: Job, start: int) -> tuple[Sequence[Row], int | None, int | None]:
    """Return the results to show from a row on, and the first rows of the pages around it."""
    if isinstance(job.options.results.kind, ProgramOperation):
        return (), None, None  # they are archives
    limit, first = PICTURES + 1, 0
    if job.options.is_combined:
        # Combined rows come after the rows they are made of, and have no source.
        limit = LOOK_BACK
        while limit < job.rows:
            row = all_jobs.rows(job.id, start=job.rows - limit, limit=1)
            if not row or row[0].source:
                break
            limit *= 4
        first = max(0, job.rows - limit)
    rows = all_jobs.rows(job.id, start=max(first, start), limit=limit, status="ok")
    with_file = [row for row in rows if row.name]
    back = page_before(all_jobs, job.id, start, "ok", PICTURES) if start > first else None
    after = with_file[PICTURES].number if len(with_file) > PICTURES else None
    return with_file[:PICTURES], back, after


def bars(job: Job) -> list[Bar]:
    """Return the progress bar of a job."""
    total = max(1, sum(job.totals.values()))
    drawing, start = [], 0.0
    parts: tuple[tuple[str, tuple[RowStatus, ...]], ...] = (
        ("ok", ("ok",)),
        ("no-overlap", ("no-overlap",)),
        ("failed", ("missing", "error")),
    )
    for name, statuses in parts:
        number = sum(job.totals.get(status, 0) for status in statuses)
        width = 1000 * number / total
        if number:
            # Make a single failure visible.
            drawing.append(Bar(name, start, max(width, 4.0)))
        start += width
    return drawing


def progress_text(job: Job) -> str:
    """Return the progress of a job for screen readers, in steps of 10 percent."""
    total = max(1, sum(job.totals.values()))
    if job.phase == "EXECUTING":
        return f"executing, {count_finished_rows(job.totals) * 10 // total * 10} percent done"
    failed = sum(job.totals.get(status, 0) for status in WITHOUT_RESULT)
    verb = "cut" if job.groups is None else "done"
    summary = f"{job.phase.lower()}, {job.totals.get('ok', 0):,} of {total:,} {job.unit}s {verb}"
    return f"{summary}, {failed:,} failed" if failed else summary


def times(job: Job) -> dict[str, float] | None:
    """Return predicted and actual times, in thousandths of the width of their drawing."""
    if job.predicted is None:
        return None
    low, high = job.predicted["interval_s"]
    actual = float(job.actual["work_s"]) if job.actual else 0.0
    full_s = max(high, actual, 1e-9) * 1.05
    parts = {"low": low, "high": high, "median": job.predicted["median_s"], "actual": actual}
    return {name: 1000 * value / full_s for name, value in parts.items()}


def _ratio(actual: float | None, prediction: float | None) -> float | None:
    """Return the relative difference of actual to predicted cost."""
    return actual / prediction - 1 if actual and prediction else None
