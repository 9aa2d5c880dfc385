"""Dimension maps of HDF-EOS: which elements of a swath its coarser geolocation belongs to.

References:
    HDF-EOS Library User's Guide, volume 1, 4.1.4 (geolocation and data, dimension maps).
"""

from __future__ import annotations

from typing import Any, NamedTuple

STRUCTURE = "StructMetadata.0"
MOST_OFFSET = 2**31


class DimensionMap(NamedTuple):
    """Tie point `i` belongs to the element `offset + increment * i` of the data.

    Attributes:
        offset: element of the first tie point.
        increment: elements between tie points; less than 1 if these are denser than the data.
    """

    offset: float
    increment: float


IDENTITY = DimensionMap(0, 1)


def dimension_maps(structure: Any) -> dict[tuple[str, str], DimensionMap]:
    """Return the maps of all swaths by the names of two axes: of geolocation and of data.

    Names are those of the arrays, such as `GeoTrack:Swath1`. An increment of 0 and numbers that
    are no integers make no map.

    Args:
        structure: text of the attribute `StructMetadata.0`; anything else has no maps.
    """
    maps: dict[tuple[str, str], DimensionMap] = {}
    if not isinstance(structure, str):
        return maps
    swath = ""
    values: dict[str, str] = {}
    for line in structure.splitlines():
        key, _, text = line.strip().partition("=")
        value = text.strip().strip('"')
        if key == "SwathName":
            swath = value
        elif key == "OBJECT":
            values = {}
        elif key == "END_OBJECT" and value.startswith("DimensionMap_"):
            names = (values.get("GeoDimension"), values.get("DataDimension"))
            offset, increment = _integer(values.get("Offset")), _integer(values.get("Increment"))
            if None not in names and offset is not None and increment:
                maps[f"{names[0]}:{swath}", f"{names[1]}:{swath}"] = _map_of(offset, increment)
        else:
            values[key] = value
    return maps


def _integer(text: str | None) -> int | None:
    """Return a whole number below `MOST_OFFSET`; `None` if it is none."""
    if text is None or not text.lstrip("+-").isdecimal() or len(text) > 11:
        return None
    number = int(text)
    return number if abs(number) < MOST_OFFSET else None


def _map_of(offset: int, increment: int) -> DimensionMap:
    """Return a map. If its increment is negative, data element `i` has `offset - increment * i`."""
    if increment > 0:
        return DimensionMap(offset, increment)
    return DimensionMap(offset / increment, -1 / increment)
