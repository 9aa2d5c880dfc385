"""`/vo/file` and `/vo/preview`: a whole file of a dataset, and a picture of an image in it."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from swathe.core.errors import NotFoundError
from swathe.jobs import Result
from swathe.portal.access import downloads_of
from swathe.portal.http.ranges import PART, answer_with
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import from_query
from swathe.stores.bucket_results import reader
from swathe.stores.registry import known_stores

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.catalog import Match
    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.service import Service

PREVIEW_TYPE = "image/png"
LARGEST_PREVIEW = 512
"""Maximum side of a picture, pixels."""
MOST_PIXELS = 16_000_000
"""Maximum number of pixels read for a picture; of larger images the centre is shown."""
KEPT_S = 3600
TYPES = {
    ".gz": "application/gzip",
    ".bz2": "application/x-bzip2",
    ".Z": "application/x-compress",
}


def media_type_of(path: str) -> str:
    """Return the media type of an object, from its name."""
    return next((kind for end, kind in TYPES.items() if path.endswith(end)), "application/fits")


def place_of(match: Match) -> str:
    """Return the path or URL of a granule's object, without credentials."""
    stores = known_stores()
    return match.file if stores is None else stores.locate(match.file)[1]


def is_served(match: Match) -> bool:
    """Return whether the whole file can be downloaded: it is local, or on a web server."""
    return place_of(match).startswith(("/", "http://", "https://"))


async def file(service: Service, request: Request) -> Response:
    """Return a file, or a range of it. A file on a web server gives a redirect."""
    did = _did(request)

    def find() -> Response:
        match = service.images.match(did)
        service.portal.sources.check(match.file)
        place = place_of(match)
        if place.startswith(("http://", "https://")):
            return RedirectResponse(place, 303)
        if not is_served(match):
            raise usage(
                "ID: expected a local file or one on a web server, found another store; only "
                "cutouts of it are served",
                404,
            )
        return answer_with(request, downloads_of(request), _full_file(match), {})

    return await service.workers.run(find)


def _full_file(match: Match) -> Result:
    """Return a whole file, opened below the root of its store.

    Raises:
        NotFoundError: If there is no such file.
        AccessError: If the file is outside its store.
    """
    stores = known_stores()
    if stores is None:
        raise NotFoundError(f"{match.file}: no such file")
    source = stores.open(match.file)
    name = match.granule.path.rpartition("/")[2]
    etag = f'"{hashlib.sha256(source.version.encode()).hexdigest()[:32]}"'
    kind = media_type_of(name)
    return Result(match.file, name, source.size, etag, kind, "", lambda: reader(source, PART))


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
