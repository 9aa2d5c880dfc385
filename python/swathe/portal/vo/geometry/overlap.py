"""Test whether a granule overlaps a region of the sky."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.footprint import on_image
from swathe.datasets.search import NEAR, sky_of_cards
from swathe.datasets.spherical import angle, directions, distances
from swathe.portal.vo.geometry.bounding_box import smallest_box
from swathe.portal.vo.geometry.fast_wcs import FastWcs
from swathe.portal.vo.geometry.regions import Circle, Polygon

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.catalog import Match
    from swathe.portal.vo.geometry.regions import SkyRegion

STEPS = 64
"""Number of points of an outline per radius of the region."""


def shows(match: Match, region: SkyRegion) -> bool:
    """Return whether an image shows any part of a region."""
    footprint = match.granule.footprint
    if footprint is None:
        return False
    centre = directions(np.array([footprint.s_ra]), np.array([footprint.s_dec]))
    apart = float(angle(centre, region.centre)[0])
    if apart > math.radians(footprint.s_fov / 2) + region.radius + NEAR:
        return False
    if footprint.outline is None:
        assert footprint.wcs is not None
        height, width = match.granule.shape[-2:]
        return (
            smallest_box(region, _places(footprint.wcs), width, height, orderly=False) is not None
        )
    outline = np.array(footprint.outline)
    corners = directions(outline[::2], outline[1::2])
    if isinstance(region, Circle):
        off = float(distances(corners[None], region.centre[None])[0])
        return off <= region.radius + NEAR
    if region.holds(np.concatenate([corners, centre])).any():
        return True
    if region.holds(_along_sides(corners)).any():
        return True
    step = max(region.radius, 1e-9) / STEPS
    for curve in region.curves(step):
        polygons = np.broadcast_to(corners, (len(curve.places), *corners.shape))
        if (distances(polygons, curve.places) <= NEAR).any():
            return True
    return False


def is_covered_by(region: SkyRegion, match: Match) -> bool:
    """Return whether an image shows all of a region."""
    footprint = match.granule.footprint
    if footprint is None:
        return False
    step = max(region.radius, 1e-9) / STEPS
    places = np.concatenate([region.centre[None], *(each.places for each in region.curves(step))])
    if footprint.outline is not None:
        return bool(Polygon(footprint.outline).holds(places).all())
    assert footprint.wcs is not None
    height, width = match.granule.shape[-2:]
    return bool(on_image(sky_of_cards(footprint.wcs), width, height, places).all())


def is_within(match: Match, region: SkyRegion) -> bool:
    """Return whether all of an image is in a region."""
    footprint = match.granule.footprint
    if footprint is None:
        return False
    if footprint.outline is not None:
        outline = np.array(footprint.outline)
        return bool(region.holds(_along_sides(directions(outline[::2], outline[1::2]))).all())
    assert footprint.wcs is not None
    height, width = match.granule.shape[-2:]
    x, y = np.meshgrid(
        np.linspace(-0.5, width - 0.5, STEPS), np.linspace(-0.5, height - 0.5, STEPS)
    )
    places = sky_of_cards(footprint.wcs).pixel_to_vector(x.ravel(), y.ravel())
    on_sky = np.isfinite(places).all(axis=1)  # others are corners of a map of the whole sky
    return bool(on_sky.any() and region.holds(places[on_sky]).all())


def _along_sides(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points along the sides of a polygon, its corners among them."""
    ends = np.roll(corners, -1, axis=0)
    along = np.linspace(0, 1, STEPS, endpoint=False)[:, None, None]
    sides: NDArray[np.float64] = (corners + along * (ends - corners)).reshape(-1, 3)
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    return sides


@lru_cache(maxsize=64)
def _places(cards: str) -> FastWcs:
    return FastWcs(sky_of_cards(cards))
