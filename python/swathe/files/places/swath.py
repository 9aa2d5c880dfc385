"""Regions of swaths, curvilinear grids and tracks: each pixel has its latitude and longitude."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.files.places.coordinates import index_box, values_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds


def swath_box(latitude: Array, longitude: Array, bounds: Bounds) -> list[tuple[int, int]] | None:
    """Return the smallest box of indices that has all pixels in bounds; `None` without any.

    Pixels without a place are outside. The arrays are read in blocks of rows.

    Args:
        latitude: latitudes in degrees.
        longitude: longitudes in degrees, of the same shape.
        bounds: the box.

    Raises:
        FormatError: If one cannot be read.
        LimitError: If they are too large.
    """

    def mask_of(start: int, stop: int) -> NDArray[np.bool_]:
        return bounds.has(values_of(latitude, start, stop), values_of(longitude, start, stop))

    return index_box(latitude.shape, mask_of)
