"""`/vo/file`: a whole file of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from swathe.core.errors import NotFoundError
from swathe.portal.access import downloads_of
from swathe.portal.http.ranges import answer_with
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import from_query
from swathe.portal.whole_file import FITS, media_type_of, whole_file

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.vo.service import Service


async def file(service: Service, request: Request) -> Response:
    """Return a file, or a range of it. A file on a web server gives a redirect."""
    did = _did(request)

    def find() -> Response:
        match = service.images.match(did)
        service.portal.sources.check(match.file)
        name = match.granule.path.rpartition("/")[2]
        try:
            whole = whole_file(match.file, name, media_type_of(name, FITS))
        except NotFoundError as error:
            raise usage(f"ID: {error}", 404) from error
        if isinstance(whole, str):
            return RedirectResponse(whole, 303)
        return answer_with(request, downloads_of(request), whole, {})

    return await service.workers.run(find)


def _did(request: Request) -> str:
    did = from_query(request.scope["query_string"]).one("ID")
    if did is None:
        raise usage("ID: expected an image, found none")
    return did
