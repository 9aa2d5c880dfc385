"""Map projections of HDF-EOS grids, as the projection library of the USGS (GCTP) names them.

The sinusoidal one is computed here, the others by pyproj. Places are on the ellipsoid of the grid.

References:
    HDF-EOS Library User's Guide, volume 1, appendix A (codes, parameters and packed degrees);
    Snyder, Map Projections, USGS Professional Paper 1395; CF conventions, appendix F.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from swathe.core.errors import FormatError, OptionError, RegionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

GEOGRAPHIC, SINUSOIDAL = "GCTP_GEO", "GCTP_SNSOID"
EARTH_RADII_M = (6.2e6, 6.5e6)
"""Radii of the Earth; a file that names another one is of another planet."""
PARAMETERS = 13
PLAIN_DEGREES = 360.0
"""Up to this, an angle is in degrees: as DDDMMMSSS.SS it would be below a minute of arc."""
SPHERE, SPHERE_M = 19, 6370997.0
"""Code of the sphere of GCTP, and its radius."""
ELLIPSOIDS = {0: "clrk66", 1: "clrk80", 2: "bessel", 5: "WGS72", 8: "GRS80", 12: "WGS84"}
ANGLES = {
    "GCTP_ALBERS": {"lat_1": 2, "lat_2": 3, "lon_0": 4, "lat_0": 5},
    "GCTP_LAMCC": {"lat_1": 2, "lat_2": 3, "lon_0": 4, "lat_0": 5},
    "GCTP_PS": {"lon_0": 4, "lat_ts": 5},
    "GCTP_LAMAZ": {"lon_0": 4, "lat_0": 5},
}
"""Where the parameters have the angles of a projection."""
NAMES = {"GCTP_ALBERS": "aea", "GCTP_LAMCC": "lcc", "GCTP_PS": "stere", "GCTP_LAMAZ": "laea"}
UTM = "GCTP_UTM"
ALL = (GEOGRAPHIC, SINUSOIDAL, UTM, *NAMES)
"""The projections that are read."""


@dataclass(frozen=True)
class Sinusoidal:
    """The sinusoidal projection of a sphere around Greenwich.

    Attributes:
        radius_m: radius of the sphere.
    """

    radius_m: float

    def degrees(
        self, y: NDArray[np.float64], x: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latitudes and longitudes of places in metres; NaN outside of the map."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            longitude = np.degrees(x / (self.radius_m * np.cos(y / self.radius_m)))
        longitude[~(np.abs(longitude) <= 180.000001)] = np.nan
        return np.degrees(y / self.radius_m), longitude

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of its grid mapping."""
        return {
            "grid_mapping_name": "sinusoidal",
            "earth_radius": self.radius_m,
            "longitude_of_central_meridian": 0.0,
            "false_easting": 0.0,
            "false_northing": 0.0,
        }


