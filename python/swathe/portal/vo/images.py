"""Cache of open images by DID, so that repeated cuts need no look-up and no header read.

The catalogue is queried again every few seconds, and a changed file is opened again. Only granules
of the catalogue can be read, from files that `Sources` allows.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.spherical import directions
from swathe.files.file import File, open_from_cache
from swathe.portal.vo.axes import spectral_axis, stokes_axis, time_axis
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry.fast_wcs import FastWcs
from swathe.portal.vo.geometry.regions import Polygon
from swathe.portal.vo.identifiers import did_of, read_did

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe._swathe import HduInfo, HduKey
    from swathe.catalog import Match
    from swathe.files.image import Image
    from swathe.portal.context import Portal
    from swathe.portal.vo.axes import Axis, Stokes
    from swathe.portal.vo.cutout_request import CutoutRequest
    from swathe.portal.vo.geometry.regions import SkyRegion

FRESH_S = 5.0
"""Time for which an entry of the catalogue is cached."""
MOST_IMAGES = 500
"""Number of open images. Each takes some 10 kB, and a file descriptor if it is local."""

FEW_CORNERS = 16
"""Maximum number of corners of a polygon that is handled in the event loop."""
ROUNDING = 1e-12
"""Rounding error of a cosine."""

State = tuple[int, int, int, int]


class OpenImage:
    """An open image, with its axes computed on first use."""

    def __init__(self, did: str, match: Match, image: Image, state: State | None) -> None:
        """Set the image and its granule; `state` changes when a local file does."""
        self.did, self.match, self.image, self.state = did, match, image, state
        self.native = image._native
        self.shape = image.shape
        self.lengths = self.shape[::-1]
        self.checked_at = time.monotonic()
        self._centre: NDArray[np.float64] | None = None

    @cached_property
    def plain(self) -> bool:
        """Whether the file is local and not compressed."""
        codec = self.info(self.image.index).codec
        return self.state is not None and self.native.kind == "plain" and codec is None

    @cached_property
    def pixel_bytes(self) -> int:
        """Bytes per stored pixel."""
        return self.bytes_of(self.image)

    def bytes_of(self, image: Image) -> int:
        """Return the bytes per stored pixel of another image of the same file."""
        return abs(self.info(image.index).bitpix or 64) // 8

    def info(self, index: int) -> HduInfo:
        """Return the description of an HDU."""
        return next(info for info in self.native.hdus() if info.index == index)

    def is_quick(self, request: CutoutRequest) -> bool:
        """Return whether pixels can be selected fast: by a formula, with all axes known."""
        ready = self.__dict__
        if not self.plain or request.hdu is not None or request.states:
            return False
        if (request.band and "spectral" not in ready) or (request.time and "times" not in ready):
            return False
        region = request.region
        if isinstance(region, Polygon) and len(region.corners) > FEW_CORNERS:
            return False
        return region is None or (
            "places" in ready and "sky_axes" in ready and self.orderly and self.places.quick
        )

    @cached_property
    def places(self) -> FastWcs:
        """Mapping between the sky and the image.

        Raises:
            RegionError: If the image has no sky coordinates.
        """
        return FastWcs(self.image.sky)

    @cached_property
    def sky_axes(self) -> tuple[int, int]:
        """Numbers of the two sky axes; 0 is NAXIS1."""
        return self.image.sky.axes_among(len(self.lengths))

    @property
    def orderly(self) -> bool:
        """Whether the outline is known, so that each sky position is one pixel."""
        footprint = self.match.granule.footprint
        return footprint is not None and footprint.outline is not None

    def is_away(self, region: SkyRegion) -> bool:
        """Return whether a region is too far away to be on the image."""
        footprint = self.match.granule.footprint
        if footprint is None:
            return False
        if self._centre is None:
            self._centre = directions(np.array(footprint.s_ra), np.array(footprint.s_dec))
        reach = math.radians(footprint.s_fov / 2) + region.radius
        return reach < math.pi and float(self._centre @ region.centre) < math.cos(reach) - ROUNDING

    @cached_property
    def spectral(self) -> Axis | None:
        """Return the axis of wavelengths, or `None`."""
        return spectral_axis(self.image.wcs, self.lengths)

    @cached_property
    def times(self) -> Axis | None:
        """Return the time axis, or `None`."""
        return time_axis(self.image.wcs, self.lengths)

    @cached_property
    def stokes(self) -> Stokes | None:
        """The axis of polarization, or None."""
        return stokes_axis(self.image.wcs, self.lengths)

    def extension(self, hdu: HduKey | None) -> Image:
        """Return another image of the same file."""
        return self.image if hdu is None else File(self.native)[hdu]


class Images:
    """The cache of open images of one portal."""

    def __init__(self, portal: Portal) -> None:
        """Set the portal whose images are cached."""
        self._portal = portal
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, OpenImage] = OrderedDict()

    def from_cache(self, did: str) -> OpenImage | None:
        """Return a cached image without any read, or None."""
        with self._lock:
            image = self._cache.get(did)
            if image is None or time.monotonic() - image.checked_at > FRESH_S:
                return None
            self._cache.move_to_end(did)
        if image.state is not None and _state(image.native.url) != image.state:
            return None
        return image

    def match(self, did: str) -> Match:
        """Return the granule that a DID names.

        Raises:
            VoError: If the text is not a DID, or names no image.
        """
        identifier = read_did(self._portal.config.vo.authority, did)
        granule = self._portal.catalog.granule(identifier.dataset, identifier.path, identifier.hdu)
        if granule is None:
            raise usage(f"ID: no such image: {did[:500]!r}", 404)
        return granule

    def get(self, did: str, fresh: bool = False) -> OpenImage:
        """Return an image. With `fresh`, open it again without the caches.

        Raises:
            VoError: If the text is not a DID, or names no image.
            SwatheError: If its file cannot be read.
        """
        image = None if fresh else self.from_cache(did)
        if image is not None:
            return image
        match = self.match(did)
        with self._lock:
            previous = self._cache.get(did)
        if (
            not fresh
            and previous is not None
            and previous.match == match
            and (previous.state is None or _state(previous.native.url) == previous.state)
        ):
            previous.checked_at = time.monotonic()
            return previous
        self._portal.sources.check(match.file)
        file = open_from_cache(match.file, fresh=fresh)
        canonical_did = did_of(self._portal.config.vo.authority, match.dataset, match.granule)
        image = OpenImage(canonical_did, match, file[match.granule.hdu], _state(file.url))
        with self._lock:
            self._cache[did] = image
            self._cache.move_to_end(did)
            while len(self._cache) > MOST_IMAGES:
                self._cache.popitem(last=False)
        return image


def _state(path: str) -> State | None:
    """Return a value that changes when a local file does; `None` for a URL or a missing file."""
    if "://" in path:
        return None
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
