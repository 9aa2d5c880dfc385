"""Images by their DIDs, kept open: whoever cuts again finds them resolved, read and understood.

What a DID names is asked of the catalogue, every few seconds anew; a file that changed is opened
anew. Nothing but granules of the catalogue can be read, and of their files what `Sources` allows.
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
from swathe.files.file import File, open_cached
from swathe.portal.vo.axes import spectral_axis, stokes_axis, time_axis
from swathe.portal.vo.errors import usage
from swathe.portal.vo.geometry.fast_wcs import Places
from swathe.portal.vo.geometry.regions import Polygon
from swathe.portal.vo.identifiers import did_of, read_did

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe._swathe import HduInfo, HduKey
    from swathe.catalog import Match
    from swathe.files.file import Image
    from swathe.portal.context import Portal
    from swathe.portal.vo.axes import Axis, Stokes
    from swathe.portal.vo.cutout_request import Wanted
    from swathe.portal.vo.geometry.regions import Region

FRESH_S = 5.0
"""How long the catalogue is taken at its word."""
MOST_IMAGES = 500
"""Kept open. Each takes some tens of kilobytes, and a file descriptor where it is local."""

FEW_CORNERS = 16
"""Of a polygon that is followed at once."""
ROUNDING = 1e-12
"""Of a cosine."""

State = tuple[int, int, int, int]


class OpenImage:
    """An image that is open, and what is known of its axes once that was asked for."""

    def __init__(self, did: str, match: Match, image: Image, state: State | None) -> None:
        """Take what was found; `state` changes when a local file does."""
        self.did, self.match, self.image, self.state = did, match, image, state
        self.native = image._native
        self.shape = image.shape
        self.lengths = self.shape[::-1]
        self.checked_at = time.monotonic()
        self._centre: NDArray[np.float64] | None = None

    @cached_property
    def plain(self) -> bool:
        """Whether it lies on this machine as it is, not compressed."""
        codec = self.info(self.image.index).codec
        return self.state is not None and self.native.kind == "plain" and codec is None

    @cached_property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel as it is stored."""
        return self.bytes_of(self.image)

    def bytes_of(self, image: Image) -> int:
        """Give the bytes of a pixel of another image of the same file."""
        return abs(self.info(image.index).bitpix or 64) // 8

    def info(self, index: int) -> HduInfo:
        """Give what is in an HDU."""
        return next(info for info in self.native.hdus() if info.index == index)

    def is_quick(self, wanted: Wanted) -> bool:
        """Tell whether pixels can be found at once: all it takes is known, and is a formula."""
        ready = self.__dict__
        if not self.plain or wanted.hdu is not None or wanted.states:
            return False
        if (wanted.band and "spectral" not in ready) or (wanted.time and "times" not in ready):
            return False
        region = wanted.region
        if isinstance(region, Polygon) and len(region.corners) > FEW_CORNERS:
            return False
        return region is None or (
            "places" in ready and "sky_axes" in ready and self.orderly and self.places.quick
        )

    @cached_property
    def places(self) -> Places:
        """The sky on it.

        Raises:
            RegionError: where it shows none.
        """
        return Places(self.image.sky)

    @cached_property
    def sky_axes(self) -> tuple[int, int]:
        """The two axes of the sky, 0 is NAXIS1."""
        return self.image.sky.axes_among(len(self.lengths))

    @property
    def orderly(self) -> bool:
        """Whether its outline is known: one place of the sky is one pixel all over it."""
        covered = self.match.granule.footprint
        return covered is not None and covered.outline is not None

    def is_away(self, region: Region) -> bool:
        """Tell whether a region is so far away that it cannot be on it."""
        covered = self.match.granule.footprint
        if covered is None:
            return False
        if self._centre is None:
            self._centre = directions(np.array(covered.s_ra), np.array(covered.s_dec))
        reach = math.radians(covered.s_fov / 2) + region.radius
        return reach < math.pi and float(self._centre @ region.centre) < math.cos(reach) - ROUNDING

    @cached_property
    def spectral(self) -> Axis | None:
        """Its axis of wavelengths."""
        return spectral_axis(self.image.wcs, self.lengths)

    @cached_property
    def times(self) -> Axis | None:
        """Its axis of times."""
        return time_axis(self.image.wcs, self.lengths)

    @cached_property
    def stokes(self) -> Stokes | None:
        """Its axis of polarization."""
        return stokes_axis(self.image.wcs, self.lengths)

    def extension(self, hdu: HduKey | None) -> Image:
        """Give another image of the same file."""
        return self.image if hdu is None else File(self.native)[hdu]


class Images:
    """The images of one portal."""

    def __init__(self, portal: Portal) -> None:
        """Take where they are found."""
        self._portal = portal
        self._lock = threading.Lock()
        self._held: OrderedDict[str, OpenImage] = OrderedDict()

    def kept(self, did: str) -> OpenImage | None:
        """Give an image without reading anything, where that can be done."""
        with self._lock:
            held = self._held.get(did)
            if held is None or time.monotonic() - held.checked_at > FRESH_S:
                return None
            self._held.move_to_end(did)
        if held.state is not None and _state(held.native.url) != held.state:
            return None
        return held

    def match(self, did: str) -> Match:
        """Give the granule that a DID names.

        Raises:
            VoError: where it is none, or names nothing.
        """
        named = read_did(self._portal.config.vo.authority, did)
        found = self._portal.catalog.granule(named.dataset, named.path, named.hdu)
        if found is None:
            raise usage(f"ID: there is no image {did[:500]!r} here", 404)
        return found

    def get(self, did: str, fresh: bool = False) -> OpenImage:
        """Give an image; `fresh`: as it is now, whatever is known of it.

        Raises:
            VoError: where a DID is none, or names nothing.
            SwatheError: where its file cannot be read.
        """
        held = None if fresh else self.kept(did)
        if held is not None:
            return held
        match = self.match(did)
        with self._lock:
            before = self._held.get(did)
        if (
            not fresh
            and before is not None
            and before.match == match
            and (before.state is None or _state(before.native.url) == before.state)
        ):
            before.checked_at = time.monotonic()
            return before
        self._portal.sources.allowed(match.file)
        file = open_cached(match.file, fresh=fresh)
        own = did_of(self._portal.config.vo.authority, match)
        held = OpenImage(own, match, file[match.granule.hdu], _state(file.path))
        with self._lock:
            self._held[did] = held
            self._held.move_to_end(did)
            while len(self._held) > MOST_IMAGES:
                self._held.popitem(last=False)
        return held


def _state(path: str) -> State | None:
    """Give what changes when a local file does; `None` for a URL, or where there is no file."""
    if "://" in path:
        return None
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
