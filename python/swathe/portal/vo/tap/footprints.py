"""Images by their places: which ones touch, contain or are inside of a shape of numbers.

The HEALPix index of the catalogue finds candidates, and each is compared exactly: by its outline,
else by its WCS. So both databases have the same answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from swathe.catalog import GranuleQuery
from swathe.core.errors import QueryError
from swathe.datasets.footprint import on_image
from swathe.datasets.healpix import ranges_around
from swathe.datasets.search import NEAR, sky_of_cards
from swathe.datasets.spherical import (
    cross,
    directions,
    distances,
    distances_to_sides,
    outlines_near,
)
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.geometry.overlap import shows
from swathe.portal.vo.geometry.regions import Circle
from swathe.portal.vo.identifiers import read_did

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from swathe.catalog import Catalog, Match
    from swathe.catalog.read_only import ReadLimit
    from swathe.portal.vo.geometry.regions import SkyRegion

Relation = Literal["inside", "contains", "intersects"]
"""Whether images are inside a shape, contain it, or intersect it."""
PART = 500
"""Candidates that are compared at once."""
NARROW_DEG = 5.0
"""Field of view up to which images are found around their centres; wider ones are listed."""
MOST_WIDE = 1000
MOST_CANDIDATES = 100_000
"""Number of images from which on a list of them is slower than a look at all."""
GRID = 65
"""Positions along each axis of an image without outline."""
MOST_IMAGES = 1_000_000
"""Maximum number of images of all conditions of a query: each is a list in memory."""


class Footprints:
    """The places of the images of a catalogue."""

    def __init__(self, catalog: Catalog, limit: ReadLimit) -> None:
        """Set the catalogue, and the limit of the query."""
        self._catalog, self._limit = catalog, limit
        self._count = 0

    def matching(self, relation: Relation, region: SkyRegion) -> list[int]:
        """Return the numbers of the images that have a relation to a region.

        Raises:
            QueryError: If it takes too long, or there are too many images.
        """
        candidates = self._candidates(region)
        numbers: list[int] = []
        for part in _parts(candidates):
            self._limit.check()
            if relation == "intersects" and isinstance(region, Circle):
                numbers += _near(part, region)
            else:
                numbers += [number for number, match in part if _relates(match, region, relation)]
            self._check_count(len(numbers))
        self._count += len(numbers)
        return numbers

    def centres_in(self, region: SkyRegion) -> list[int]:
        """Return the numbers of the images whose centres are in a region.

        Raises:
            QueryError: If it takes too long.
        """
        numbers: list[int] = []
        for part in _parts(self._candidates(region, everywhere=True)):
            self._limit.check()
            places = [match.granule.footprint for _, match in part]
            lon = np.array([0.0 if place is None else place.s_ra for place in places])
            lat = np.array([0.0 if place is None else place.s_dec for place in places])
            inside = region.holds(directions(lon, lat))
            numbers += [
                number
                for (number, match), is_inside in zip(part, inside.tolist(), strict=True)
                if is_inside and match.granule.footprint is not None
            ]
            self._check_count(len(numbers))
        self._count += len(numbers)
        return numbers

    def with_did(self, authority: str, did: str) -> list[int]:
        """Return the number of the image that a DID may name, if there is one."""
        try:
            name = read_did(authority, did)
        except VoError:
            return []
        number = self._catalog.granule_number(name.dataset, name.path, name.hdu)
        return [] if number is None else [number]

    def centres_near(self, region: SkyRegion) -> list[int] | None:
        """Return the numbers of images, among them all whose centres are in a region.

        None if the index does not help. A centre is at most half of its field of view away from
        each part of its image.
        """
        fields = self._catalog.fields_of_view(NARROW_DEG, MOST_WIDE)
        if fields is None:
            return None
        narrow_deg, wide = fields
        reach = region.radius + math.radians(narrow_deg / 2) + NEAR
        if reach >= math.pi / 2:
            return None
        near = self._catalog.granules_in(ranges_around(region.centre, reach), MOST_CANDIDATES)
        if near is None or self._count + len(near) > MOST_IMAGES:
            return None
        self._count += len(near)
        return [*near, *wide]

    def _check_count(self, count: int) -> None:
        if self._count + count > MOST_IMAGES:
            raise QueryError(
                f"conditions on places: expected at most {MOST_IMAGES:,} images, found more; ask "
                "for smaller regions, or for fewer"
            )

    def _candidates(
        self, region: SkyRegion, *, everywhere: bool = False
    ) -> Iterator[tuple[int, Match]]:
        ranges = None
        if not everywhere:
            ranges = ranges_around(region.centre, min(region.radius + NEAR, math.pi))
        return self._catalog.numbered_granules(GranuleQuery(ranges, is_hdu=True))


def _parts(candidates: Iterator[tuple[int, Match]]) -> Iterator[list[tuple[int, Match]]]:
    part: list[tuple[int, Match]] = []
    for each in candidates:
        part.append(each)
        if len(part) == PART:
            yield part
            part = []
    if part:
        yield part


def _near(part: list[tuple[int, Match]], circle: Circle) -> list[int]:
    """Return the numbers of the images that a circle touches."""
    numbers, outlines = [], []
    for number, match in part:
        place = match.granule.footprint
        if place is None:
            continue
        if place.outline is not None:
            numbers.append(number)
            outlines.append(place.outline)
    near = outlines_near(outlines, circle.centre, circle.radius + NEAR)
    touching = [number for number, is_near in zip(numbers, near.tolist(), strict=True) if is_near]
    return touching + [
        number
        for number, match in part
        if (place := match.granule.footprint) is not None
        and place.outline is None
        and shows(match, circle)
    ]


def _relates(match: Match, region: SkyRegion, relation: Relation) -> bool:
    place = match.granule.footprint
    if place is None:
        return False
    if place.outline is None:
        return _relates_by_wcs(match, region, relation)
    outline = np.array(place.outline)
    corners = directions(outline[::2], outline[1::2])
    if isinstance(region, Circle):
        return _relates_to_circle(corners, region, relation)
    own = getattr(region, "corners")  # noqa: B009 - a polygon
    inside = region.holds(corners)
    polygons = np.broadcast_to(corners, (len(own), *corners.shape))
    contains = distances(polygons, own) == 0
    are_apart = not sides_cross(corners, own)
    match relation:
        case "intersects":
            return bool(inside.any() or contains.any() or not are_apart)
        case "inside":
            return bool(inside.all() and are_apart)
        case _:
            return bool(contains.all() and are_apart)


def _relates_to_circle(corners: NDArray[np.float64], circle: Circle, relation: Relation) -> bool:
    away = float(distances(corners[None], circle.centre[None])[0])
    match relation:
        case "intersects":
            return away <= circle.radius + NEAR
        case "inside":
            # None of it is in the rest of the sky, which is a circle, too.
            rest = float(distances(corners[None], -circle.centre[None])[0])
            return rest >= math.pi - circle.radius - NEAR
        case _:
            if circle.radius == 0:
                return away <= NEAR
            to_sides = float(distances_to_sides(corners[None], circle.centre[None]).min())
            return away == 0 and to_sides >= circle.radius - NEAR


def sides_cross(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Check whether a side of a polygon crosses one of another; sides are great circles."""
    a, b = first[:, None], np.roll(first, -1, axis=0)[:, None]
    c, d = second[None], np.roll(second, -1, axis=0)[None]
    one, other = cross(a, b), cross(c, d)
    acb, bda = -(one * c).sum(axis=-1), (one * d).sum(axis=-1)
    cbd, dac = -(other * b).sum(axis=-1), (other * a).sum(axis=-1)
    return bool(((acb * bda > 0) & (acb * cbd > 0) & (acb * dac > 0)).any())


def _relates_by_wcs(match: Match, region: SkyRegion, relation: Relation) -> bool:
    """Check the relation of an image without outline, at closely spaced positions."""
    if relation == "intersects" or (isinstance(region, Circle) and region.radius == 0):
        return shows(match, region)
    place = match.granule.footprint
    assert place is not None
    assert place.wcs is not None
    sky = sky_of_cards(place.wcs)
    height, width = match.granule.shape[-2:]
    if relation == "inside":
        x, y = np.linspace(-0.5, width - 0.5, GRID), np.linspace(-0.5, height - 0.5, GRID)
        across, up = np.meshgrid(x, y)
        vectors = sky.pixel_to_vector(across.ravel(), up.ravel())
        vectors = vectors[np.isfinite(vectors).all(axis=-1)]
        return bool(region.holds(vectors).all())
    places = np.concatenate(
        [region.centre[None], *(curve.places for curve in region.curves(region.radius / GRID))]
    )
    return bool(on_image(sky, width, height, places).all())
