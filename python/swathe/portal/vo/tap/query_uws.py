"""`/vo/tap/async`: queries as jobs, followed by UWS 1.1. The `result` of a job is its answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response
from vo_models.uws import ResultReference

from swathe.core.errors import NoSuchResultError
from swathe.jobs.types import Result
from swathe.portal.access import downloads_of
from swathe.portal.api.jobs import JOB_ID
from swathe.portal.http.ranges import answer_with
from swathe.portal.vo.discovery.votable import MEDIA_TYPE, document, info, results
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import quote_value
from swathe.portal.vo.service import service_of
from swathe.portal.vo.tap.query_jobs import LOOK_S, QueryJob, QueryJobs
from swathe.portal.vo.tap.query_request import CSV
from swathe.portal.vo.tap.uploads import read_query
from swathe.portal.vo.uws.handlers import UwsHandlers, see_job, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from starlette.requests import Request

    from swathe.jobs import Phase
    from swathe.portal.vo.parameters import RequestParameters
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.uws.job import UwsJob

PATH = "tap/async"
NAMES = {MEDIA_TYPE: "result.vot", CSV: "result.csv"}
"""Name of the file of an answer, by its media type."""


async def create(service: Service, request: Request) -> Response:
    """Create a job. It starts on PHASE=RUN, which may be sent with it."""
    parameters, uploads = await read_query(service, request)
    phase = parameters.one("PHASE")
    if phase is not None and phase.strip().upper() != "RUN":
        raise usage(f"PHASE: expected RUN, found {quote_value(phase)}")
    links_url = service.url(request, "links")
    job = await service.workers.run(
        lambda: QueryJobs(service.portal).create(
            user_of(request), parameters, uploads, links_url, starts=phase is not None
        )
    )
    return see_job(service, request, PATH, job)


async def result(service: Service, request: Request) -> Response:
    """Return the answer."""
    name = str(request.path_params["name"])

    def find() -> Response:
        job = JOBS.own(request)
        if name != "result" or job.media_type is None:
            raise NoSuchResultError(f"job {job.id}: no such result, or not yet: {name[:80]!r}")
        file_name = NAMES[job.media_type]
        file = service.portal.jobs.place.find(job.id, file_name)
        answer = Result(
            file.file, file_name, file.size, f'"{job.id}"', job.media_type, "", file.open
        )
        return answer_with(request, downloads_of(request), answer, {})

    return await service.workers.run(find)


class TapJobs:
    """The jobs of TAP, for UWS."""

    path = PATH

    def newest(
        self,
        service: Service,
        owner: str | None,
        phases: Sequence[Phase],
        after: datetime | None,
        last: int,
    ) -> Sequence[UwsJob]:
        """Return jobs, newest first."""
        return [
            QueryJob.of(each) for each in service.portal.catalog.queries(owner, phases, after, last)
        ]

    def own(self, request: Request) -> QueryJob:
        """Return the job of a path, if the user may see it."""
        job_id = str(request.path_params["job"])
        if not JOB_ID.fullmatch(job_id):
            raise usage(f"no job {job_id[:50]!r}, or it has expired", 404)
        return QueryJobs(service_of(request).portal).job(job_id, user_of(request))

    def wait(
        self, service: Service, job: UwsJob, wait_s: float, should_stop: Callable[[], bool]
    ) -> UwsJob:
        """Return the job when its phase has changed, or after some time."""
        catalog, end_s = service.portal.catalog, time.monotonic() + wait_s
        while time.monotonic() < end_s and not should_stop():
            if catalog.query_state(job.id)[0] != job.phase:
                break
            time.sleep(min(LOOK_S, max(0.0, end_s - time.monotonic())))
        return QueryJob.of(catalog.query(job.id))

    def start(self, service: Service, job: UwsJob) -> UwsJob:
        """Release a pending job."""
        return QueryJobs(service.portal).start(cast("QueryJob", job))

    def cancel(self, service: Service, job: UwsJob) -> UwsJob:
        """Stop a job."""
        return QueryJob.of(service.portal.catalog.cancel_query(job.id))

    def delete(self, service: Service, job: UwsJob) -> None:
        """Stop a job, and delete it with its answer."""
        QueryJobs(service.portal).delete(job.id)

    def set_expiry(self, service: Service, job: UwsJob, moment: datetime) -> UwsJob:
        """Set when a job is deleted."""
        return QueryJobs(service.portal).set_expiry(cast("QueryJob", job), moment)

    def duration_s(self, job: UwsJob) -> int:
        """Return how long a job may run, seconds."""
        return cast("QueryJob", job).duration_s

    def set_duration(self, service: Service, job: UwsJob, seconds: int) -> UwsJob:
        """Set how long a job may run."""
        return QueryJobs(service.portal).set_duration(cast("QueryJob", job), seconds)

    def set_parameters(
        self, service: Service, job: UwsJob, parameters: RequestParameters
    ) -> UwsJob:
        """Set parameters of a job that is not started."""
        return QueryJobs(service.portal).set_parameters(cast("QueryJob", job), parameters)

    def results(self, service: Service, request: Request, job: UwsJob) -> list[ResultReference]:
        """Return the answer of an ended job; empty before that."""
        query = cast("QueryJob", job)
        if query.media_type is None:
            return []
        href = f"{service.url(request, f'{PATH}/{job.id}')}/results/result"
        size: dict[str, Any] = {"size": query.bytes}
        return [ResultReference(id="result", href=href, mime_type=query.media_type, **size)]

    def error(self, job: UwsJob) -> Response:
        """Return why a job failed, as a VOTable; an empty text if it did not."""
        if job.error is None:
            return Response("", 200, media_type="text/plain")
        content = document(results(info("QUERY_STATUS", "ERROR", job.error)))
        return Response(content, 200, media_type=MEDIA_TYPE)


JOBS = TapJobs()
HANDLERS = UwsHandlers(JOBS)
