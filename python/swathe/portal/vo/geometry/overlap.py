"""Test whether a granule overlaps a region of the sky."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.search import NEAR, sky_of_cards
from swathe.datasets.spherical import angle, directions, distances
from swathe.portal.vo.geometry.bounding_box import smallest_box
from swathe.portal.vo.geometry.fast_wcs import FastWcs
from swathe.portal.vo.geometry.regions import Circle

if TYPE_CHECKING:
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
    ends = np.roll(corners, -1, axis=0)
    along = np.linspace(0, 1, STEPS, endpoint=False)[:, None, None]
    sides = (corners + along * (ends - corners)).reshape(-1, 3)
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    if region.holds(sides).any():
        return True
    step = max(region.radius, 1e-9) / STEPS
    for curve in region.curves(step):
        polygons = np.broadcast_to(corners, (len(curve.places), *corners.shape))
        if (distances(polygons, curve.places) <= NEAR).any():
            return True
    return False


@lru_cache(maxsize=64)
def _places(cards: str) -> FastWcs:
    return FastWcs(sky_of_cards(cards))
