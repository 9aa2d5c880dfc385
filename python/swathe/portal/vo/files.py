"""`/vo/file` and `/vo/preview`: a whole file of a dataset, and a picture of an image in it."""

from __future__ import annotations

import io
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

    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.service import Service

PREVIEW_TYPE = "image/png"
LARGEST_PREVIEW = 512
"""Maximum side of a picture, pixels."""
MOST_PIXELS = 16_000_000
"""Maximum number of pixels read for a picture; of larger images the centre is shown."""
KEPT_S = 3600


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


async def preview(service: Service, request: Request) -> Response:
    """Return a picture of an image."""
    did = _did(request)
    content = await service.workers.run(lambda: _picture(service.images.get(did)))
    headers = {"Cache-Control": f"private, max-age={KEPT_S}"}
    return Response(content, 200, headers, PREVIEW_TYPE)


def _did(request: Request) -> str:
    did = from_query(request.scope["query_string"]).one("ID")
    if did is None:
        raise usage("ID: expected an image, found none")
    return did


def _picture(image: OpenImage) -> bytes:
    from swathe.files.preview import picture

    if len(image.lengths) < 2:
        raise usage(f"ID: {image.did}: expected an image with a plane to show, found one axis")
    start, stop = [0] * len(image.lengths), [1] * len(image.lengths)
    width, height = image.lengths[:2]
    side = int(MOST_PIXELS**0.5)
    if width * height <= MOST_PIXELS:
        stop[:2] = width, height
    else:
        wide = min(width, max(side, MOST_PIXELS // height))
        high = min(height, MOST_PIXELS // wide)
        start[:2] = (width - wide) // 2, (height - high) // 2
        stop[:2] = start[0] + wide, start[1] + high
    thumbnail = picture(image.image.cut_all_axes(start, stop, "strict").data)
    thumbnail.thumbnail((LARGEST_PREVIEW, LARGEST_PREVIEW))
    buffer = io.BytesIO()
    thumbnail.save(buffer, "PNG")
    return buffer.getvalue()
