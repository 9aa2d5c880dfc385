"""`/vo/sync`: SODA 1.0, one cut at once.

Most cuts take less than going to another thread and back. So what is known, local, uncompressed and
small is cut where the request came in; all else by threads, of which there are few, and few wait.
"""

from __future__ import annotations

import io
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.responses import Response

from swathe.core.errors import ChangedError
from swathe.portal.vo.cutout_request import read_wanted
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry.regions import Polygon
from swathe.portal.vo.parameters import from_query, read_parameters
from swathe.portal.vo.soda.selection import select
from swathe.portal.vo.thread_limit import LargeAnswer

if TYPE_CHECKING:
    from starlette.requests import Request
    from typing_extensions import Buffer

    from swathe._swathe import Cutout
    from swathe.files.file import Image
    from swathe.portal.vo.cutout_request import Wanted
    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.parameters import Parameters
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.soda.selection import Pixels

FITS = "application/fits"
PNG = "image/png"
FORMATS = {FITS: FITS, "image/fits": FITS, "fits": FITS, PNG: PNG, "png": PNG}
LARGEST = 256_000_000
"""Bytes of pixels in one answer: it is made in memory."""
PICTURE_BYTES = 24
"""Memory that a picture takes for each pixel while it is made."""
MOST_PIXELS = 1 << 25
"""Of a picture."""
CORNER_BYTES = 400_000
"""Of a polygon: with 1000 corners two are looked for at once, for they take seconds."""
BLOCK = 2880
"""Bytes of a block of a FITS file."""
SMALL = 1_000_000
"""Bytes of pixels that are cut without a thread of their own: from a page cache in 0.3 ms."""
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


async def cut(service: Service, request: Request) -> Response:
    """Answer a request with a cut, with 204 where no pixel is in it, or with what is wrong."""
    if request.method == "GET":
        given = from_query(request.scope["query_string"])
    else:
        given = await read_parameters(request)
    did = given.one("ID")
    if did is None:
        raise usage("ID is missing: which image?")
    media_type = response_format(given)
    wanted = read_wanted(given)
    images = service.images
    held = images.kept(did)
    if held is not None and media_type == FITS and held.is_quick(wanted):
        pixels = select(held, wanted)
        if pixels is None:
            return Response(status_code=204)
        if pixels.count * held.pixel_bytes <= SMALL:
            with suppress(ChangedError):  # else it is opened anew, below
                return _fits(held, pixels)
    return await service.workers.run(lambda: _cut(service, did, wanted, media_type))


def response_format(given: Parameters) -> str:
    """Give the media type asked for, by default that of FITS."""
    value = given.one("RESPONSEFORMAT")
    if value is None:
        return FITS
    found = FORMATS.get(value.strip().lower())
    if found is None:
        raise usage(f"RESPONSEFORMAT: expected {FITS} or {PNG}, found {value[:80]!r}")
    return found


def _cut(service: Service, did: str, wanted: Wanted, media_type: str) -> Response:
    images = service.images
    try:
        return _cut_from(service, images.get(did), wanted, media_type)
    except ChangedError:
        # What the index keeps of an object on a server may be behind.
        return _cut_from(service, images.get(did, fresh=True), wanted, media_type)


def _cut_from(service: Service, held: OpenImage, wanted: Wanted, media_type: str) -> Response:
    with service.memory.take(_outline_bytes(wanted)):
        pixels = select(held, wanted)
    if pixels is None:
        return Response(status_code=204)
    size = pixels.count * held.bytes_of(pixels.image)
    if size > LARGEST:
        raise usage(
            f"this would be {size / 1e6:.0f} MB; at most {LARGEST / 1e6:.0f} MB are cut at once, "
            "more by a job: async",
            413,
        )
    if media_type == FITS:
        if size <= SMALL:
            return _fits(held, pixels)
        share = service.memory.take(size)
        return LargeAnswer(share, _parts(pixels), _attached(held, pixels, "fits"), FITS)
    start, stop = list(pixels.start), list(pixels.stop)
    for axis in range(2, len(start)):
        stop[axis] = start[axis] + 1
    count = math.prod(last - first for first, last in zip(start, stop, strict=True))
    if count > MOST_PIXELS:
        raise usage(f"a picture has at most {MOST_PIXELS:,} pixels, this would have {count:,}", 413)
    with service.memory.take(count * PICTURE_BYTES):
        content = _picture(pixels.image, start, stop)
    return Response(content, 200, _attached(held, pixels, "png"), PNG)


def _picture(image: Image, start: list[int], stop: list[int]) -> bytes:
    """Return a plane as PNG."""
    from swathe.files.preview import picture

    file = io.BytesIO()
    picture(image.cut_all_axes(start, stop, "strict").data).save(file, "PNG")
    return file.getvalue()


def _outline_bytes(wanted: Wanted) -> int:
    """Return the memory that following an outline may take, with what it does for each corner."""
    region = wanted.region
    return len(region.corners) * CORNER_BYTES if isinstance(region, Polygon) else 0


def _fits(held: OpenImage, pixels: Pixels) -> Response:
    return Response(_cutout(pixels).fits(), 200, _attached(held, pixels, "fits"), FITS)


def _cutout(pixels: Pixels) -> Cutout:
    native, index = pixels.image._native, pixels.image.index
    return native.cut(index, pixels.start, pixels.stop, "strict", None)


def _parts(pixels: Pixels) -> list[Buffer]:
    """Return a FITS file in parts, whose pixels are those of the engine, not a copy."""
    cutout = _cutout(pixels)
    size = len(memoryview(cutout.stored))
    return [cutout.header, cutout.stored, bytes(-size % BLOCK)]


def _attached(held: OpenImage, pixels: Pixels, suffix: str) -> dict[str, str]:
    """Say what the file is to be called: that of the image, HDU, first pixel."""
    stem = UNSAFE.sub("_", held.match.granule.path.rpartition("/")[2].partition(".")[0])[:60]
    first = "-".join(str(at + 1) for at in pixels.start[:2])
    name = f"{stem or 'cut'}-{pixels.image.index}-{first}.{suffix}"
    return {"Content-Disposition": f'attachment; filename="{name}"'}
