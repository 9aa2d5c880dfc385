"""Boxes of arrays around positions on the sky, by the GWCS of ASDF or a WCS in attributes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swathe.arrays.indexing import run_gwcs
from swathe.core.errors import NoOverlapError, RegionError
from swathe.core.sky import SkyScales
from swathe.files.array_region import plane_axes
from swathe.files.places.attribute_wcs import sky_mapping, wcs_cards

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord

    from swathe.core.angles import Size
    from swathe.core.box import Box
    from swathe.files.array import Array


def sky_box(array: Array, place: SkyCoord, size: Size) -> Box:
    """Return the box `(x0, y0, width, height)` around a position on the sky.

    A GWCS is read by asdf and gwcs in a confined process; its angles become pixels by the scale at
    the position. Without one, attributes give the WCS.

    Raises:
        FormatError: If the file is damaged.
        LimitError: If it needs too much memory or time.
        NoOverlapError: If the position has no pixel.
        RegionError: If the array has no WCS of the sky, an invalid one, or several GWCS.
        SettingsError: If asdf or gwcs is not installed.
    """
    what = f"{array.url}, array {array.path}"
    plane = plane_axes(array)
    path = gwcs_path(array)
    if path is None:
        cards = wcs_cards(array)
        if cards is None:
            raise RegionError(
                f"{what}: expected a WCS for sky, found no GWCS and no CTYPE1 in attributes; "
                "bounds= is for longitude and latitude on the Earth"
            )
        if plane != (array.ndim - 2, array.ndim - 1):
            raise RegionError(f"{what}: expected y and x as the last axes, found {array.dims}")
        return sky_mapping(cards, what).box(place.ravel()[:1], size)
    position = place.icrs.ravel()[0]
    at = {"longitude": float(position.ra.deg), "latitude": float(position.dec.deg)}
    pixel = json.loads(run_gwcs("locate", {"path": path, **at}, array.reads, what))
    if pixel["x"] is None:
        raise NoOverlapError(f"{what}: its GWCS shows no such position")
    return SkyScales(what, (0, 1), pixel["scales"]).box_at(pixel["x"], pixel["y"], size)


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
