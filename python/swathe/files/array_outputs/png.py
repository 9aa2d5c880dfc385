"""Draw a cut as a picture: one plane in greys, or three or four bands of bytes in colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError
from swathe.files.preview import LARGEST_SIDE, picture
from swathe.files.variable import Variable, masked_values

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from swathe.files.variable import VariableSet

PHOTOMETRIC = {0: "WhiteIsZero", 3: "palette", 5: "CMYK", 6: "YCbCr", 8: "CIELab"}
"""Colours of TIFF that are not drawn, by their codes in `PhotometricInterpretation`."""
RGB = (None, 1, 2, "RGB")
"""Values of `PhotometricInterpretation` whose bands are red, green and blue. GDAL writes 1 for
bands that it does not name."""
ALPHA = (1, 2)
"""Values of `ExtraSamples` that make the fourth band the opacity."""
DOWNWARDS = ("tiff", "dicom")
"""Formats whose first row is at the top."""


def draw(cutout: VariableSet) -> Image:
    """Return the picture of a cut.

    Rows of TIFF and DICOM, and those whose coordinate descends, as latitudes often do, go
    downwards; others go upwards.

    Raises:
        RegionError: If it is not one plane of numbers, and no bands of colours.
    """
    dims = list(cutout.dims)
    names = ["y", "x"] if {"y", "x"} <= set(dims) else dims[-2:]
    others = [axis for axis, name in enumerate(dims) if name not in names]
    if len(names) == 2 and len(others) == 1 and cutout.shape[others[0]] in (3, 4):
        return _colours(cutout, others[0], names[0])
    values = cutout.physical
    # A cut of one index along an axis keeps it, and so may one of a single row.
    single = [axis for axis in others if values.shape[axis] == 1]
    plane = values.squeeze(tuple(single))
    if plane.ndim > 2:
        plane = plane.squeeze()
        names = [name for name, length in zip(dims, values.shape, strict=True) if length > 1]
    if plane.ndim != 2 or plane.dtype.kind not in "iuf":
        raise RegionError(
            f"{cutout.url}, array {cutout.path}: expected one plane of numbers, or three or four "
            f"bands of bytes, for a picture, found {cutout.shape}, {cutout.dtype}: choose one with "
            "index= (--index)"
        )
    return picture(plane[::-1] if _is_downwards(cutout, names[0]) else plane)


def _colours(cutout: VariableSet, band: int, rows: str) -> Image:
    """Return the picture of bands; elements without a value are black."""
    import numpy as np
    from PIL import Image

    what = f"{cutout.url}, array {cutout.path}"
    if cutout.dtype != np.uint8:
        raise RegionError(
            f"{what}: expected bytes (uint8) for a picture of {cutout.shape[band]} bands, found "
            f"{cutout.dtype}: choose a band with index= (--index)"
        )
    meaning = cutout.attrs.get("PhotometricInterpretation")
    if meaning not in RGB:
        raise RegionError(
            f"{what}: expected red, green and blue for a picture, found "
            f"{PHOTOMETRIC.get(meaning, meaning)}: choose a band with index= (--index)"
        )
    elements = Variable(cutout.data, cutout.dims, cutout.attrs, cutout.mask)
    mask = np.ma.getmaskarray(masked_values(elements))
    bands: NDArray[Any] = np.moveaxis(np.where(mask, 0, cutout.data), band, -1)
    has_alpha = np.isin(np.ravel(cutout.attrs.get("ExtraSamples", 0))[:1], ALPHA).any()
    bands = bands if bands.shape[-1] == 4 and has_alpha else bands[..., :3]
    bands = bands if _is_downwards(cutout, rows) else bands[::-1]
    step = max(1, -(-max(bands.shape[:2]) // LARGEST_SIDE))
    return Image.fromarray(np.ascontiguousarray(bands[::step, ::step]))


def _is_downwards(cutout: VariableSet, rows: str) -> bool:
    """Return whether the first row of a picture is at its top."""
    axis = cutout.variables.get(rows)
    if cutout.format in DOWNWARDS or axis is None:
        return cutout.format in DOWNWARDS
    values = axis.data
    is_plain = values.ndim == 1 and values.dtype.kind in "iuf" and len(values) > 1
    return is_plain and bool(values[0] > values[-1])
