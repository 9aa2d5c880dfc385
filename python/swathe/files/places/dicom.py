"""Place of a part of a DICOM image: the position of its first pixel.

References:
    DICOM PS3.3 C.7.6.2.1.1 (image position and orientation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

POSITION = "ImagePositionPatient"


def attributes_of_part(attrs: Mapping[str, Any], row: int, column: int) -> dict[str, Any]:
    """Return the attributes of an image, with the position of another pixel as its first.

    Without direction and spacing the position is left out.

    Args:
        attrs: attributes of the whole image.
        row: first row of the part.
        column: first column of the part.
    """
    import numpy as np

    part = dict(attrs)
    names = (POSITION, "ImageOrientationPatient", "PixelSpacing")
    vectors = [np.asarray(attrs.get(name, ()), object) for name in names]
    if vectors[0].size == 0:
        return part
    if [each.size for each in vectors] != [3, 6, 2]:
        del part[POSITION]
        return part
    position, directions, (row_mm, column_mm) = (each.astype(float) for each in vectors)
    part[POSITION] = position + column * column_mm * directions[:3] + row * row_mm * directions[3:]
    return part
