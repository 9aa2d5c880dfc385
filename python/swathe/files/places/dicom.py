"""Place of a part of a DICOM image: the position of its first pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def attributes_of_part(attrs: Mapping[str, Any], row: int, column: int) -> dict[str, Any]:
    """Return the attributes of an image, with the position of another pixel as its first.

    Without direction and spacing the position is left out.

    Args:
        attrs: attributes of the whole image.
        row: first row of the part.
        column: first column of the part.
    """
    import numpy as np

    from swathe.arrays.readers.dicom_attributes import PLACE, position_of

    part = dict(attrs)
    part.pop("ImagePositionPatient", None)
    first, directions, spacing = (np.ravel(attrs.get(name, ())) for name in PLACE)
    vectors = zip((first, directions, spacing), PLACE.values(), strict=True)
    if all(each.size == count and each.dtype.kind == "f" for each, count in vectors):
        place = position_of(first, directions, spacing, row, column)
        part["ImagePositionPatient"] = place
    return part
