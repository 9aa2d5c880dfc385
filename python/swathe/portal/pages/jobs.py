"""Pages of jobs: the list, one job as it goes on, its results, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.core.errors import NoSuchResultError
from swathe.files.preview import Stretch
from swathe.jobs import Phase, RowStatus
from swathe.portal.access import Reader
from swathe.portal.api.jobs import ChangeJob, ReadJob
from swathe.portal.context import portal_of
from swathe.portal.pages.render import HEADERS, PageRoute, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.jobs import Job, Jobs, Row

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
JOBS = 50
PICTURES = 24
ROWS = 50
LOOK_BACK = 1000
"""Rows that are looked through for the page before."""
ENDED: tuple[Phase, ...] = ("COMPLETED", "ERROR", "ABORTED")
FAILED: tuple[RowStatus, ...] = ("error", "missing", "no-overlap")
STATUSES: tuple[RowStatus, ...] = get_args(RowStatus)

Action = Literal["start", "cancel", "resume", "delete"]
# A form sends what is empty, too.
Percentile = Annotated[
    float | None, Query(ge=0, le=100), BeforeValidator(lambda given: given or None)
]
From = Annotated[int, Query(ge=0, le=10**9)]

ASKED = {
    "start": ("Start this job?", "Its rows are worked on in their turn.", "Start"),
    "cancel": (
        "Cancel this job?",
        "Rows that are done stay and can be fetched. Resuming does the others.",
        "Cancel the job",
    ),
    "resume": (
        "Resume this job?",
        "Rows that failed and rows that were not done are worked on again; the others stay.",
        "Resume",
    ),
    "delete": (
        "Delete this job?",
        "The job, its manifest and all its results are removed. That cannot be undone.",
        "Delete for good",
    ),
}


@dataclass(frozen=True)
class Bar:
    """A part of the meter, in thousandths."""

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
    """List jobs, the newest first."""
    found = portal_of(request).jobs.list(user.sees, phases=(phase,) if phase else (), last=last + 1)
    return page(
        request,
        "jobs.html",
        jobs=found[:last],
        more=min(1000, last + JOBS) if len(found) > last and last < 1000 else None,
        phase=phase,
        phases=get_args(Phase),
        sees_all=user.sees is None,
        done=done,
    )


@router.api_route("/jobs/{job_id}", methods=READ)
def job(
    request: Request,
    user: Reader,
    found: ReadJob,
    status: RowStatus | None = None,
    row: From = 0,
    picture: From = 0,
    stretch: Stretch = "asinh",
    low: Percentile = None,
    high: Percentile = None,
) -> Response:
    """Show a job: how far it is, what came of it, and what became of each row."""
    known = portal_of(request).jobs
    pictures, pictures_back, pictures_next = _pictures(known, found, picture)
    rows = known.rows(found.id, start=row, limit=ROWS + 1, status=status)
    return page(
        request,
        "job.html",
        job=found,
        bars=bars(found),
        done=done(found),
        failed=sum(found.counts.get(each, 0) for each in FAILED),
        ended=found.phase in ENDED,
        left_s=left_s(found),
        spoken=spoken(found),
        times=times(found),
        ratio=_ratio,
        status=status,
        statuses=STATUSES,
        rows=rows[:ROWS],
        rows_next=rows[ROWS].number if len(rows) > ROWS else None,
        rows_back=_before(known, found.id, row, status, ROWS),
        pictures=pictures,
        pictures_next=pictures_next,
        pictures_back=pictures_back,
        stretch=stretch,
        stretches=get_args(Stretch),
        low=low,
        high=high,
        shown=_shown(stretch, low, high),
        may_submit=user.may("submit"),
    )


@router.api_route("/jobs/{job_id}/results/{name}", methods=READ)
def result(
    request: Request,
    found: ReadJob,
    name: str,
    row: From = 0,
    stretch: Stretch = "asinh",
    low: Percentile = None,
    high: Percentile = None,
) -> Response:
    """Show one result of a job, made of the row of this number."""
    known = portal_of(request).jobs
    made = next(
        (each for each in known.rows(found.id, start=row, limit=1) if each.name == name), None
    )
    if made is None:
        raise NoSuchResultError(f"the job has no result {name[:100]!r} of row {row}")
    return page(
        request,
        "result.html",
        job=found,
        row=made,
        stretch=stretch,
        stretches=get_args(Stretch),
        low=low,
        high=high,
        shown=_shown(stretch, low, high),
    )


@router.api_route("/jobs/{job_id}/{action}", methods=READ)
def ask(request: Request, found: ChangeJob, action: Action) -> Response:
    """Ask whether that is what is wanted."""
    question, consequence, yes = ASKED[action]
    return page(
        request,
        "confirm.html",
        job=found,
        action=action,
        question=question,
        consequence=consequence,
        yes=yes,
    )


@router.post("/jobs/{job_id}/{action}")
def act(request: Request, found: ChangeJob, action: Action) -> Response:
    """Do it."""
    getattr(portal_of(request).jobs, action)(found.id)
    return RedirectResponse("/jobs" if action == "delete" else f"/jobs/{found.id}", 303, HEADERS)


def _shown(stretch: str, low: float | None, high: float | None) -> str:
    """Give how pictures are to be stretched, as URLs have it."""
    given = {"stretch": stretch, "low": low, "high": high}
    return urlencode({name: value for name, value in given.items() if value is not None})


def _pictures(known: Jobs, job: Job, start: int) -> tuple[Sequence[Row], int | None, int | None]:
    """Give the results to be shown from a row on, and where the pages before and after begin."""
    limit, first = PICTURES + 1, 0
    if job.options.is_combined:
        # Rows that are made of others are behind all these, and have no source.
        limit = LOOK_BACK
        while limit < job.rows:
            row = known.rows(job.id, start=job.rows - limit, limit=1)
            if not row or row[0].source:
                break
            limit *= 4
        first = max(0, job.rows - limit)
    rows = known.rows(job.id, start=max(first, start), limit=limit, status="ok")
    named = [row for row in rows if row.name]
    back = _before(known, job.id, start, "ok", PICTURES) if start > first else None
    after = named[PICTURES].number if len(named) > PICTURES else None
    return named[:PICTURES], back, after


def _before(
    known: Jobs, job_id: str, start: int, status: RowStatus | None, rows: int
) -> int | None:
    """Give the row that the page before begins with."""
    if start == 0:
        return None
    first = max(0, start - LOOK_BACK)
    near: Sequence[Row] = known.rows(job_id, start=first, limit=LOOK_BACK, status=status)
    numbers = [row.number for row in near if row.number < start]
    if len(numbers) <= rows:
        return first
    return numbers[-rows]


def done(job: Job) -> int:
    """Count the rows that are not waiting."""
    return sum(number for status, number in job.counts.items() if status != "waiting")


def bars(job: Job) -> list[Bar]:
    """Give the meter of a job."""
    whole = max(1, sum(job.counts.values()))
    made, start = [], 0.0
    parts: tuple[tuple[str, tuple[RowStatus, ...]], ...] = (
        ("ok", ("ok",)),
        ("no-overlap", ("no-overlap",)),
        ("failed", ("missing", "error")),
    )
    for name, statuses in parts:
        number = sum(job.counts.get(status, 0) for status in statuses)
        width = 1000 * number / whole
        if number:
            # A single failure is seen.
            made.append(Bar(name, start, max(width, 4.0)))
        start += width
    return made


def left_s(job: Job) -> float | None:
    """Tell how long a job that runs may go on: as it went so far, or as predicted."""
    if job.phase != "EXECUTING" or job.actual is None:
        return None
    finished, waiting = done(job), job.counts.get("waiting", 0)
    taken = float(job.actual["seconds"])
    if finished and taken > 1:
        return taken * waiting / finished
    if job.predicted is None:
        return None
    return max(0.0, float(job.predicted["seconds"]) - taken)


def spoken(job: Job) -> str:
    """Say how far a job is, in steps that are worth hearing."""
    whole = max(1, sum(job.counts.values()))
    if job.phase == "EXECUTING":
        return f"executing, {done(job) * 10 // whole * 10} percent done"
    failed = sum(job.counts.get(status, 0) for status in FAILED)
    told = f"{job.phase.lower()}, {job.counts.get('ok', 0):,} of {whole:,} rows cut"
    return f"{told}, {failed:,} failed" if failed else told


def times(job: Job) -> dict[str, float] | None:
    """Give what the drawing of predicted against actual time needs, in thousandths of its width."""
    if job.predicted is None:
        return None
    low, high = job.predicted["interval_s"]
    actual = float(job.actual["seconds"]) if job.actual else 0.0
    whole = max(high, actual, 1e-9) * 1.05
    parts = {"low": low, "high": high, "median": job.predicted["seconds"], "actual": actual}
    return {name: 1000 * value / whole for name, value in parts.items()}


def _ratio(actual: float | None, predicted: float | None) -> float | None:
    """Tell how much more or less it was than predicted."""
    return actual / predicted - 1 if actual and predicted else None
