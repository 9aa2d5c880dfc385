"""The resources of UWS 1.1, for jobs of any kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast, get_args

from starlette.responses import PlainTextResponse, RedirectResponse, Response

from swathe.catalog.records.jobs import ACTIVE, Phase
from swathe.portal.access import streams_of
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import RequestParameters, from_query, quote_value, read_form
from swathe.portal.vo.uws import documents
from swathe.portal.vo.uws.documents import XML, iso

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from vo_models.uws import ResultReference

    from swathe.portal.users import User
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.uws.job import UwsJob

LONGEST_WAIT_S = 60.0
"""Longest wait of one request; clients request again."""
LONGEST_LIST = 1000
"""Maximum number of jobs in a list, and of listed results of a job; the archive has all."""
PHASES: dict[str, tuple[Phase, ...]] = {
    **{phase: (phase,) for phase in get_args(Phase) if phase != "STAGING"},
    "QUEUED": ("QUEUED", "STAGING"),
    "SUSPENDED": ("STAGING",),
}
"""Phases of jobs that may have each phase of UWS."""


class UwsJobs(Protocol):
    """The jobs of one service. `path` is where they are below `/vo`."""

    path: str

    def newest(
        self,
        service: Service,
        owner: str | None,
        phases: Sequence[Phase],
        after: datetime | None,
        last: int,
    ) -> Sequence[UwsJob]:
        """Return jobs, newest first."""

    def own(self, request: Request) -> UwsJob:
        """Return the job of a path, if the user may see it.

        Raises:
            NoSuchJobError: If there is none.
        """

    def wait(
        self, service: Service, job: UwsJob, wait_s: float, should_stop: Callable[[], bool]
    ) -> UwsJob:
        """Return the job when its phase has changed, or after some time."""

    def start(self, service: Service, job: UwsJob) -> UwsJob:
        """Release a pending job."""

    def cancel(self, service: Service, job: UwsJob) -> UwsJob:
        """Stop a job."""

    def delete(self, service: Service, job: UwsJob) -> None:
        """Stop a job, and delete it with its results."""

    def set_expiry(self, service: Service, job: UwsJob, moment: datetime) -> UwsJob:
        """Set when a job is deleted."""

    def duration_s(self, job: UwsJob) -> int:
        """Return how long a job may run, seconds; 0 = without limit."""

    def set_duration(self, service: Service, job: UwsJob, seconds: int) -> UwsJob:
        """Set how long a job may run."""

    def set_parameters(
        self, service: Service, job: UwsJob, parameters: RequestParameters
    ) -> UwsJob:
        """Set parameters of a job that is not started.

        Raises:
            VoError: If parameters cannot be changed.
        """

    def results(self, service: Service, request: Request, job: UwsJob) -> list[ResultReference]:
        """Return the results of an ended job; empty before that."""

    def error(self, job: UwsJob) -> Response:
        """Return why a job failed; empty if it did not."""


class UwsHandlers:
    """Handlers of the jobs of one service."""

    def __init__(self, kind: UwsJobs) -> None:
        """Set the jobs."""
        self._kind = kind

    async def jobs(self, service: Service, request: Request) -> Response:
        """List the jobs of the user."""
        query_parameters = from_query(request.scope["query_string"])
        values = query_parameters.all("PHASE")
        for value in values:
            if value not in PHASES:
                raise usage(
                    f"PHASE: expected one of {', '.join(PHASES)}, found {quote_value(value)}"
                )
        phases = [phase for value in dict.fromkeys(values) for phase in PHASES[value]]
        after, last = query_parameters.one("AFTER"), query_parameters.one("LAST")
        moment = None if after is None else _moment("AFTER", after)
        most = LONGEST_LIST if last is None else min(_integer("LAST", last), LONGEST_LIST)
        sees = user_of(request).sees

        def list_jobs() -> bytes:
            job_list = self._kind.newest(service, sees, phases, moment, most)
            if values:
                # Of jobs that wait for tape it depends on more than their phase.
                job_list = [each for each in job_list if documents.uws_phase(each) in values]
            return documents.list_document(job_list, service.url(request, self._kind.path))

        return Response(await service.workers.run(list_jobs), 200, media_type=XML)

    async def job(self, service: Service, request: Request) -> Response:
        """Return a job. With WAIT, respond when its phase has changed."""
        kind = self._kind
        query_parameters = from_query(request.scope["query_string"])
        current = await service.workers.run(lambda: kind.own(request))
        wait, phase = query_parameters.one("WAIT"), query_parameters.one("PHASE")
        now = documents.uws_phase(current)
        if wait is not None and current.phase in ACTIVE and phase in (None, now):
            seconds = _integer("WAIT", wait, least=-1)
            wait_s = LONGEST_WAIT_S if seconds < 0 else min(float(seconds), LONGEST_WAIT_S)
            waiting_job, streams = current, streams_of(request)
            with streams.place():
                current = await streams.wait_for(
                    lambda cancelled: kind.wait(service, waiting_job, wait_s, cancelled)
                )
        content = await service.workers.run(
            lambda: documents.job_document(
                current, kind.results(service, request, current), kind.duration_s(current)
            )
        )
        return Response(content, 200, media_type=XML)

    async def change(self, service: Service, request: Request) -> Response:
        """Handle a POST to a job: ACTION=DELETE."""
        query_parameters = await read_all(request)
        action = query_parameters.one("ACTION")
        if action is None or action.strip().upper() != "DELETE":
            raise usage("ACTION: expected DELETE, found another action or none")
        return await self.delete(service, request)

    async def delete(self, service: Service, request: Request) -> Response:
        """Stop a job, and delete it with its results."""
        await service.workers.run(lambda: self._kind.delete(service, self._kind.own(request)))
        return RedirectResponse(service.url(request, self._kind.path), 303)

    async def child(self, service: Service, request: Request) -> Response:
        """Return one property of a job."""
        name = str(request.path_params["child"])
        current = await service.workers.run(lambda: self._kind.own(request))
        match name:
            case "phase":
                return PlainTextResponse(documents.uws_phase(current))
            case "executionduration":
                return PlainTextResponse(str(self._kind.duration_s(current)))
            case "destruction":
                return PlainTextResponse(iso(current.expires_at))
            case "quote":
                moment = documents.quote(current)
                return PlainTextResponse("" if moment is None else iso(moment))
            case "owner":
                return PlainTextResponse(current.owner)
            case "error":
                return self._kind.error(current)
            case "parameters":
                return Response(documents.parameters_document(current), 200, media_type=XML)
            case "results":
                content = await service.workers.run(
                    lambda: documents.results_document(
                        self._kind.results(service, request, current)
                    )
                )
                return Response(content, 200, media_type=XML)
        raise usage(f"expected a property of a job, found {name[:80]!r}", 404)

    async def change_child(self, service: Service, request: Request) -> Response:
        """Change one property of a job by POST."""
        name = str(request.path_params["child"])
        query_parameters = await read_all(request)
        kind = self._kind

        def change() -> UwsJob:
            current = kind.own(request)
            match name:
                case "phase":
                    value = _require(query_parameters, "PHASE").strip().upper()
                    if value == "RUN":
                        return kind.start(service, current)
                    if value == "ABORT":
                        return kind.cancel(service, current)
                    raise usage(f"PHASE: expected RUN or ABORT, found {quote_value(value)}")
                case "destruction":
                    value = _require(query_parameters, "DESTRUCTION")
                    return kind.set_expiry(service, current, _moment("DESTRUCTION", value))
                case "executionduration":
                    value = _require(query_parameters, "EXECUTIONDURATION")
                    seconds = _integer("EXECUTIONDURATION", value)
                    return kind.set_duration(service, current, seconds)
                case "parameters":
                    return kind.set_parameters(service, current, query_parameters)
                case _:
                    raise usage(
                        f"expected a property of a job that can be changed, found {name[:80]!r}",
                        404,
                    )

        current = await service.workers.run(change)
        return see_job(service, request, kind.path, current)


def see_job(service: Service, request: Request, path: str, job: UwsJob) -> Response:
    """Return a redirect to a job."""
    return RedirectResponse(service.url(request, f"{path}/{job.id}"), 303)


def user_of(request: Request) -> User:
    """Return the user of a request."""
    return cast("User", request.state.user)


async def read_all(request: Request) -> RequestParameters:
    """Read the parameters of a query string and of a form."""
    parts = await read_form(request)
    query = from_query(request.scope["query_string"]).pairs
    return RequestParameters([*query, *((part.name, part.text) for part in parts)])


def _require(query: RequestParameters, name: str) -> str:
    value = query.one(name)
    if value is None:
        raise usage(f"{name}: expected a value, found none")
    return value


def _integer(name: str, value: str, least: int = 0) -> int:
    """Parse a whole number."""
    try:
        number = int(value[:20]) if value.isascii() else least - 1
    except ValueError:
        number = least - 1
    if number < least:
        raise usage(f"{name}: expected a whole number, {least} or more, found {quote_value(value)}")
    return number


def _moment(name: str, value: str) -> datetime:
    """Parse a time in ISO 8601. Without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip()[:50])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise usage(
            f"{name}: expected a time, 2026-11-21T12:00:00Z, found {quote_value(value)}"
        ) from None
