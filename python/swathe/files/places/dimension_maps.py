"""Dimension maps of HDF-EOS: which elements of a swath its coarser geolocation belongs to.

References:
    HDF-EOS Library User's Guide, volume 1, 4.1.4 (geolocation and data, dimension maps).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swathe.arrays.struct_metadata import integer_of, structures_of, without_quotes

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
    for swath in structures_of(structure):
        for kind, values in swath.objects:
            names = [without_quotes(values.get(f"{each}Dimension", "")) for each in ("Geo", "Data")]
            offset, increment = (_number(values.get(each)) for each in ("Offset", "Increment"))
            if kind == "DimensionMap" and all(names) and offset is not None and increment:
                geolocation, data = (f"{name}:{swath.name}" for name in names)
                maps[geolocation, data] = _map_of(offset, increment)
    return maps


def _number(text: str | None) -> int | None:
    """Return a whole number below `MOST_OFFSET`; `None` if it is none."""
    number = integer_of(text)
    return number if number is not None and abs(number) < MOST_OFFSET else None


def _map_of(offset: int, increment: int) -> DimensionMap:
    """Return a map. If its increment is negative, data element `i` has `offset - increment * i`."""
    if increment > 0:
        return DimensionMap(offset, increment)
    return DimensionMap(offset / increment, -1 / increment)
