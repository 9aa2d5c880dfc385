"""Look up celestial frames by name, and convert positions to ICRS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from astropy.coordinates import BaseCoordinateFrame, SkyCoord

# In catalogues, ecliptic coordinates are those of J2000 seen from the barycentre.
OTHER_NAMES = {
    "ecliptic": "barycentricmeanecliptic",
    "j2000": "fk5",
    "b1950": "fk4",
    "equatorial": "icrs",
    # Values of COOSYS in a VOTable: those of 2003, and of the IVOA vocabulary `refframe`.
    "eq_fk5": "fk5",
    "eq_fk4": "fk4",
    "ecl_fk5": "barycentricmeanecliptic",
    "super_galactic": "supergalactic",
}
USUAL = "icrs, fk5, fk4, galactic, supergalactic, ecliptic"


def frame_by_name(name: str, equinox: str | None = None) -> BaseCoordinateFrame:
    """Return a frame by its name in astropy, in a VOTable or in common use.

    Raises:
        RegionError: If the name is unknown, or the frame needs a time or a place on Earth.
    """
    from astropy.coordinates import frame_transform_graph
    from astropy.time import Time

    if not isinstance(name, str):
        raise RegionError(f"frame: expected one of {USUAL}, found {short_text(name)}")
    key = name.strip().lower()
    key = OTHER_NAMES.get(key, key)
    kind = frame_transform_graph.lookup_name(key)
    if kind is None:
        raise RegionError(f"frame: expected one of {USUAL}, found {name.strip()[:40]!r}")
    options = {}
    if equinox and "equinox" in kind.frame_attributes:
        try:
            options["equinox"] = Time(equinox)
        except ValueError as error:
            raise RegionError(f"frame: expected an equinox, found {equinox[:40]!r}") from error
    frame: BaseCoordinateFrame = kind(**options)
    return frame


def in_frame(lon_deg: Any, lat_deg: Any, frame: BaseCoordinateFrame) -> SkyCoord:
    """Return ICRS coordinates of finite degrees in a frame, as an array of at least one.

    Raises:
        RegionError: If a latitude is beyond a pole, or the frame cannot be converted to ICRS.
    """
    import numpy as np
    from astropy.coordinates import SkyCoord, UnitSphericalRepresentation
    from astropy.units import deg

    lon, lat = np.atleast_1d(np.asarray(lon_deg, float)), np.atleast_1d(np.asarray(lat_deg, float))
    wrong = ~(np.isfinite(lon) & np.isfinite(lat) & (np.abs(lat) <= 90))
    if wrong.any():
        raise RegionError(
            "sky: expected a right ascension or longitude, and a declination or latitude from -90 "
            f"to 90 degrees, found {lon[wrong][0]}, {lat[wrong][0]}"
        )
    try:
        place = UnitSphericalRepresentation(lon * deg, lat * deg)
        return SkyCoord(frame.realize_frame(place)).icrs
    except Exception as error:  # each incomplete frame raises an error of its own
        raise RegionError(
            f"frame: expected one of {USUAL}, found {frame.name!r}, which cannot be converted to "
            f"ICRS: {error}"
        ) from error
