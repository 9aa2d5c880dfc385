"""Coordinate reference systems of projected GeoTIFF images, by their keys.

One with an EPSG code is that of pyproj. For others the keys name a method and its parameters, which
pyproj takes as PROJ names them; the datum is that of the geographic system that the keys name.

References:
    OGC GeoTIFF Standard 1.1 (19-008r4), 7.5 and annex C; GeoTIFF 1.0, 6.3.3.3 (codes of methods);
    libgeotiff, for keys of origins that may stand for each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.errors import RegionError
from swathe.files.places.gctp import check_radius
from swathe.files.variable import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECTION = "ProjectedCSTypeGeoKey"
USER_CODE = 32767
DEGREES = 9102
GREENWICH = 8901
SAME_ELLIPSOID_M = 0.5
"""How far the major axis of the keys may be from that of the geographic system."""
METRES = {9001: 1.0, 9002: 0.3048, 9003: 1200 / 3937}
"""Metres of a linear unit: metre, foot, foot of the US survey."""
LATITUDE = ("NatOriginLat", "FalseOriginLat", "CenterLat")
LONGITUDE = ("NatOriginLong", "FalseOriginLong", "CenterLong")
POLE = ("StraightVertPoleLong", *LONGITUDE)
ORIGIN: dict[str, tuple[str, ...]] = {"lat_0": LATITUDE, "lon_0": LONGITUDE}
PARALLELS: dict[str, tuple[str, ...]] = {"lat_1": ("StdParallel1",), "lat_2": ("StdParallel2",)}
SCALE: dict[str, tuple[str, ...]] = {"k_0": ("ScaleAtNatOrigin", "ScaleAtCenter")}
EASTING = ("FalseEasting", "FalseOriginEasting", "CenterEasting")
NORTHING = ("FalseNorthing", "FalseOriginNorthing", "CenterNorthing")


class Method(NamedTuple):
    """A method of projection.

    Attributes:
        proj: its name in PROJ.
        keys: keys of each parameter of PROJ, without `Proj` and `GeoKey`; the first that is there.
    """

    proj: str
    keys: Mapping[str, tuple[str, ...]]


METHODS = {
    1: Method("tmerc", ORIGIN | SCALE),
    7: Method("merc", {"lon_0": LONGITUDE, "lat_ts": ("StdParallel1",), **SCALE}),
    8: Method("lcc", ORIGIN | PARALLELS),
    9: Method("lcc", ORIGIN | {"lat_1": LATITUDE} | SCALE),
    10: Method("laea", ORIGIN),
    11: Method("aea", ORIGIN | PARALLELS),
    12: Method("aeqd", ORIGIN),
    13: Method("eqdc", ORIGIN | PARALLELS),
    14: Method("stere", ORIGIN | SCALE),
    15: Method("stere", {"lat_ts": LATITUDE, "lon_0": POLE, **SCALE}),
    16: Method("sterea", ORIGIN | SCALE),
    17: Method("eqc", ORIGIN | {"lat_ts": ("StdParallel1",)}),
    21: Method("ortho", ORIGIN),
    22: Method("poly", ORIGIN),
    23: Method("robin", {"lon_0": LONGITUDE}),
    24: Method("sinu", {"lon_0": LONGITUDE}),
    28: Method("cea", {"lon_0": LONGITUDE, "lat_ts": ("StdParallel1",)}),
}
"""Methods that are read, by their codes in `ProjCoordTransGeoKey`."""
POLAR = 15


def transformer_of(attrs: Mapping[str, Any], what: str) -> Any:
    """Return the `pyproj.Transformer` to degrees from the projected system that keys name.

    Args:
        attrs: attributes of the image, with the keys by their names.
        what: name of the image in errors.

    Raises:
        RegionError: If the keys do not say which, or say it in a way that is not read.
    """
    import pyproj

    try:
        return pyproj.Transformer.from_crs(_system(attrs), "OGC:CRS84", always_xy=True)
    except RegionError as error:
        raise RegionError(f"{what}: {error}") from None
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # of pyproj, too
        raise RegionError(
            f"{what}: expected a projection that PROJ knows, found keys with another: "
            f"{str(error).splitlines()[0]:.200}"
        ) from None


def _system(attrs: Mapping[str, Any]) -> Any:
    """Return the projected system, as a `pyproj.CRS`."""
    import pyproj

    code = number_of(attrs.get(PROJECTION, USER_CODE))
    if code != USER_CODE:
        crs = pyproj.CRS.from_epsg(code)
        if not crs.is_projected:
            raise RegionError(f"expected a projected system, found EPSG:{code}, {crs.type_name}")
        return crs
    system = _projection(attrs)
    system["base_crs"] = _geographic(attrs).to_json_dict()
    unit = _metres(attrs)
    for axis in system["coordinate_system"]["axis"]:
        axis["unit"] = {"type": "LinearUnit", "name": "unit", "conversion_factor": unit}
    return pyproj.CRS.from_json_dict(system)


def _projection(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a projected system in metres, on any ellipsoid, as PROJJSON."""
    import pyproj

    conversion = number_of(attrs.get("ProjectionGeoKey", USER_CODE))
    plain = {"proj": "tmerc", "ellps": "WGS84"}
    if conversion != USER_CODE:
        crs: Any = pyproj.crs
        operation = crs.CoordinateOperation.from_epsg(conversion)
        whole: dict[str, Any] = pyproj.CRS.from_dict(plain).to_json_dict()
        return whole | {"conversion": operation.to_json_dict()}
    code = number_of(attrs.get("ProjCoordTransGeoKey", 0))
    method = METHODS.get(code)
    if method is None:
        names = ", ".join(map(str, METHODS))
        raise RegionError(
            f"expected a projection with an EPSG code, or by one of the methods {names} "
            f"(ProjCoordTransGeoKey), found method {code}"
        )
    return dict(pyproj.CRS.from_dict({**plain, **_parameters(attrs, code, method)}).to_json_dict())


