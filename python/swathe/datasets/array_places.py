"""Find the footprint of an array of a file: grid, swath, track, GeoTIFF or grid of HDF-EOS.

A swath has a latitude and longitude for each pixel, or for tie points on coarser axes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import FormatError, LimitError, RegionError
from swathe.datasets.earth_outline import MOST_APART, earth_footprint, with_edges
from swathe.datasets.spherical import cross, degrees, directions, length
from swathe.files.array_region import plane_axes
from swathe.files.places import geotiff
from swathe.files.places.coordinates import BLOCK_ELEMENTS, MOST_ROW_ELEMENTS, check_size, values_of
from swathe.files.places.gctp import check_radius
from swathe.files.places.grid import check_axis
from swathe.files.places.hdf_eos_grid import EosGrid, eos_grid
from swathe.files.places.regions import pair_on_axes, tie_points_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from swathe.catalog.records.datasets import EarthFootprint
    from swathe.files.array import Array
    from swathe.files.places.geotiff import RowsOfPlaces
    from swathe.files.places.tie_points import TiePoints

MOST_PLACES = 2**20
"""Places of a swath that make its footprint; of a larger one each second, third, ... is used."""
MOST_FILE_ELEMENTS = 2**30
"""Latitudes that are read from one file: those of fill take no room in it, but time."""
MOST_TRACK_PLACES = 2**12
"""Places of a track that make its footprint; of a longer one each second, third, ... is used."""
GRID_LINES = 256
"""Lines along each axis of a grid, at most."""
FEWEST_TRACK_COLUMNS = 4
"""Places of a row of a track; two or three beside each other may be a narrow swath."""


class Places:
    """Footprints of the arrays of one file; those of the same coordinates are computed once."""

    def __init__(self) -> None:
        """Begin without footprints."""
        self._left = MOST_FILE_ELEMENTS
        self._footprints: dict[tuple[object, ...], EarthFootprint | RegionError] = {}

    def footprint(self, array: Array) -> EarthFootprint:
        """Return the footprint of an array.

        Raises:
            RegionError: If it has no place on the Earth, or none that can be computed.
            LimitError: If the coordinates of the file are too many to read.
            FormatError, OptionError: As reading coordinates raises.
        """
        if geotiff.has_place(array):
            return _raster(array)
        if (grid := eos_grid(array)) is not None:
            return self._once(("", grid.name), partial(_hdf_eos_grid, grid))
        pair = pair_on_axes(array)
        _check_earth(array)
        if pair is None:
            points = tie_points_of(array)
            tie_key = points.latitude.path, points.longitude.path, points.axes
            return self._once(tie_key, partial(_by_tie_points, points))
        latitude, longitude = pair
        key = latitude.path, longitude.path
        if key not in self._footprints:
            if latitude.size > self._left:
                raise LimitError(
                    f"expected at most {MOST_FILE_ELEMENTS} latitudes in all arrays of a file, "
                    f"found more with {latitude.path}"
                )
            self._left -= latitude.size
        return self._once(key, partial(_by_coordinates, latitude, longitude))

    def _once(self, key: tuple[object, ...], make: Callable[[], EarthFootprint]) -> EarthFootprint:
        if key not in self._footprints:
            try:
                self._footprints[key] = make()
            except RegionError as error:
                self._footprints[key] = error
        place = self._footprints[key]
        if isinstance(place, RegionError):
            raise place
        return place


def _check_earth(array: Array) -> None:
    """Check that the grid mapping of an array is of the Earth (CF, appendix F)."""
    name = array.attrs.get("grid_mapping")
    mapping = next((each for each in array.others if each.name == name), None)
    for attribute in ("semi_major_axis", "earth_radius"):
        value = None if mapping is None else mapping.attrs.get(attribute)
        if value is not None:
            check_radius(_first_number(value))


def _first_number(value: Any) -> float:
    """Return the first number of an attribute; NaN if it has none."""
    try:
        return float(np.ravel(value)[0])
    except (IndexError, OverflowError, TypeError, ValueError):
        return math.nan


def _by_coordinates(latitude: Array, longitude: Array) -> EarthFootprint:
    if latitude.ndim == 1 and (latitude.dims or latitude.shape) != (
        longitude.dims or longitude.shape
    ):
        return _grid(latitude, longitude)
    if latitude.ndim == 1:
        return _track(latitude, longitude)
    if latitude.ndim != 2:
        raise RegionError(
            f"expected latitudes on one or two axes, found {latitude.path} on {latitude.ndim}"
        )
    if _is_track(latitude, longitude):
        return _track(latitude, longitude)
    return _swath(latitude, longitude)


def _is_track(latitude: Array, longitude: Array) -> bool:
    """Return whether each row begins where the one before ends, as rows of 20 places a second."""
    rows, columns = latitude.shape
    if rows < 2 or columns < FEWEST_TRACK_COLUMNS:
        return False
    first = min(rows, max(2, MOST_PLACES // columns))
    vectors = _vectors(values_of(latitude, 0, first), values_of(longitude, 0, first))
    within = length(np.diff(vectors, axis=1))
    between = length(vectors[1:, 0] - vectors[:-1, -1])
    within, between = within[np.isfinite(within)], between[np.isfinite(between)]
    if not len(within) or not len(between):
        return False
    return float(np.median(between)) < 2 * float(np.median(within))


def _grid(latitude: Array, longitude: Array) -> EarthFootprint:
    ends = []
    for axis, is_cyclic in ((latitude, False), (longitude, True)):
        if axis.size > MOST_ROW_ELEMENTS:
            raise RegionError(f"expected at most {MOST_ROW_ELEMENTS} elements in {axis.path}")
        values = values_of(axis)
        check_axis(f"{axis.url}, coordinate {axis.path}", values, is_cyclic)
        if not is_cyclic and np.abs(values).max() > 90:
            raise FormatError(
                f"{axis.url}, latitude {axis.path}: expected -90 to 90, "
                f"found {values.min():g} to {values.max():g}"
            )
        if is_cyclic:
            values = np.unwrap(values, period=360)
        ends.append(_edges(values))
    (south_north, rows), (west_east, columns) = ends
    if abs(west_east[-1] - west_east[0]) > 360:
        west_east = np.linspace(west_east[0], west_east[0] + 360, len(west_east))
    lon = (west_east + 180) % 360 - 180
    return _mesh(np.clip(south_north, -90, 90), lon, (rows, columns))


def _edges(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return edges of pixels along an axis, at most `GRID_LINES`, and the pixels between them."""
    if len(values) < 2:
        raise RegionError("expected two pixels or more along each axis of a grid, found one")
    halves = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[2 * values[0] - halves[0]], halves, [2 * values[-1] - halves[-1]]])
    at = np.linspace(0, len(values), GRID_LINES + 1)
    return np.interp(at, np.arange(len(edges)), edges), len(values) / GRID_LINES