@dataclass(frozen=True)
class ProjProjection:
    """A projection that pyproj computes.

    Attributes:
        parameters: its parameters, as PROJ names them.
    """

    parameters: Mapping[str, Any] = field(hash=False)

    def degrees(
        self, y: NDArray[np.float64], x: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latitudes and longitudes of places in metres; NaN outside of the map."""
        import numpy as np

        longitude, latitude = self._projection(x, y, inverse=True)
        is_place = np.isfinite(longitude) & np.isfinite(latitude)
        return np.where(is_place, latitude, np.nan), np.where(is_place, longitude, np.nan)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of its grid mapping."""
        attributes: dict[str, Any] = self._projection.crs.to_cf()
        return attributes

    @cached_property
    def _projection(self) -> Any:
        import pyproj

        return pyproj.Proj({**self.parameters, "units": "m", "no_defs": True})


MapProjection = Sinusoidal | ProjProjection


def projection_of(what: str, name: str, entries: Mapping[str, str]) -> MapProjection:
    """Return the projection of a grid.

    Args:
        what: name of the array in errors.
        name: one of `ALL` but `GEOGRAPHIC`.
        entries: values of the grid in `StructMetadata`.

    Raises:
        FormatError: If its parameters are no numbers, or those of no projection.
        OptionError: If pyproj is not installed.
        RegionError: If it is not of the Earth, or its ellipsoid has another code.
    """
    numbers = _parameters(what, entries)
    if name == SINUSOIDAL:
        check_radius(numbers[0])
        if any(numbers[1:]):
            raise RegionError(f"expected a sinusoidal grid around Greenwich, found {numbers}")
        return Sinusoidal(numbers[0])
    if importlib.util.find_spec("pyproj") is None:
        raise OptionError(
            f"{what}: expected latitude and longitude, found projection {name}, which needs "
            "pyproj: pip install 'swathe[geotiff]'"
        )
    parameters: dict[str, Any] = _ellipsoid(what, entries, numbers, name)
    if name == UTM:
        parameters |= _utm(what, entries)
    else:
        parameters |= {"proj": NAMES[name], "x_0": numbers[6], "y_0": numbers[7]}
        for key, number in ANGLES[name].items():
            parameters[key] = degrees_of(what, numbers[number], 90 if key < "lon" else 360)
    if name == "GCTP_PS":
        parameters["lat_0"] = math.copysign(90, parameters["lat_ts"])
    projection = ProjProjection(parameters)
    try:
        _ = projection._projection
    except Exception as error:
        raise FormatError(f"{what}: expected parameters of {name}, found {numbers}") from error
    return projection


def degrees_of(what: str, angle: float, most: float) -> float:
    """Return an angle in degrees: it is in degrees, or is DDDMMMSSS.SS (GCTP).

    Raises:
        FormatError: If it is neither, or larger than `most`.
    """
    degrees = abs(angle)
    if degrees > PLAIN_DEGREES:
        degrees = _degrees_of_digits(degrees)
    if not degrees <= most:
        raise FormatError(f"{what}: expected an angle, degrees or DDDMMMSSS.SS, found {angle}")
    return math.copysign(degrees, angle)


def corner_degrees(
    what: str, y: tuple[float, float], x: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the edges of a grid in degrees: all are in degrees, or all DDDMMMSSS.SS (GCTP).

    Raises:
        FormatError: If they are neither.
    """
    is_plain = max(map(abs, (*y, *x))) <= PLAIN_DEGREES
    edges = []
    for ends, most in ((y, 90.0), (x, 360.0)):
        angles = []
        for angle in ends:
            degrees = abs(angle) if is_plain else _degrees_of_digits(abs(angle))
            if not degrees <= most:
                raise FormatError(
                    f"{what}: expected a corner in degrees or as DDDMMMSSS.SS, found {angle}"
                )
            angles.append(math.copysign(degrees, angle))
        edges.append((angles[0], angles[1]))
    return edges[0], edges[1]


def check_radius(radius_m: float) -> None:
    """Check that a radius is that of the Earth.

    Raises:
        RegionError: If it is not.
    """
    if not EARTH_RADII_M[0] <= radius_m <= EARTH_RADII_M[1]:
        raise RegionError(f"expected the radius of the Earth, found {radius_m:g} m")


def _degrees_of_digits(angle: float) -> float:
    """Return an angle of DDDMMMSSS.SS in degrees; NaN if it is none."""
    whole, rest = divmod(angle, 1e6)
    minutes, seconds = divmod(rest, 1e3)
    if minutes > 60 or seconds > 60:
        return math.nan
    return whole + minutes / 60 + seconds / 3600


def _parameters(what: str, entries: Mapping[str, str]) -> list[float]:
    try:
        numbers = [float(each) for each in entries.get("ProjParams", "").strip("()").split(",")]
    except ValueError:
        raise FormatError(f"{what}: expected numbers in ProjParams, found others") from None
    if not all(map(math.isfinite, numbers)):
        raise FormatError(f"{what}: expected numbers in ProjParams, found {numbers[:PARAMETERS]}")
    return (numbers + PARAMETERS * [0.0])[:PARAMETERS]


def _ellipsoid(
    what: str, entries: Mapping[str, str], numbers: Sequence[float], name: str
) -> dict[str, Any]:
    """Return the ellipsoid, by its code; without one, by the first two parameters.

    These are the semi-major axis, and the semi-minor one or the square of the eccentricity.
    """
    code = entries.get("SphereCode", "-1").strip()
    if not code.startswith("-"):
        if code == str(SPHERE):
            return {"R": SPHERE_M}
        number = int(code) if code.isdecimal() and len(code) < 3 else -1
        if number not in ELLIPSOIDS:
            raise RegionError(
                f"{what}: expected SphereCode {SPHERE} or one of {list(ELLIPSOIDS)}, "
                f"found {code[:20]}"
            )
        return {"R": SPHERE_M} if name == "GCTP_LAMAZ" else {"ellps": ELLIPSOIDS[number]}
    major, second = abs(numbers[0]), abs(numbers[1])
    if name == UTM and not major:
        return {"ellps": ELLIPSOIDS[0]}
    check_radius(major)
    if second > 1:
        check_radius(second)
        return {"a": major, "b": second}
    return {"a": major, "es": second} if 0 < second < 1 else {"R": major}


def _utm(what: str, entries: Mapping[str, str]) -> dict[str, Any]:
    """Return the zone; that of the south is negative."""
    text = entries.get("ZoneCode", "").strip()
    digits = text.removeprefix("-")
    zone = int(digits) if digits.isdecimal() and len(digits) < 3 else 0
    if not 1 <= zone <= 60:
        raise FormatError(f"{what}: expected a ZoneCode of 1 to 60, found {text[:20]!r}")
    return {"proj": "utm", "zone": zone} | ({"south": True} if text.startswith("-") else {})