def _parameters(attrs: Mapping[str, Any], code: int, method: Method) -> dict[str, Any]:
    """Return the parameters of a method, as PROJ names them."""
    unit = _metres(attrs)
    parameters: dict[str, Any] = {"proj": method.proj}
    for name, keys in method.keys.items():
        if (value := _first(attrs, keys)) is not None:
            parameters[name] = value
    for name, keys in (("x_0", EASTING), ("y_0", NORTHING)):
        parameters[name] = (_first(attrs, keys) or 0.0) * unit
    if code == POLAR:
        parallel = parameters.get("lat_ts", 90.0)
        parameters["lat_0"] = math.copysign(90.0, parallel)
        if abs(parallel) == 90:
            parameters.pop("lat_ts", None)
        else:
            parameters.pop("k_0", None)
    return parameters


def _first(attrs: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    """Return the number of the first of some keys that is there."""
    for key in keys:
        if (value := attrs.get(f"Proj{key}GeoKey")) is not None:
            return float(number_of(value))
    return None


def _metres(attrs: Mapping[str, Any]) -> float:
    """Return the metres of the linear unit."""
    code = number_of(attrs.get("ProjLinearUnitsGeoKey", 9001))
    size = number_of(attrs.get("ProjLinearUnitSizeGeoKey", 0.0)) if code == USER_CODE else None
    metres = METRES.get(code, size)
    if metres is None or not 0 < metres < math.inf:
        raise RegionError(
            f"expected a linear unit of {', '.join(map(str, METRES))} or with its size in metres, "
            f"found unit {code}"
        )
    return float(metres)


def _geographic(attrs: Mapping[str, Any]) -> Any:
    """Return the geographic system of the keys: by its code, else on their ellipsoid.

    An ellipsoid that is not that of the code counts, as in GDAL.
    """
    import pyproj

    units = number_of(attrs.get("GeogAngularUnitsGeoKey", DEGREES))
    meridian = number_of(attrs.get("GeogPrimeMeridianGeoKey", GREENWICH))
    longitude = number_of(attrs.get("GeogPrimeMeridianLongGeoKey", 0.0))
    if units != DEGREES or meridian not in (GREENWICH, USER_CODE) or longitude != 0:
        raise RegionError(
            f"expected degrees ({DEGREES}) from Greenwich ({GREENWICH}), found units {units}, "
            f"prime meridian {meridian}"
        )
    code = number_of(attrs.get("GeographicTypeGeoKey", USER_CODE))
    system: Any = None if code == USER_CODE else pyproj.CRS.from_epsg(code)
    axes = _ellipsoid(attrs)
    if system is not None:
        major = axes.get("a", system.ellipsoid.semi_major_metre)
        if abs(major - system.ellipsoid.semi_major_metre) < SAME_ELLIPSOID_M:
            return system
    if not axes:
        raise RegionError("expected a geographic system or an ellipsoid, found none")
    check_radius(axes["a"])
    return pyproj.CRS.from_dict({"proj": "longlat", **axes})


def _ellipsoid(attrs: Mapping[str, Any]) -> dict[str, float]:
    """Return the axes of the ellipsoid, as PROJ names them; none if no key has them."""
    import pyproj

    major = attrs.get("GeogSemiMajorAxisGeoKey")
    if major is None:
        code = number_of(attrs.get("GeogEllipsoidGeoKey", USER_CODE))
        if code == USER_CODE:
            return {}
        crs: Any = pyproj.crs
        ellipsoid = crs.Ellipsoid.from_epsg(code)
        return {"a": ellipsoid.semi_major_metre, "b": ellipsoid.semi_minor_metre}
    axes = {"a": float(number_of(major))}
    flattening = float(number_of(attrs.get("GeogInvFlatteningGeoKey", 0.0)))
    minor = float(number_of(attrs.get("GeogSemiMinorAxisGeoKey", axes["a"])))
    return axes | ({"rf": flattening} if flattening else {"b": minor})
