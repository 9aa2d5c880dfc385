"""Pixel boxes from a centre and a shape, from a FITS section, or from a sky position.

A box is `(x0, y0, width, height)`: zero-based, the lower-left pixel first, x along NAXIS1.
"""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any, Literal, TypeAlias

from swathe.core.errors import RegionError

Box: TypeAlias = tuple[int, int, int, int]
Mode: TypeAlias = Literal["trim", "partial", "strict"]
"""Treatment of a box that crosses the edge of the image: trim it, fill it, or fail."""
MODES: dict[Mode, str] = {
    "trim": "Trim the region",
    "partial": "Fill outside pixels",
    "strict": "Reject the target",
}
"""Titles of the modes on pages, in the order of `Mode`."""

SIDES = ("x0", "y0", "width", "height")
LIMIT = 1 << 53
"""Limit of pixel numbers: beyond it a float cannot tell neighbours apart."""
LONGEST_SECTION = 200
"""Limit of the length of a FITS section, in characters, without outer blanks."""
SECTION = re.compile(r"(?:\[\s*)?(\d+)\s*:\s*(\d+)\s*,\s*(\d+)\s*:\s*(\d+)\s*\]?")


def validated_box(x0: float, y0: float, width: float, height: float) -> Box:
    """Return the box in whole numbers.

    Raises:
        RegionError: If a number is not finite or not whole, or a side is not positive.
    """
    for name, value in zip(SIDES, (x0, y0, width, height), strict=True):
        # NaN compares false; some ints are too large to be printed, or to become a float.
        if not abs(value) <= LIMIT:
            raise RegionError(f"{name} must be a finite number of pixels, within {LIMIT}")
        if value != int(value):
            raise RegionError(f"{name} must be a whole number of pixels, not {value}")
    if width <= 0 or height <= 0:
        name, side = ("width", width) if width <= 0 else ("height", height)
        raise RegionError(f"{name} must be at least 1 pixel, not {side:.12g}")
    return int(x0), int(y0), int(width), int(height)


def box_around(x: float, y: float, height: float, width: float) -> Box:
    """Return the box of `height` x `width` pixels around a position, rounded as in `Cutout2D`.

    Args:
        x: zero-based pixel position along NAXIS1; whole numbers are pixel centres.
        y: zero-based pixel position along NAXIS2.
        height: pixels along NAXIS2.
        width: pixels along NAXIS1.

    Raises:
        RegionError: If a number is not finite, or a side is not positive.
    """
    validated_box(0, 0, width, height)
    for name, value in {"x": x, "y": y}.items():
        if not abs(value) <= LIMIT:
            raise RegionError(f"{name} must be a finite pixel position, within {LIMIT}")
    return validated_box(math.ceil(x - width / 2), math.ceil(y - height / 2), width, height)


def height_width(sides: Any) -> Any:
    """Return a pair (height, width) from a pair or from one number for both."""
    return (sides, sides) if isinstance(sides, Real) else sides


def box_from_section(text: str) -> Box:
    """Return the box of a FITS section `[x1:x2,y1:y2]`, which is one-based and inclusive.

    Raises:
        RegionError: If the text is not such a section, or the box is empty.
    """
    x1, x2, y1, y2 = section_ends(text)
    for axis, first, last in (("x", x1, x2), ("y", y1, y2)):
        if first < 1 or last < first:
            raise RegionError(
                f"a section counts from 1 upwards, x1 <= x2 and y1 <= y2, not {text.strip()!r}: "
                f"{axis} is {first}:{last}"
            )
    return validated_box(x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1)


def section_ends(text: str) -> tuple[int, int, int, int]:
    """Return the numbers x1, x2, y1 and y2 of a FITS section as written.

    Raises:
        RegionError: If the text is not such a section.
    """
    text = text.strip()
    numbers = SECTION.fullmatch(text) if len(text) <= LONGEST_SECTION else None
    if numbers is None:
        raise RegionError(
            f"a section is written [x1:x2,y1:y2], not {text[:LONGEST_SECTION]!r}"
            f"{_explain_section(text[:LONGEST_SECTION])}"
        )
    x1, x2, y1, y2 = map(int, numbers.groups())
    return x1, x2, y1, y2


def _explain_section(text: str) -> str:
    """Return a message about the unsupported part of a CFITSIO section; empty if none."""
    for axis, part in zip("xy", text.strip("[] ").split(","), strict=False):
        if "*" in part:
            return f": {axis} is {part.strip()!r}; whole axes (*) are not supported"
        if part.count(":") > 1:
            return f": {axis} is {part.strip()!r}; steps are not supported"
    return ""
