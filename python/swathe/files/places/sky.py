"""Boxes of arrays around positions on the sky, by the GWCS of ASDF or a WCS in attributes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.arrays.indexing import run_gwcs
from swathe.core.errors import NoOverlapError, RegionError
from swathe.core.sky import SkyScales
from swathe.files.array_region import plane_axes
from swathe.files.places.attribute_wcs import sky_mapping, wcs_cards

if TYPE_CHECKING:
    from collections.abc import Callable

    from astropy.coordinates import SkyCoord

    from swathe.core.angles import Size
    from swathe.core.box import Box
    from swathe.core.sky import SkyBoxes
    from swathe.files.array import Array

MOST_TOGETHER = 1000
"""Positions of one call of the confined process."""


def sky_box(array: Array, place: SkyCoord, size: Size) -> Box:
    """Return the box `(x0, y0, width, height)` around a position on the sky.

    Raises:
        NoOverlapError: If the position has no pixel.
        SwatheError: As `array_sky` and `GwcsBoxes.boxes` raise.
    """
    return array_sky(array).boxes(place.ravel()[:1])(0, size)


def array_sky(array: Array) -> SkyBoxes:
    """Return what makes boxes of an array around positions on the sky.

    A GWCS is read by asdf and gwcs in a confined process; its angles become pixels by the scale at
    the position. Without one, attributes give the WCS.

    Raises:
        RegionError: If the array has no WCS of the sky, an invalid one, or several GWCS.
    """
    what = f"{array.url}, array {array.path}"
    plane = plane_axes(array)
    path = gwcs_path(array)
    if path is not None:
        return GwcsBoxes(array, path, what)
    cards = wcs_cards(array)
    if cards is None:
        raise RegionError(
            f"{what}: expected a WCS for sky, found no GWCS and no CTYPE1 in attributes; "
            "bounds= is for longitude and latitude on the Earth"
        )
    if plane != (array.ndim - 2, array.ndim - 1):
        raise RegionError(f"{what}: expected y and x as the last axes, found {array.dims}")
    return sky_mapping(cards, what)


@dataclass(frozen=True)
class GwcsBoxes:
    """Boxes of an array around positions, by a GWCS of its file.

    Attributes:
        array: the array.
        path: path of the GWCS.
        what: name of the array in errors.
    """

    array: Array
    path: str
    what: str

    def boxes(self, coordinates: SkyCoord) -> Callable[[int, float | Size], Box]:
        """Return the function that makes the box around one of some coordinates, by its number.

        It raises NoOverlapError if the coordinate has no pixel, and RegionError if the size is
        below half a pixel, or the position cannot be computed.

        Raises:
            FormatError: If the file is damaged.
            LimitError: If it needs too much memory or time.
            RegionError: If the GWCS does not map two axes of pixels to the sky.
            SettingsError: If asdf or gwcs is not installed.
        """
        places: list[dict[str, Any]] = []
        icrs = coordinates.icrs.ravel()
        degrees = icrs.ra.deg.tolist(), icrs.dec.deg.tolist()
        for first in range(0, len(degrees[0]), MOST_TOGETHER):
            lon, lat = (each[first : first + MOST_TOGETHER] for each in degrees)
            argument = {"path": self.path, "longitudes": lon, "latitudes": lat}
            places += json.loads(run_gwcs("locate", argument, self.array.reads, self.what))

        def box(number: int, size: float | Size) -> Box:
            place = places[number]
            if "fault" in place:
                raise RegionError(f"{self.what}: its GWCS cannot be used: {place['fault']}")
            if place["x"] is None:
                raise NoOverlapError(f"{self.what}: its GWCS shows no such position")
            if not all(0 < scale < math.inf for scale in place["scales"]):
                raise RegionError(
                    f"{self.what}: expected pixels with a size on the sky, found {place['scales']} "
                    "degrees by its GWCS"
                )
            return SkyScales(self.what, (0, 1), place["scales"]).box_at(
                place["x"], place["y"], size
            )

        return box


def gwcs_path(array: Array) -> str | None:
    """Return the path of the GWCS in the groups nearest to an array; `None` without any.

    Raises:
        RegionError: If several are equally near.
    """
    import numpy as np

    paths = [str(path) for path in np.ravel(array.root_attrs.get("gwcs", ()))]
    if any(array.path.startswith(f"{path}/") for path in paths):
        return None  # an array of the GWCS itself
    nearness = {path: _common_groups(path, array.path) for path in paths}
    most = max(nearness.values(), default=0)
    nearest = [path for path, depth in nearness.items() if depth == most]
    if len(nearest) > 1:
        raise RegionError(
            f"{array.url}, array {array.path}: expected one GWCS, found {', '.join(nearest)}"
        )
    return nearest[0] if nearest else None


def _common_groups(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one.split("/"), other.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count