def _mesh(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], steps: tuple[float, float]
) -> EarthFootprint:
    lat, lon = np.meshgrid(latitude, longitude, indexing="ij")
    return earth_footprint(lat, lon, steps)


def _by_tie_points(points: TiePoints) -> EarthFootprint:
    what = f"{points.latitude.url}, tie points {points.latitude.path}"
    shape = tuple(each.length for each in points.axes)
    if len(shape) == 1:
        if shape[0] > MOST_ROW_ELEMENTS:
            raise RegionError(f"{what}: expected at most {MOST_ROW_ELEMENTS} elements")
        return _track_along(what, *points.places([(0, shape[0])]))
    return _swath_of(what, shape, lambda start, stop: points.places([(start, stop), (0, shape[1])]))


def _swath(latitude: Array, longitude: Array) -> EarthFootprint:
    if not math.prod(latitude.shape):
        raise RegionError(f"expected places in {latitude.path}, found shape {latitude.shape}")
    return _swath_of(
        f"{latitude.url}, coordinate {latitude.path}",
        latitude.shape,
        lambda start, stop: (values_of(latitude, start, stop), values_of(longitude, start, stop)),
    )


def _swath_of(what: str, shape: tuple[int, ...], places: RowsOfPlaces) -> EarthFootprint:
    """Return the footprint of pixels that have a place each.

    Args:
        what: name of the places, for errors.
        shape: rows and columns.
        places: function that returns latitudes and longitudes of rows from `start` to `stop`.
    """
    check_size(what, shape)
    step = max(1, math.ceil(math.sqrt(math.prod(shape) / MOST_PLACES)))
    rows, columns = (
        np.unique(np.append(np.arange(0, size, step), size - 1)).astype(int) for size in shape
    )
    vectors = _vectors(*_some(places, shape, rows, columns))
    for axis, lines in ((0, rows), (1, columns)):
        if len(lines) > 1:
            ends = float(lines[1] - lines[0]), float(lines[-1] - lines[-2])
            vectors = with_edges(vectors, axis, ends)
    lon, lat = degrees(vectors)
    return earth_footprint(lat, lon, (step, step), slack=step - 1)


