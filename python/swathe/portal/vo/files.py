"""`/vo/file` and `/vo/preview`: a file of a dataset as it is, and a picture of an image in it."""

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
"""Pixels along each side of a picture."""
MOST_PIXELS = 16_000_000
"""That are read for one; of larger images the middle is shown."""
KEPT_S = 3600
TYPES = {
    ".gz": "application/gzip",
    ".bz2": "application/x-bzip2",
    ".Z": "application/x-compress",
}


def media_type_of(path: str) -> str:
    """Give the media type of an object by its name."""
    return next((kind for end, kind in TYPES.items() if path.endswith(end)), "application/fits")


def place_of(match: Match) -> str:
    """Give the path or URL of a granule's object, without credentials."""
    stores = known_stores()
    return match.file if stores is None else stores.locate(match.file)[1]


def is_served(match: Match) -> bool:
    """Tell whether the whole file can be had: it lies here, or on a server of the web."""
    return place_of(match).startswith(("/", "http://", "https://"))


async def file(service: Service, request: Request) -> Response:
    """Answer with a file, or a range of it; one on a server of the web is to be fetched there."""
    did = _did(request)

    def find() -> Response:
        match = service.images.match(did)
        service.portal.sources.allowed(match.file)
        place = place_of(match)
        if place.startswith(("http://", "https://")):
            return RedirectResponse(place, 303)
        if not is_served(match):
            raise usage(
                "ID: this file lies where it cannot be fetched as a whole; cut from it", 404
            )
        return answer_with(request, downloads_of(request), _whole(match), {})

    return await service.workers.run(find)


def _whole(match: Match) -> Result:
    """Return a file as it is, opened below the root of its store.

    Raises:
        NotFoundError: where there is none.
        AccessError: where it leads out of its store.
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
    """Answer with a picture."""
    did = _did(request)
    content = await service.workers.run(lambda: _picture(service.images.get(did)))
    headers = {"Cache-Control": f"private, max-age={KEPT_S}"}
    return Response(content, 200, headers, PREVIEW_TYPE)


def _did(request: Request) -> str:
    did = from_query(request.scope["query_string"]).one("ID")
    if did is None:
        raise usage("ID is missing: which image?")
    return did


def _picture(held: OpenImage) -> bytes:
    from swathe.files.preview import picture

    if len(held.lengths) < 2:
        raise usage(f"ID: {held.did} has no plane to be shown")
    start, stop = [0] * len(held.lengths), [1] * len(held.lengths)
    width, height = held.lengths[:2]
    side = int(MOST_PIXELS**0.5)
    if width * height <= MOST_PIXELS:
        stop[:2] = width, height
    else:
        wide = min(width, max(side, MOST_PIXELS // height))
        high = min(height, MOST_PIXELS // wide)
        start[:2] = (width - wide) // 2, (height - high) // 2
        stop[:2] = start[0] + wide, start[1] + high
    shown = picture(held.image.cut_all_axes(start, stop, "strict").data)
    shown.thumbnail((LARGEST_PREVIEW, LARGEST_PREVIEW))
    made = io.BytesIO()
    shown.save(made, "PNG")
    return made.getvalue()
