"""Selection of pixels for a cutout request: one box, and planes of a cube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import RegionError
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry.bounding_box import smallest_box

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.files.image import Image
    from swathe.portal.vo.cutout_request import CutoutRequest
    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.parameters import Interval


@dataclass(frozen=True)
class Pixels:
    """Pixels of an image, `[start, stop)` of all axes, NAXIS1 first."""

    image: Image
    start: list[int]
    stop: list[int]

    @property
    def count(self) -> int:
        """Number of pixels."""
        return math.prod(last - first for first, last in zip(self.start, self.stop, strict=True))


def select(open_image: OpenImage, request: CutoutRequest) -> Pixels | None:
    """Return the requested pixels of an image, or None if there are none.

    Raises:
        VoError: If the header has no information for a requested selection.
        RegionError: If the image has no sky coordinates.
    """
    image = open_image.image if request.hdu is None else open_image.extension(request.hdu)
    lengths = open_image.lengths if image is open_image.image else image.shape[::-1]
    start, stop = [0] * len(lengths), list(lengths)
    if not _narrow_planes(open_image, request, start, stop):
        return None
    if request.region is not None:
        if open_image.is_away(request.region):
            return None
        places, (first, second) = open_image.places, open_image.sky_axes
        box = smallest_box(
            request.region, places, lengths[first], lengths[second], open_image.orderly
        )
        if box is None:
            return None
        start[first], start[second] = box[:2]
        stop[first], stop[second] = box[0] + box[2], box[1] + box[3]
    elif request.box is not None:
        if len(lengths) < 2:
            raise RegionError(
                f"{image.url}, HDU {image.index}: expected two axes or more, found {len(lengths)}"
            )
        x0, y0, width, height = request.box
        start[:2] = x0, y0
        stop[:2] = min(stop[0], x0 + width), min(stop[1], y0 + height)
    if any(first >= last for first, last in zip(start, stop, strict=True)):
        return None
    return Pixels(image, start, stop)


def _narrow_planes(
    image: OpenImage, request: CutoutRequest, start: list[int], stop: list[int]
) -> bool:
    """Reduce the planes to those requested. Return whether there are any."""
    if request.band is None and request.time is None and not request.states:
        return True
    if request.hdu is not None and image.extension(request.hdu).index != image.image.index:
        raise usage("SUB: expected the image's own extension with BAND, TIME or POL, found another")
    granule = image.match.granule
    for name, interval, axis, header_range in (
        ("BAND", request.band, "spectral", (granule.em_min, granule.em_max)),
        ("TIME", request.time, "times", (granule.t_min, granule.t_max)),
    ):
        if interval is None:
            continue
        plane_axis = getattr(image, axis)
        if plane_axis is None:
            if not _overlaps(name, interval, header_range):
                return False
            continue
        span = plane_axis.planes(interval)
        if span is None:
            return False
        start[plane_axis.number], stop[plane_axis.number] = span
    if request.states:
        stokes = image.stokes
        if stokes is None:
            raise usage("POL: expected an image with a polarization axis, found none")
        span = stokes.planes(request.states)
        if span is None:
            return False
        start[stokes.number], stop[stokes.number] = span
    return True


def _overlaps(name: str, request: Interval, bounds: Sequence[float | None]) -> bool:
    """Return whether the range of a whole image overlaps an interval."""
    low, high = bounds
    if low is None and high is None:
        raise usage(f"{name}: expected an image with {name} in its header, found none")
    first = high if low is None else low
    last = low if high is None else high
    assert first is not None and last is not None
    return first <= request[1] and last >= request[0]