def _some(
    places: RowsOfPlaces,
    shape: tuple[int, ...],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read latitudes and longitudes of some rows and columns, in blocks."""
    block = max(1, BLOCK_ELEMENTS // shape[1])
    parts = []
    for start in range(0, shape[0], block):
        stop = min(start + block, shape[0])
        here = rows[(rows >= start) & (rows < stop)] - start
        parts.append([values[here][:, columns] for values in places(start, stop)])
    latitude, longitude = (np.concatenate(each) for each in zip(*parts, strict=True))
    return latitude, longitude


def _vectors(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return directions; NaN for numbers that are no place."""
    with np.errstate(invalid="ignore"):
        is_place = (np.abs(latitude) <= 90) & (longitude >= -360) & (longitude <= 720)
        vectors = directions(longitude, latitude)
    vectors[~is_place] = np.nan
    return vectors


def _track(latitude: Array, longitude: Array) -> EarthFootprint:
    """Return the footprint of a track: as wide as its places are apart."""
    if latitude.size > MOST_ROW_ELEMENTS:
        raise RegionError(f"expected at most {MOST_ROW_ELEMENTS} elements in {latitude.path}")
    return _track_along(latitude.path, values_of(latitude).ravel(), values_of(longitude).ravel())


def _track_along(
    what: str, latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> EarthFootprint:
    vectors = _vectors(latitude, longitude)
    vectors = vectors[np.isfinite(vectors[:, 0])]
    # What rests, or is told more often than it moves, has a place several times.
    moves = np.flatnonzero(length(np.diff(vectors, axis=0)) > 0)
    vectors = vectors[np.append(moves, len(vectors) - 1)]
    if len(vectors) < 2:
        raise RegionError(f"expected two places or more in {what}, found {len(vectors)}")
    vectors = with_edges(vectors, 0, (1.0, 1.0))
    step = max(1, len(vectors) // MOST_TRACK_PLACES)
    steps = length(np.diff(vectors, axis=0))
    usual = float(np.median(steps))
    # Places beside a gap are used as well, since nothing is drawn across it.
    gaps = np.flatnonzero(steps > MOST_APART * usual)
    nodes = np.unique(
        np.concatenate([np.arange(0, len(steps), step), gaps, gaps + 1, [len(steps)]])
    )
    reach = usual / 2 + _beside(vectors, nodes)
    vectors = vectors[nodes]
    along = np.gradient(vectors, axis=0)
    across = cross(vectors, along)
    # Where it turns back, along the way to the next place.
    turns = np.flatnonzero(
        length(across) < 0.01 * length(np.diff(vectors, axis=0, append=vectors[-2:-1]))
    )
    following = vectors[np.where(turns + 1 < len(vectors), turns + 1, turns - 1)]
    across[turns] = cross(vectors[turns], following)
    size = length(across)
    shift = across * (reach / size)[:, None]
    sides = np.stack([vectors - shift, vectors + shift], axis=1)
    lon, lat = degrees(sides)
    return earth_footprint(lat, lon, (1.0, 1.0))


def _beside(places: NDArray[np.float64], nodes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how far places of a track lie beside the lines that join some of them.

    Args:
        places: directions.
        nodes: numbers of the places that are joined, with the first and the last.

    Returns:
        For each node the most of both its lines, in radians.
    """
    normal = cross(places[nodes[:-1]], places[nodes[1:]])
    size = length(normal)
    normal = np.divide(normal, size[:, None], out=np.zeros_like(normal), where=size[:, None] > 0)
    along = np.repeat(normal, np.diff(nodes), axis=0)
    off = np.abs(np.einsum("nk,nk->n", places[:-1], along))
    most = np.arcsin(np.minimum(1.0, np.maximum.reduceat(off, nodes[:-1])))
    farther: NDArray[np.float64] = np.maximum(np.append(most, 0.0), np.append(0.0, most))
    return farther


def _raster(array: Array) -> EarthFootprint:
    places = geotiff.places_of_pixels(array)
    if (radius := array.attrs.get("GeogSemiMajorAxisGeoKey")) is not None:
        check_radius(_first_number(radius))
    y, x = plane_axes(array)
    sizes = array.shape[y], array.shape[x]
    rows, columns = (np.linspace(-0.5, size - 0.5, min(size, GRID_LINES) + 1) for size in sizes)
    lat, lon = places(rows, columns)
    if geotiff.is_geographic(array):
        # The centres of its first and last row may be at the poles.
        if np.abs(lat).max() > 90 + abs(geotiff.pixel_transform(array)[1, 1]):
            raise FormatError(
                f"{array.url}, array {array.path}: expected latitudes -90 to 90, "
                f"found {lat.min():g} to {lat.max():g}"
            )
        lat = np.clip(lat, -90, 90)
    steps = sizes[0] / (len(rows) - 1), sizes[1] / (len(columns) - 1)
    return earth_footprint(lat, lon, steps)


def _hdf_eos_grid(grid: EosGrid) -> EarthFootprint:
    height, width = grid.shape
    rows, columns = (np.linspace(0, side, GRID_LINES + 1) for side in grid.shape)
    return earth_footprint(*grid.places(rows, columns), (height / GRID_LINES, width / GRID_LINES))
