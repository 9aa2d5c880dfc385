"""`StructMetadata` of HDF-EOS 2 and 5: swaths and grids of a file, and the axes of their fields.

The text is the user's: what is not as the library writes it is left out.

References:
    HDF-EOS Library User's Guide, volume 1, 4 (swaths) and 5 (grids); HDF-EOS5, ESDS-RFC-008.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

STRUCTURE = "StructMetadata.0"
LARGEST = 1_000_000
"""Characters that are read."""
LONGEST_NAME = 256
STRUCTURES = re.compile(r"(SWATH|GRID)_\d+")
OBJECTS = re.compile(r"(Dimension|DimensionMap|DataField|GeoField)_\d+")
LISTED_NAME = re.compile(r'"([^"]*)"')
FOLDERS = {"DataField": "Data Fields", "GeoField": "Geolocation Fields"}
"""Groups of HDF5 with the fields of a swath or grid."""


@dataclass
class Structure:
    """A swath or a grid.

    Attributes:
        kind: `SWATH` or `GRID`.
        entries: its own values by name, as they are written; of equal names, the first.
        objects: the kind of each object in it (`DimensionMap`, ...), and its values.
    """

    kind: str
    entries: dict[str, str] = field(default_factory=dict)
    objects: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return its name; empty if it has none."""
        return without_quotes(
            self.entries.get("GridName" if self.kind == "GRID" else "SwathName", "")
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Return the elements along each axis, by its name; at most 0 if it is unlimited."""
        sizes = {name: self.entries.get(name, "") for name in ("XDim", "YDim")}
        for kind, values in self.objects:
            if kind == "Dimension":
                name = without_quotes(values.get("DimensionName", ""))
                sizes.setdefault(name, values.get("Size", ""))
        numbers = {name: integer_of(text) for name, text in sizes.items()}
        return {name: number for name, number in numbers.items() if number is not None}


def structures_of(text: Any) -> list[Structure]:
    """Return the swaths and grids that a text describes; none if it is no text."""
    structures: list[Structure] = []
    current: Structure | None = None
    values: dict[str, str] | None = None
    for line in text[:LARGEST].splitlines() if isinstance(text, str) else ():
        key, equals, value = (part.strip() for part in line.partition("="))
        if key == "GROUP" and (match := STRUCTURES.fullmatch(value)):
            current, values = Structure(match[1]), None
            structures.append(current)
        elif key == "END_GROUP" and STRUCTURES.fullmatch(value):
            current = values = None
        elif current is None:
            continue
        elif key == "OBJECT":
            values = {}
            if match := OBJECTS.fullmatch(value):
                current.objects.append((match[1], values))
        elif key == "END_OBJECT":
            values = None
        elif equals:
            (current.entries if values is None else values).setdefault(key, value)
    return structures


def field_axes(text: Any) -> dict[str, list[tuple[str, int]]]:
    """Return the axes of the fields of an HDF-EOS 5 file, by path.

    Args:
        text: its `StructMetadata`.

    Returns:
        For each axis its name, such as `nTimes:Swath1`, and its elements; at most 0 if unlimited.
        Fields with unknown axes, an axis twice, or names that are no names are left out.
    """
    axes: dict[str, list[tuple[str, int]]] = {}
    for structure in structures_of(text):
        sizes = structure.sizes
        for kind, values in structure.objects:
            if kind not in FOLDERS:
                continue
            names = LISTED_NAME.findall(values.get("DimList", ""))
            is_clear = len(set(names)) == len(names) and all(
                map(_is_name, [structure.name, *names])
            )
            if is_clear and all(name in sizes for name in names):
                name = without_quotes(values.get(f"{kind}Name", ""))
                path = f"/HDFEOS/{structure.kind}S/{structure.name}/{FOLDERS[kind]}/{name}"
                axes.setdefault(path, [(f"{each}:{structure.name}", sizes[each]) for each in names])
    return axes


def without_quotes(text: str) -> str:
    """Return a text without the marks around it."""
    return text.strip('"')


def integer_of(text: str | None) -> int | None:
    """Return a whole number of at most ten digits; `None` if it is none."""
    if text is None or len(text) > 11 or not text.lstrip("+-").isdecimal():
        return None
    try:
        return int(text)
    except ValueError:  # more than one sign
        return None


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and not set(text) & set("/:")
