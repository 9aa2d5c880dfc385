"""`/vo/tap/sync`: a query, answered at once."""

from __future__ import annotations

import tempfile
import threading
from typing import IO, TYPE_CHECKING, TypeVar, cast

from starlette.responses import Response

from swathe.catalog.read_only import ReadLimit
from swathe.core.errors import SwatheError
from swathe.portal.access import downloads_of, visitor_of
from swathe.portal.http.long_responses import GeneratedResponse, while_there
from swathe.portal.vo.discovery.votable import MEDIA_TYPE, document, info, results
from swathe.portal.vo.errors import to_vo_error
from swathe.portal.vo.tap.answers import write_answer
from swathe.portal.vo.tap.job_rows import JobRows
from swathe.portal.vo.tap.query_request import QueryRequest
from swathe.portal.vo.tap.sources import Sources
from swathe.portal.vo.tap.uploads import read_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.requests import Request

    from swathe.portal.users import User
    from swathe.portal.vo.errors import VoError
    from swathe.portal.vo.parameters import RequestParameters
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.tap.sources import Upload

T = TypeVar("T")
LONGEST_S = 60.0
"""Time limit of a query."""
SMALL = 1_000_000
"""Size up to which an answer is sent at once, bytes."""


async def query(service: Service, request: Request) -> Response:
    """Answer a query. Errors are reported as a table."""
    try:
        query_parameters, uploads = await read_query(service, request)
        return await run_query(
            service,
            request,
            lambda should_stop: _answer(service, request, query_parameters, uploads, should_stop),
        )
    except SwatheError as error:
        return error_table(to_vo_error(error))


async def run_query(
    service: Service, request: Request, answer: Callable[[Callable[[], bool]], T]
) -> T:
    """Run a query in its turn; it is stopped when its client leaves.

    Raises:
        VoError: If too many queries wait already.
        LimitError: If the client has left.
    """
    end = threading.Event()
    work = service.queries.run_of(visitor_of(request), lambda: answer(end.is_set))
    try:
        return await while_there(request, work)
    finally:
        end.set()


def error_table(error: VoError) -> Response:
    """Return an error as a VOTable (DALI 1.1, section 4.4)."""
    content = document(results(info("QUERY_STATUS", "ERROR", error.line)))
    return Response(content, error.status, dict(error.headers), MEDIA_TYPE)


def _answer(
    service: Service,
    request: Request,
    query_parameters: RequestParameters,
    uploads: Sequence[Upload],
    should_stop: Callable[[], bool],
) -> Response:
    query_request = QueryRequest.read(query_parameters)
    limit = ReadLimit.of(LONGEST_S, should_stop)
    catalog, owner = service.portal.catalog, cast("User", request.state.user).sees
    sources = Sources(
        on_sqlite=catalog.is_sqlite,
        authority=service.authority,
        links_url=service.url(request, "links"),
        owner=owner,
        job_rows=JobRows(catalog, owner, lambda: limit.is_over),
        uploads=uploads,
    )
    file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=SMALL))  # noqa: SIM115
    try:
        write_answer(catalog, sources, query_request, limit, file)
        size = file.tell()
        file.seek(0)
        if size <= SMALL:
            return Response(file.read(), 200, media_type=query_request.media_type)
    except BaseException:
        file.close()
        raise
    return GeneratedResponse(downloads_of(request), _sending(file), query_request.media_type)


def _sending(file: IO[bytes]) -> Callable[[Callable[[], bool]], Iterator[bytes]]:
    def send(_is_gone: Callable[[], bool]) -> Iterator[bytes]:
        with file:
            while part := file.read(SMALL):
                yield part

    return send
