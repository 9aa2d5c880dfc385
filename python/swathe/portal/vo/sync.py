"""`/vo/sync`: SODA 1.0, one cut at once.

Most cuts take less than going to another thread and back. So what is known, local, uncompressed and
small is cut where the request came in; all else by threads, of which there are few, and few wait.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from swathe.errors import ChangedError
from swathe.portal.vo.faults import usage
from swathe.portal.vo.parameters import from_query, read_parameters
from swathe.portal.vo.selection import select
from swathe.portal.vo.wanted import read_wanted

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.vo.images import Held, Images
    from swathe.portal.vo.parameters import Parameters
    from swathe.portal.vo.selection import Pixels
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.wanted import Wanted

FITS = "application/fits"
PNG = "image/png"
FORMATS = {FITS: FITS, "image/fits": FITS, "fits": FITS, PNG: PNG, "png": PNG}
LARGEST = 256_000_000
"""Bytes of pixels in one answer: it is made in memory."""
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
            return _fits(held, pixels)
    return await service.workers.run(lambda: _cut(images, did, wanted, media_type))


def response_format(given: Parameters) -> str:
    """Give the media type asked for, by default that of FITS."""
    value = given.one("RESPONSEFORMAT")
    if value is None:
        return FITS
    found = FORMATS.get(value.strip().lower())
    if found is None:
        raise usage(f"RESPONSEFORMAT: expected {FITS} or {PNG}, found {value[:80]!r}")
    return found


def _cut(images: Images, did: str, wanted: Wanted, media_type: str) -> Response:
    try:
        return _cut_from(images.get(did), wanted, media_type)
    except ChangedError:
        # What the index keeps of an object on a server may be behind.
        return _cut_from(images.get(did, fresh=True), wanted, media_type)


def _cut_from(held: Held, wanted: Wanted, media_type: str) -> Response:
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
        return _fits(held, pixels)
    from swathe.preview import picture

    start, stop = list(pixels.start), list(pixels.stop)
    for axis in range(2, len(start)):
        stop[axis] = start[axis] + 1
    file = io.BytesIO()
    picture(pixels.image.cut_all_axes(start, stop, "strict").data).save(file, "PNG")
    return Response(file.getvalue(), 200, _attached(held, pixels, "png"), PNG)


def _fits(held: Held, pixels: Pixels) -> Response:
    content = pixels.image._native.cut(
        pixels.image.index, pixels.start, pixels.stop, "strict", None
    ).fits()
    return Response(content, 200, _attached(held, pixels, "fits"), FITS)


def _attached(held: Held, pixels: Pixels, suffix: str) -> dict[str, str]:
    """Say what the file is to be called: that of the image, HDU, first pixel."""
    stem = UNSAFE.sub("_", held.match.granule.path.rpartition("/")[2].partition(".")[0])[:60]
    first = "-".join(str(at + 1) for at in pixels.start[:2])
    name = f"{stem or 'cut'}-{pixels.image.index}-{first}.{suffix}"
    return {"Content-Disposition": f'attachment; filename="{name}"'}
