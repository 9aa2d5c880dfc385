"""Masks of images of TIFF: which pixels have a value (`NewSubfileType` 4)."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from swathe.files.array_region import ArrayRegion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array

MOST_CACHED_PIXELS = 1 << 25
"""Pixels of a mask that is kept in memory, a bit each; of a larger one each cut reads its part."""
CACHED_MASKS = 16


def mask_of(array: Array) -> Array | None:
    """Return the mask of an image; `None` without one, or with one that is not read."""
    if array.tree.format != "tiff" or not {"y", "x"} <= set(array.dims):
        return None
    name, overview, number = array.path.partition("/overview_")
    path = f"{name}/mask_overview_{number}" if overview else f"{name}/mask"
    description = array.tree.arrays.get(path)
    lengths = dict(zip(array.dims, array.shape, strict=True))
    if description is None or description.shape != (lengths["y"], lengths["x"]):
        return None
    mask = array.other(path)
    if mask.is_refused:
        warnings.warn(
            f"{array.url}, array {array.path}: its mask is not used, as it is not read: "
            f"{mask.problem}",
            stacklevel=4,
        )
        return None
    return mask


def whole_mask(array: Array) -> NDArray[np.bool_] | None:
    """Return what `pixels_without_value` does, of all elements of an array."""
    return pixels_without_value(array, ArrayRegion((0,) * array.ndim, array.shape))


def pixels_without_value(array: Array, region: ArrayRegion) -> NDArray[np.bool_] | None:
    """Return which elements of a region have no value by the mask of an image.

    Outside of the image none has one. The shape is that of a cut of the region.

    Returns:
        A mask that is true where there is no value; `None` if the image has no mask, or all pixels
        of the region have a value.
    """
    import numpy as np

    if (mask := mask_of(array)) is None:
        return None
    axes = array.dims.index("y"), array.dims.index("x")
    inside = region.within(array.shape)
    (top, left), (bottom, right) = (
        [ends[axis] for axis in axes] for ends in (inside.start, inside.stop)
    )
    has_value = np.zeros([region.shape[axis] for axis in axes], bool)
    y0, x0 = (region.start[axis] for axis in axes)
    place = slice(top - y0, bottom - y0), slice(left - x0, right - x0)
    has_value[place] = _values(mask, (top, bottom), (left, right))
    if has_value.all():
        return None
    others = tuple(axis for axis in range(array.ndim) if axis not in axes)
    whole = np.broadcast_to(np.expand_dims(~has_value, others), region.shape)
    return whole.squeeze(tuple(sorted(region.single)))


def _values(mask: Array, rows: tuple[int, int], columns: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which pixels have a value."""
    import numpy as np

    part = slice(*rows), slice(*columns)
    if mask.size > MOST_CACHED_PIXELS:
        return np.asarray(mask[part]).astype(bool)
    some_rows = _mask_bits(_Key(mask))[part[0]]
    return np.unpackbits(some_rows, axis=1, count=mask.shape[1])[:, part[1]].astype(bool)


class _Key:
    """A mask of a version of a file, as a key of what is kept of it."""

    def __init__(self, mask: Array) -> None:
        self.mask = mask
        self._key = mask.url, mask.version, mask.path

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key == other._key


@lru_cache(maxsize=CACHED_MASKS)
def _mask_bits(key: _Key) -> NDArray[np.uint8]:
    import numpy as np

    return np.packbits(np.asarray(key.mask.data) != 0, axis=1)
