"""The string of a user: the share of the archive that its jobs have, and where they are in it.

S4PM shows the stations of a string: where data are staged, wait, are processed, and are delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from swathe.catalog.records.jobs import END_PHASES, count_finished_rows
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.render import PageRoute, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.jobs import Job, Phase

router = APIRouter(route_class=PageRoute)
STATIONS: tuple[tuple[str, str, tuple[Phase, ...]], ...] = (
    ("Staging", "Objects on tape come to disk.", ("STAGING",)),
    ("Waiting", "In the queue, or until you start them.", ("QUEUED", "PENDING")),
    ("Running", "Workers read, compute and write.", ("EXECUTING",)),
)
DELIVERING = ("Delivering", "Results to fetch, until they expire; the latest 20.")
LATEST = 20
MOST_JOBS = 100
"""Jobs that a station lists."""


@dataclass(frozen=True)
class Station:
    """Station of a string, with the jobs in it."""

    title: str
    about: str
    jobs: Sequence[Job]
    has_results: bool = False


@router.api_route("/string", methods=["GET", "HEAD"])
def string(request: Request, user: Reader) -> Response:
    """Show the share of the user, and the jobs at each station."""
    portal = portal_of(request)
    stations = [
        Station(title, about, portal.jobs.list(user.name, phases=phases, last=MOST_JOBS + 1))
        for title, about, phases in STATIONS
    ]
    past_jobs = portal.jobs.list(user.name, phases=tuple(END_PHASES), last=LATEST)
    results = [job for job in past_jobs if job.bytes]
    stations.append(Station(*DELIVERING, results, has_results=True))
    limits = portal.jobs.limits
    usage = portal.catalog.usage_of(user.name)
    pool = portal.pool_status(user)
    return page(
        request,
        "string.html",
        stations=stations,
        most=MOST_JOBS,
        usage=usage,
        limits=limits,
        share=limits.share_of(user.name),
        pool=pool,
        done=count_finished_rows,
    )
