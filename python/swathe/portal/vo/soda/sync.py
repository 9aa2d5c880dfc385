"""`/vo/sync`: SODA 1.0, one synchronous cut.

Most cuts take less time than a switch to another thread. So small cuts from cached, local and
uncompressed images run in the event loop. All others run in a limited number of threads, with a
limited queue.
"""

from __future__ import annotations

import io
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.responses import Response

from swathe.core.errors import ChangedError
from swathe.files.hdu import BLOCK
from swathe.portal.vo.cutout_request import read_cutout_request
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry.regions import Polygon
from swathe.portal.vo.parameters import from_query, read_parameters
from swathe.portal.vo.soda.selection import select
from swathe.portal.vo.thread_limit import LargeResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from typing_extensions import Buffer

    from swathe._swathe import Cutout
    from swathe.files.image import Image
    from swathe.portal.vo.cutout_request import CutoutRequest
    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.parameters import RequestParameters
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.soda.selection import Pixels

FITS = "application/fits"
PNG = "image/png"
FORMATS = {FITS: FITS, "image/fits": FITS, "fits": FITS, PNG: PNG, "png": PNG}
LARGEST = 256_000_000
"""Maximum size of the pixels of one response, which is made in memory, bytes."""
PICTURE_BYTES = 24
"""Memory per pixel while a picture is made."""
MOST_PIXELS = 1 << 25
"""Maximum number of pixels of a picture."""
CORNER_BYTES = 400_000
"""Memory share per corner of a polygon, so that two with 1000 corners run at once: each takes
seconds."""
SMALL = 1_000_000
"""Maximum size of pixels that are cut in the event loop: 0.3 ms from the page cache, bytes."""
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


async def cut(service: Service, request: Request) -> Response:
    """Return a cut, 204 if it has no pixel, or an error."""
    if request.method == "GET":
        query_parameters = from_query(request.scope["query_string"])
    else:
        query_parameters = await read_parameters(request)
    did = query_parameters.one("ID")
    if did is None:
        raise usage("ID: expected an image, found none")
    media_type = response_format(query_parameters)
    cutout_request = read_cutout_request(query_parameters)
    images = service.images
    image = images.from_cache(did)
    if image is not None and media_type == FITS and image.is_quick(cutout_request):
        pixels = select(image, cutout_request)
        if pixels is None:
            return Response(status_code=204)
        if pixels.count * image.pixel_bytes <= SMALL:
            with suppress(ChangedError):  # a changed file is opened again below
                return _fits(image, pixels)
    return await service.workers.run(lambda: _cut(service, did, cutout_request, media_type))


def response_format(query: RequestParameters) -> str:
    """Return the requested media type, by default that of FITS."""
    value = query.one("RESPONSEFORMAT")
    if value is None:
        return FITS
    media_type = FORMATS.get(value.strip().lower())
    if media_type is None:
        raise usage(f"RESPONSEFORMAT: expected {FITS} or {PNG}, found {value[:80]!r}")
    return media_type


def _cut(service: Service, did: str, cutout_request: CutoutRequest, media_type: str) -> Response:
    images = service.images
    try:
        return _cut_from(service, images.get(did), cutout_request, media_type)
    except ChangedError:
        # The index may have an old version of an object on a server.
        return _cut_from(service, images.get(did, fresh=True), cutout_request, media_type)


def _cut_from(
    service: Service, image: OpenImage, cutout_request: CutoutRequest, media_type: str
) -> Response:
    with service.memory.take(_outline_bytes(cutout_request)):
        pixels = select(image, cutout_request)
    if pixels is None:
        return Response(status_code=204)
    size = pixels.count * image.bytes_of(pixels.image)
    if size > LARGEST:
        raise usage(
            f"the cut: expected at most {LARGEST / 1e6:.0f} MB, found {size / 1e6:.0f} MB; for "
            "larger ones, submit a job: async",
            413,
        )
    if media_type == FITS:
        if size <= SMALL:
            return _fits(image, pixels)
        share = service.memory.take(size)
        return LargeResponse(share, _parts(pixels), _name_header(image, pixels, "fits"), FITS)
    start, stop = list(pixels.start), list(pixels.stop)
    for axis in range(2, len(start)):
        stop[axis] = start[axis] + 1
    count = math.prod(last - first for first, last in zip(start, stop, strict=True))
    if count > MOST_PIXELS:
        raise usage(f"the picture: expected at most {MOST_PIXELS:,} pixels, found {count:,}", 413)
    with service.memory.take(count * PICTURE_BYTES):
        content = _picture(pixels.image, start, stop)
    return Response(content, 200, _name_header(image, pixels, "png"), PNG)


def _picture(image: Image, start: list[int], stop: list[int]) -> bytes:
    """Return a plane as a PNG picture."""
    from swathe.files.preview import picture

    file = io.BytesIO()
    picture(image.cut_all_axes(start, stop, "strict").data).save(file, "PNG")
    return file.getvalue()


def _outline_bytes(cutout_request: CutoutRequest) -> int:
    """Return the memory that the outline of a region may need, which grows with its corners."""
    region = cutout_request.region
    return len(region.corners) * CORNER_BYTES if isinstance(region, Polygon) else 0


def _fits(image: OpenImage, pixels: Pixels) -> Response:
    return Response(_cutout(pixels).fits(), 200, _name_header(image, pixels, "fits"), FITS)


def _cutout(pixels: Pixels) -> Cutout:
    native, index = pixels.image._native, pixels.image.index
    return native.cut(index, pixels.start, pixels.stop, "strict", None)


def _parts(pixels: Pixels) -> list[Buffer]:
    """Return a FITS file in parts, whose pixels are those of the engine, not a copy."""
    cutout = _cutout(pixels)
    size = len(memoryview(cutout.stored))
    return [cutout.header, cutout.stored, bytes(-size % BLOCK)]


def _name_header(image: OpenImage, pixels: Pixels, suffix: str) -> dict[str, str]:
    """Return the header with the file name, made of image, HDU and first pixel."""
    stem = UNSAFE.sub("_", image.match.granule.path.rpartition("/")[2].partition(".")[0])[:60]
    first = "-".join(str(at + 1) for at in pixels.start[:2])
    name = f"{stem or 'cut'}-{pixels.image.index}-{first}.{suffix}"
    return {"Content-Disposition": f'attachment; filename="{name}"'}
