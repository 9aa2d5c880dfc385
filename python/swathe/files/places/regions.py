"""Regions of arrays by geographic bounds.

An array has a place by the CF conventions (latitudes and longitudes on an axis each, or for each
pixel), by coarser tie points, by the tags of GeoTIFF, or in a grid of HDF-EOS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import NoOverlapError, RegionError, SwatheError
from swathe.files.places.bounds import Bounds
from swathe.files.places.coordinates import axes_of, find, scopes_of, sureness
from swathe.files.places.gctp import ALL
from swathe.files.places.geotiff import has_place, raster_ranges
from swathe.files.places.grid import grid_ranges
from swathe.files.places.hdf_eos_grid import eos_grid, other_projection
from swathe.files.places.swath import swath_box
from swathe.files.places.tie_points import tie_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.files.array import Array
    from swathe.files.places.tie_points import TiePoints


def region_of_bounds(
    array: Array, bounds: Sequence[float], advice: str = ""
) -> list[dict[int, tuple[int, int]]]:
    """Return the parts of an array that lie in a box of longitude and latitude.

    A pixel of a grid belongs to the box if its centre lies in it or on its edge. Of swaths and
    curvilinear grids it is the smallest box of indices that has all pixels in the bounds.

    Args:
        array: an array with coordinates of CF, of a GeoTIFF, or in a grid of HDF-EOS.
        bounds: `(west, south, east, north)` in degrees. Longitudes are from -180 to 360, whatever
            those of the file; `west > east` crosses the dateline.
        advice: what else gives a region, for the error of an array without a place.

    Returns:
        For each part `(start, stop)` by the number of the axis; other axes stay whole. There are
        two parts where the box crosses the edge of a grid: first the one at the end of the axis.

    Raises:
        FormatError: If coordinates cannot be read, or an axis neither ascends nor descends.
        LimitError: If coordinates are too large.
        NoOverlapError: If no pixel lies in the box.
        OptionError: If the array is in a projection, and pyproj is not installed.
        RegionError: If the bounds are invalid, or the array has no place, or several.
    """
    box = Bounds.of(bounds)
    parts = _parts(array, box, advice)
    if not parts:
        raise NoOverlapError(
            f"{array.url}, array {array.path}: expected pixels in the bounds {box}, found none; "
            f"{_coverage(array)}"
        )
    return parts


def _parts(array: Array, box: Bounds, advice: str = "") -> list[dict[int, tuple[int, int]]]:
    """Return the parts of an array with pixels in bounds."""
    if has_place(array):
        return raster_ranges(array, box)
    if (grid := eos_grid(array)) is not None:
        return grid.ranges(box)
    if (pair := pair_on_axes(array)) is None:
        region = tie_points_of(array, advice).box(box)
        return [] if region is None else [region]
    latitude, longitude = pair
    rows, columns = axes_of(latitude, array), axes_of(longitude, array)
    assert rows is not None
    assert columns is not None
    if rows == columns:
        ends = swath_box(latitude, longitude, box)
        return [] if ends is None else [dict(zip(rows, ends, strict=True))]
    y, x = grid_ranges(latitude, longitude, box)
    return [{rows[0]: row, columns[0]: column} for row in y for column in x]


def _coverage(array: Array) -> str:
    """Return what an array covers, for an error. All its places are read again, once for a file."""
    from swathe.files.places.coverage import Coverage

    key = Coverage, array.path
    if key not in array.tree.memo:
        coverage = Coverage()
        try:
            _parts(array, coverage)
        except SwatheError as error:
            # Without it the error still says what was expected.
            return f"what it covers is unknown: {error}"
        array.tree.memo[key] = str(coverage)
    return str(array.tree.memo[key])


def pair_on_axes(array: Array) -> tuple[Array, Array] | None:
    """Return latitudes and longitudes on axes of an array; `None` if there are none.

    They lie on one axis each (a grid), or on the same axes (a swath, a curvilinear grid or a
    track). Those named by the array come before those of its group, and of the groups around it.

    Raises:
        RegionError: If there are several.
    """

    def fits(other: Array) -> bool:
        return other.ndim > 0 and axes_of(other, array) is not None

    for others in scopes_of(array):
        pairs = [
            (latitude, longitude)
            for latitude in find(array, "latitude", others, fits)
            for longitude in find(array, "longitude", others, fits)
            if _is_pair(latitude, longitude)
        ]
        most = max((latitude.ndim for latitude, _ in pairs), default=0)
        pairs = [pair for pair in pairs if pair[0].ndim == most]
        if len(pairs) == 1:
            return pairs[0]
        if pairs:
            names = ", ".join(
                f"{latitude.path} and {longitude.path}" for latitude, longitude in pairs
            )
            raise RegionError(
                f"{array.url}, array {array.path}: expected one pair of latitude and longitude, "
                f"found {names}"
            )
    return None


def tie_points_of(array: Array, advice: str = "") -> TiePoints:
    """Return the tie points of an array; an error that there are none ends in the advice.

    Raises:
        RegionError: If there are none, or several.
    """
    candidates = tie_points(array)
    if len(candidates) > 1:
        names = [f"{each.latitude.path} and {each.longitude.path}" for each in candidates]
        raise RegionError(
            f"{array.url}, array {array.path}: expected one pair of tie points, found "
            f"{', '.join(names)}"
        )
    if not candidates:
        raise _no_place(array, advice)
    return candidates[0]


def _no_place(array: Array, advice: str) -> RegionError:
    projection = other_projection(array)
    if projection is not None:
        return RegionError(
            f"{array.url}, array {array.path}: expected latitude and longitude, or a grid in "
            f"one of {', '.join(ALL)}, found {projection}"
        )
    return RegionError(
        f"{array.url}, array {array.path}: expected latitude and longitude on axes of the array "
        f"{array.dims or array.shape}, found {_on_other_axes(array)}{advice and '; '}{advice}"
    )


def _is_pair(latitude: Array, longitude: Array) -> bool:
    """Check whether they lie on the same axes, or on one axis each."""
    if (latitude.dims or latitude.shape) == (longitude.dims or longitude.shape):
        return latitude.shape == longitude.shape
    return latitude.ndim == longitude.ndim == 1


def _on_other_axes(array: Array) -> str:
    """Return what an error says of latitudes on other axes, such as coarser ones."""
    others = [each for each in array.others if sureness(each, "latitude")]
    if not others:
        return "none"
    first = others[0]
    return f"{first.path} on {first.dims or first.shape}"
