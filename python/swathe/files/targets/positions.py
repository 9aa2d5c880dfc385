"""Convert positions and sizes from Python values: numbers, text, Quantity, Angle, SkyCoord."""

from __future__ import annotations

import math
from collections.abc import Sized
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any

from swathe.core.angles import Size, parse_angle, parse_size
from swathe.core.errors import RegionError
from swathe.files.targets.frames import frame_by_name, in_frame
from swathe.files.targets.place_text import read_place
from swathe.files.targets.text_line import parse_position

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord


def position(sky: Any, frame: str | None = None) -> SkyCoord:
    """Return one position as coordinates, an array of one.

    Args:
        sky: a pair of longitude and latitude, each degrees, an angle or text; one text with both;
            the name of an object; or an astropy coordinate.
        frame: frame of a pair or a text; ICRS by default.

    Raises:
        RegionError: If it is not a position.
    """
    if hasattr(sky, "transform_to"):
        return _coordinate(sky, frame)
    if isinstance(sky, str) and frame is None:
        place = read_place(sky)
        return in_frame(place.ra_deg, place.dec_deg, frame_by_name("icrs"))
    # Only right ascensions may be in hours, not other longitudes.
    hours = is_equatorial(frame)
    if isinstance(sky, str):
        lon, lat, is_named = parse_position(sky, hours=hours)
        if is_named and frame is not None:
            raise RegionError(f"frame: expected none with the name of an object, found {frame!r}")
    else:
        if not _is_pair(sky):
            raise RegionError(f"sky: expected (ra, dec), text or a SkyCoord, found {sky!r:.100}")
        pair: list[Any] = [*sky]
        lon = degrees_of(pair[0], "ra", hours=hours)
        lat = degrees_of(pair[1], "dec")
    return in_frame(lon, lat, frame_by_name(frame or "icrs"))


@lru_cache
def is_equatorial(frame: str | None) -> bool:
    """Check whether the longitudes of a frame are right ascensions; without one it is ICRS."""
    return frame is None or "ra" in frame_by_name(frame).get_representation_component_names()


def _coordinate(sky: Any, frame: str | None) -> SkyCoord:
    from astropy.coordinates import SkyCoord

    if frame is not None:
        raise RegionError(f"frame: expected none with a SkyCoord, found {frame!r}")
    coordinate = sky if isinstance(sky, SkyCoord) else SkyCoord(sky)
    if coordinate.size != 1:
        raise RegionError(f"sky must be one position, not {coordinate.size}")
    return coordinate.reshape(1)


def degrees_of(value: Any, what: str, *, hours: bool = False) -> float:
    """Return the degrees of one angle: a number, text, or a Quantity.

    Args:
        value: angle.
        what: name of the value in errors.
        hours: whether sexagesimal text is in hours.

    Raises:
        RegionError: If it is not an angle.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return parse_angle(value, what, hours=hours)
    if hasattr(value, "unit"):
        return _quantity(value, what)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise RegionError(f"{what}: expected degrees or an angle, found {value!r:.60}")
    return _float(value, what)


def _float(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise RegionError(f"{what}: expected a number, found {value!r:.60}") from None


def _quantity(value: Any, what: str) -> float:
    """Return the degrees of a Quantity; a dimensionless one is in degrees."""
    scale = degrees_per(value.unit)
    if scale is None:
        raise RegionError(f"{what}: expected an angle, found unit {str(value.unit)!r}")
    return _float(getattr(value, "value", value), what) * scale


def degrees_per(unit: Any) -> float | None:
    """Return degrees per unit; 1 without a unit, `None` if the unit is not an angle."""
    from astropy import units

    if unit is None or unit == "":
        return 1.0
    try:
        unit_object = units.Unit(unit)
        if unit_object == units.dimensionless_unscaled:
            return 1.0
        # Hours can only be those of a right ascension here.
        if unit_object == units.hour:
            return 15.0
        return float(unit_object.to(units.deg))
    except (ValueError, TypeError):  # UnitConversionError is both
        return None


def is_pixel(unit: Any) -> bool:
    """Check whether a unit is pixels."""
    from astropy import units

    try:
        return bool(units.Unit(unit) == units.pix)
    except (ValueError, TypeError):
        return False


def size_of(value: Any, what: str = "size", *, bare_deg: float | None = None) -> Size:
    """Return a size from an angle or pixels (Quantity, Angle, text), or from height and width.

    Args:
        value: size.
        what: name of the value in errors.
        bare_deg: degrees per unit of a bare number; `None` if bare numbers are refused.

    Raises:
        RegionError: If it is not a size, or is a bare number that may mean degrees or pixels.
    """
    if isinstance(value, Size):
        return value
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return parse_size(value, what, bare_deg=bare_deg)
    if _is_pair(value):
        height, width = (size_of(side, what, bare_deg=bare_deg) for side in value)
        if height.unit != width.unit:
            raise RegionError(f"{what}: expected one unit, found {value!r:.60}")
        return Size(height.height, width.width, height.unit)
    return _one_side(value, what, bare_deg)


def _is_pair(value: Any) -> bool:
    """Check whether a value is a pair; the shape of a scalar Quantity is ()."""
    return getattr(value, "shape", (0,)) != () and isinstance(value, Sized) and len(value) == 2


def _one_side(value: Any, what: str, bare_deg: float | None) -> Size:
    if hasattr(value, "unit") and is_pixel(value.unit):
        number = _float(value.value, what)
        side = Size(number, number, "pix")
    elif hasattr(value, "unit"):
        number = _quantity(value, what)
        side = Size(number, number)
    elif isinstance(value, Real) and not isinstance(value, bool):
        if bare_deg is None:
            raise RegionError(
                f"{what}: expected a unit, found {value}; write {what}={value}*u.arcsec, "
                f'"{value}arcsec" or "{value}pix"'
            )
        number = _float(value, what) * bare_deg
        side = Size(number, number)
    else:
        raise RegionError(f"{what}: expected an angle or pixels, found {value!r:.60}")
    if not math.isfinite(number) or number <= 0:
        raise RegionError(f"{what}: expected a positive size, found {value}")
    return side
