"""Find the images that show each of many positions in one search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.records.datasets import ORDER
from swathe.datasets.footprint import on_image
from swathe.datasets.search import NEAR, sky_of_cards
from swathe.datasets.spherical import directions, distances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from swathe.catalog import Catalog, GranuleQuery, Match

TOGETHER = 5_000
"""Number of pairs of a position and a polygon that are compared at once."""


@dataclass(frozen=True)
class SearchMatches:
    """Images, and for each position the images that show it.

    Attributes:
        matches: images.
        of: for each position the numbers of its images, in order of file and HDU.
    """

    matches: list[Match]
    of: list[list[int]]


def find_each(
    catalog: Catalog,
    ra_deg: NDArray[np.float64],
    dec_deg: NDArray[np.float64],
    granule_query: GranuleQuery,
    check: Callable[[int], None],
) -> SearchMatches:
    """Return for each position the images that show it, as `find` without a radius does.

    Args:
        catalog: catalogue to search.
        ra_deg: right ascensions, ICRS.
        dec_deg: declinations, ICRS.
        granule_query: further criteria for images; its ranges and limit are ignored.
        check: function called with the number of pairs so far; raises an error if too many.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
    """
    points = directions(ra_deg, dec_deg)
    matches, pairs = catalog.granules_at(_cells(ra_deg, dec_deg), granule_query, check)
    numbers = {granule: number for number, granule in enumerate(matches)}
    images = list(matches.values())
    of: list[list[int]] = [[] for _ in range(len(points))]
    for place, match in _that_show(images, points, [(at, numbers[of]) for at, of in pairs]):
        of[place].append(match)
    rank = {
        number: order
        for order, number in enumerate(
            sorted(range(len(images)), key=lambda at: (images[at].file, images[at].granule.hdu))
        )
    }
    for each in of:
        each.sort(key=rank.__getitem__)
    return SearchMatches(images, of)


def _cells(ra_deg: NDArray[np.float64], dec_deg: NDArray[np.float64]) -> list[int]:
    """Return the cells of positions, of the finest order; footprints extend beyond NEAR."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    if not len(ra_deg):
        return []
    cells = nested.lonlat_to_healpix(Longitude(ra_deg, u.deg), Latitude(dec_deg, u.deg), ORDER)
    numbers: list[int] = cells.astype(np.int64).tolist()
    return numbers


def _that_show(
    matches: Sequence[Match], points: NDArray[np.float64], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs of a position and an image that shows it."""
    alike: dict[int, list[tuple[int, int]]] = {}
    others: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
    for place, number in pairs:
        granule = matches[number].granule
        footprint = granule.footprint
        if footprint is None:
            continue
        if footprint.outline is not None:
            alike.setdefault(len(footprint.outline), []).append((place, number))
        elif footprint.wcs is not None:
            others.setdefault((footprint.wcs, granule.shape[-2:]), []).append((place, number))
    covering = []
    for group in alike.values():
        for at in range(0, len(group), TOGETHER):
            part = group[at : at + TOGETHER]
            covering += _within(matches, points, part)
    for (cards, (height, width)), group in others.items():
        on_images = on_image(
            sky_of_cards(cards), width, height, points[[place for place, _ in group]]
        )
        covering += [pair for pair, on in zip(group, on_images.tolist(), strict=True) if on]
    return covering


def _within(
    matches: Sequence[Match], points: NDArray[np.float64], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs whose position is in the polygon; all polygons have as many corners."""
    numbers = sorted({number for _, number in pairs})
    outlines = []
    for number in numbers:
        footprint = matches[number].granule.footprint
        assert footprint is not None
        outlines.append(footprint.outline)
    corners = np.array(outlines)
    polygons = directions(corners[:, ::2], corners[:, 1::2])
    which = np.searchsorted(numbers, [number for _, number in pairs])
    places = points[[place for place, _ in pairs]]
    inside = distances(polygons[which], places) <= NEAR
    return [pair for pair, within in zip(pairs, inside.tolist(), strict=True) if within]
