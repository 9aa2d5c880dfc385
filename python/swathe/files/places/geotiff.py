"""Regions of GeoTIFF images by their tags.

References:
    OGC GeoTIFF Standard 1.1 (19-008r4), 7.1.2 (raster space), 7.4 (tie points, transformation).
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from swathe.core.errors import FormatError, OptionError, RegionError
from swathe.files.array_region import plane_axes
from swathe.files.places.coordinates import check_size, index_box
from swathe.files.places.geokeys import DEGREES, GREENWICH, transformer_of
from swathe.files.places.grid import axis_ranges, check_axis
from swathe.files.variable import number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds

    RowsOfPlaces = Callable[[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]]
    PlacesOfPixels = Callable[
        [NDArray[Any], NDArray[Any]], tuple[NDArray[np.float64], NDArray[np.float64]]
    ]

MODEL = "GTModelTypeGeoKey"
PROJECTED_MODEL, GEOGRAPHIC_MODEL = 1, 2
POINT_RASTER = 2


def has_place(array: Array) -> bool:
    """Check whether an array has tags that place its pixels."""
    return "ModelTransformation" in array.attrs or "ModelTiepoint" in array.attrs


def is_geographic(array: Array) -> bool:
    """Check whether the tags place pixels by longitudes and latitudes."""
    return bool(number_of(array.attrs.get(MODEL)) == GEOGRAPHIC_MODEL)


def raster_ranges(array: Array, bounds: Bounds) -> list[dict[int, tuple[int, int]]]:
    """Return the parts of an image whose pixel centres lie in bounds, by number of the axis.

    Images whose rows run along parallels are grids. Of others it is the smallest box of indices
    that has all pixels in the bounds.

    Raises:
        FormatError: If the tags are damaged.
        LimitError: If the image is not a grid and too large.
        OptionError: If it has a projection, and pyproj is not installed.
        RegionError: If its place is not in degrees.
    """
    import numpy as np

    what = f"{array.url}, array {array.path}"
    matrix = pixel_transform(array)
    to_degrees = degrees_transformer(array)
    y, x = plane_axes(array)
    height, width = array.shape[y], array.shape[x]
    if to_degrees is None and not matrix[0, 1] and not matrix[1, 0]:
        east = matrix[0, 0] * np.arange(width) + matrix[0, 2]
        north = matrix[1, 1] * np.arange(height) + matrix[1, 2]
        check_axis(f"{what}, longitude", east, is_cyclic=True)
        check_axis(f"{what}, latitude", north, is_cyclic=False)
        rows, columns = axis_ranges(north, east, bounds)
        return [{y: row, x: column} for row in rows for column in columns]
    check_size(what, (height, width))
    places = raster_places(array)
    ends = index_box((height, width), lambda start, stop: bounds.has(*places(start, stop)))
    return [] if ends is None else [dict(zip((y, x), ends, strict=True))]


def raster_places(array: Array) -> RowsOfPlaces:
    """Return a function that gives latitudes and longitudes of the pixels of rows of an image.

    They are those of `places_of_pixels`. The rows are `[start, stop)`.

    Raises:
        FormatError, OptionError, RegionError: As `raster_ranges` does.
    """
    import numpy as np

    places = places_of_pixels(array)
    width = array.shape[plane_axes(array)[1]]
    return lambda start, stop: places(np.arange(start, stop), np.arange(width))


def places_of_pixels(array: Array) -> PlacesOfPixels:
    """Return a function that gives latitudes and longitudes, shape `(rows, columns)`.

    Its arguments are numbers of rows and columns; 0 is the centre of the first, -0.5 its edge.
    Places are in degrees, infinite where the projection has none.

    Raises:
        FormatError, OptionError, RegionError: As `raster_ranges` does.
    """
    import numpy as np

    matrix = pixel_transform(array)
    to_degrees = degrees_transformer(array)

    def places(
        rows: NDArray[Any], columns: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        row, column = np.meshgrid(rows, columns, indexing="ij")
        east = matrix[0, 0] * column + matrix[0, 1] * row + matrix[0, 2]
        north = matrix[1, 0] * column + matrix[1, 1] * row + matrix[1, 2]
        if to_degrees is not None:
            east, north = (np.asarray(each) for each in to_degrees.transform(east, north))
        return north, east

    return places


def pixel_transform(array: Array) -> NDArray[np.float64]:
    """Return the matrix from `(column, row, 1)` of a pixel to `(x, y)` of its centre.

    Raises:
        FormatError: If the tags are damaged.
    """
    import numpy as np

    attrs = array.attrs
    if "ModelTransformation" in attrs:
        whole = _numbers(array, "ModelTransformation", 16)[:16].reshape(4, 4)
        matrix = whole[:2][:, [0, 1, 3]]
    else:
        column, row, _, x, y, _ = _numbers(array, "ModelTiepoint", 6)[:6]
        if "ModelPixelScale" not in attrs:
            raise FormatError(
                f"{array.url}, array {array.path}: expected ModelPixelScale or "
                "ModelTransformation, found tie points only"
            )
        width, height = _numbers(array, "ModelPixelScale", 2)[:2]
        matrix = np.array([[width, 0, x - column * width], [0, -height, y + row * height]])
    if not matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]:
        raise FormatError(
            f"{array.url}, array {array.path}: expected pixels with an area, found the "
            f"transformation {matrix.tolist()}"
        )
    if attrs.get("GTRasterTypeGeoKey") != POINT_RASTER:
        matrix = matrix.copy()
        matrix[:, 2] += matrix[:, :2].sum(1) / 2
    return matrix


def _numbers(array: Array, name: str, count: int) -> NDArray[np.float64]:
    import numpy as np

    values = np.asarray(array.attrs[name]).ravel()
    if values.dtype.kind not in "iuf" or values.size < count or not np.isfinite(values).all():
        raise FormatError(
            f"{array.url}, array {array.path}: expected {count} numbers in {name}, "
            f"found {values.tolist()!r:.100}"
        )
    return values.astype(np.float64)


def degrees_transformer(array: Array) -> Any:
    """Return what converts `(x, y)` to degrees: `None` if they are, else a pyproj transformer."""
    attrs = array.attrs
    what = f"{array.url}, array {array.path}"
    # Attributes of HDF5 may be arrays of one number.
    model = number_of(attrs.get(MODEL))
    if model == GEOGRAPHIC_MODEL:
        units = number_of(attrs.get("GeogAngularUnitsGeoKey", DEGREES))
        meridian = number_of(attrs.get("GeogPrimeMeridianGeoKey", GREENWICH))
        if units != DEGREES or meridian != GREENWICH:
            raise RegionError(
                f"{what}: expected degrees ({DEGREES}) from Greenwich ({GREENWICH}), "
                f"found units {units}, prime meridian {meridian}"
            )
        return None
    if model != PROJECTED_MODEL:
        raise RegionError(
            f"{what}: expected a geographic or projected image ({MODEL} 2 or 1), found {model}"
        )
    if importlib.util.find_spec("pyproj") is None:
        raise OptionError(
            f"{what}: expected latitude and longitude, found a projection: for bounds of images in "
            "a projection: pip install 'swathe[geotiff]'"
        )
    return transformer_of(attrs, what)
