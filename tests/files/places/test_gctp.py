"""Grids of HDF-EOS in projections and in plain degrees, against the formulas of Snyder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import FormatError, RegionError
from swathe.files.places.hdf_eos_grid import eos_grid
from swathe.files.places.regions import region_of_bounds

pytest.importorskip("pyproj")
hdf_eos5 = pytest.importorskip("tests.support.hdf_eos5")
WGS84 = 6378137.0, 6356752.314245
CLARKE = 6378206.4, 6356583.8
SPHERE_CODE = "\t\tSphereCode={}\n"


def grid(path: Path, projection: str, parameters: str, corner: float = 4e5, **more: Any) -> Any:
    """Return the array of a grid of 12 x 24 pixels around the origin of its map."""
    hdf_eos5.write_grid(
        path,
        projection=f"HE5_{projection}",
        parameters=parameters,
        upper_left=more.pop("upper_left", f"({-2 * corner},{corner})"),
        lower_right=more.pop("lower_right", f"({2 * corner},{-corner})"),
        **more,
    )
    array: Any = swathe.open(path)
    return array[hdf_eos5.COLUMN]


def metres(latitude: Any, longitude: Any, name: str, **of: float) -> tuple[Any, Any]:
    """Return x and y by Snyder: 14 (Albers), 21 (stereographic), 24 (Lambert), 8 (UTM)."""
    a, b = of["a"], of["b"]
    e2 = 1 - (b / a) ** 2
    e, lat = math.sqrt(e2), np.radians(latitude)
    turn = np.radians((longitude - of["lon_0"] + 180) % 360 - 180)

    def m(at: Any) -> Any:
        return np.cos(at) / np.sqrt(1 - e2 * np.sin(at) ** 2)

    if name == "lambert":  # 24-2 to 24-4, of the sphere
        lat_0 = math.radians(of["lat_0"])
        cosine = np.sin(lat_0) * np.sin(lat) + np.cos(lat_0) * np.cos(lat) * np.cos(turn)
        k = np.sqrt(2 / (1 + cosine))
        y = np.cos(lat_0) * np.sin(lat) - np.sin(lat_0) * np.cos(lat) * np.cos(turn)
        return a * k * np.cos(lat) * np.sin(turn), a * k * y
    if name == "stereographic":  # 15-9, 21-33, 21-34

        def t(at: Any) -> Any:
            sine = e * np.sin(at)
            return np.tan(np.pi / 4 - at / 2) / ((1 - sine) / (1 + sine)) ** (e / 2)

        true = math.radians(of["lat_ts"])
        radius = a * m(true) * t(lat) / t(true)
        return radius * np.sin(turn), -radius * np.cos(turn)
    if name == "albers":  # 3-12, 14-1 to 14-6

        def q(at: Any) -> Any:
            sine = np.sin(at)
            log = np.log((1 - e * sine) / (1 + e * sine)) / (2 * e)
            return (1 - e2) * (sine / (1 - e2 * sine**2) - log)

        one, two, lat_0 = (math.radians(of[key]) for key in ("lat_1", "lat_2", "lat_0"))
        n = (m(one) ** 2 - m(two) ** 2) / (q(two) - q(one))
        c = m(one) ** 2 + n * q(one)
        radius, radius_0 = (a * np.sqrt(c - n * q(at)) / n for at in (lat, lat_0))
        return radius * np.sin(n * turn), radius_0 - radius * np.cos(n * turn)
    # 3-21, 8-9, 8-10 (UTM)
    ep2 = e2 / (1 - e2)
    n_, t_, c_ = a / np.sqrt(1 - e2 * np.sin(lat) ** 2), np.tan(lat) ** 2, ep2 * np.cos(lat) ** 2
    arc_x = turn * np.cos(lat)
    arc = (
        (1 - e2 / 4 - 3 * e2**2 / 64 - 5 * e2**3 / 256) * lat
        - (3 * e2 / 8 + 3 * e2**2 / 32 + 45 * e2**3 / 1024) * np.sin(2 * lat)
        + (15 * e2**2 / 256 + 45 * e2**3 / 1024) * np.sin(4 * lat)
        - (35 * e2**3 / 3072) * np.sin(6 * lat)
    )
    fifth = (5 - 18 * t_ + t_**2 + 72 * c_ - 58 * ep2) * arc_x**5 / 120
    sixth = (61 - 58 * t_ + t_**2 + 600 * c_ - 330 * ep2) * arc_x**6 / 720
    x = 0.9996 * n_ * (arc_x + (1 - t_ + c_) * arc_x**3 / 6 + fifth) + 5e5
    return x, 0.9996 * (
        a * arc
        + n_ * np.tan(lat) * (arc_x**2 / 2 + (5 - t_ + 9 * c_ + 4 * c_**2) * arc_x**4 / 24 + sixth)
    )


@pytest.mark.parametrize(
    ("projection", "parameters", "name", "of", "more"),
    [
        (
            "GCTP_LAMAZ",
            "(6371228,0,0,0,-30030000.00,45000000.00,0,0,0,0,0,0,0)",
            "lambert",
            {"a": 6371228.0, "b": 6371228.0, "lon_0": -30.5, "lat_0": 45},
            "",
        ),
        (
            "GCTP_LAMAZ",
            "(0,0,0,0,10000000,90000000,0,0,0,0,0,0,0)",
            "lambert",
            {"a": 6370997.0, "b": 6370997.0, "lon_0": 10, "lat_0": 90},
            SPHERE_CODE.format(19),
        ),
        (
            "GCTP_PS",
            "(6378273,-0.006694,0,0,-45000000,70000000,0,0,0,0,0,0,0)",
            "stereographic",
            {
                **{"a": 6378273.0, "b": 6378273.0 * math.sqrt(1 - 0.006694)},
                **{"lon_0": -45, "lat_ts": 70},
            },
            "",
        ),
        (
            "GCTP_ALBERS",
            "(0,0,29.5,45030000,-96000000,23000000,0,0,0,0,0,0,0)",
            "albers",
            {
                **{"a": WGS84[0], "b": WGS84[1], "lat_1": 29.5, "lat_2": 45.5},
                **{"lat_0": 23, "lon_0": -96},
            },
            SPHERE_CODE.format(12),
        ),
        (
            "GCTP_UTM",
            "(0,0,0,0,0,0,0,0,0,0,0,0,0)",
            "utm",
            {"a": CLARKE[0], "b": CLARKE[1], "lon_0": -75},
            "\t\tZoneCode=18\n" + SPHERE_CODE.format(0),
        ),
    ],
    ids=["lambert", "lambert_pole", "polar", "albers", "utm"],
)
def test_a_projection_equals_the_formula(
    tmp_path: Path, projection: str, parameters: str, name: str, of: dict[str, float], more: str
) -> None:
    corners: dict[str, Any] = {}
    if name == "utm":
        corners = {"upper_left": "(300000,4600000)", "lower_right": "(780000,4360000)"}
    array = grid(tmp_path / "a.he5", projection, parameters, more=more, **corners)
    eos = eos_grid(array)
    assert eos is not None
    rows, columns = np.arange(12) + 0.5, np.arange(24) + 0.5
    latitude, longitude = eos.places(rows, columns)
    x, y = metres(latitude, longitude, name, **of)
    cutout: Any = swathe.cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(0, 0, 24, 12))
    tolerance_m = 0.01 if name == "utm" else 1e-3
    np.testing.assert_allclose(x, np.tile(cutout.coords["x"].data, (12, 1)), atol=tolerance_m)
    np.testing.assert_allclose(y.T, np.tile(cutout.coords["y"].data, (24, 1)), atol=tolerance_m)
    south, north = np.sort(latitude.ravel())[[100, 130]]
    mask = (latitude >= south) & (latitude <= north)
    (part,) = region_of_bounds(array, (-180, float(south), 180, float(north)))
    for axis, number in ((1, 1), (0, 2)):
        inside = np.flatnonzero(mask.any(axis))
        assert part[number] == (inside[0], inside[-1] + 1)


def test_a_cut_names_its_projection_as_pyproj_reads_it(tmp_path: Path) -> None:
    import pyproj

    parameters = "(6378273,-0.006694,0,0,-45000000,70000000,0,0,0,0,0,0,0)"
    grid(tmp_path / "a.he5", "GCTP_PS", parameters)
    cutout: Any = swathe.cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(2, 3, 4, 5))
    cutout.write(tmp_path / "cut.nc")
    mapping: Any = swathe.open(tmp_path / "cut.nc")
    crs = pyproj.CRS.from_cf(mapping["crs"].attrs)
    longitude, latitude = pyproj.Proj(crs)(
        float(cutout.coords["x"].data[0]), float(cutout.coords["y"].data[0]), inverse=True
    )
    eos = eos_grid(swathe.open(tmp_path / "a.he5")[hdf_eos5.COLUMN])  # type: ignore[arg-type]
    assert eos is not None
    expected = eos.places(np.array([3.5]), np.array([2.5]))
    assert (latitude, longitude) == pytest.approx([each[0, 0] for each in expected], abs=1e-7)


@pytest.mark.parametrize(
    ("projection", "parameters", "more", "error", "words"),
    [
        ("GCTP_UTM", "(0)", "", FormatError, "expected a ZoneCode of 1 to 60"),
        ("GCTP_UTM", "(0)", "\t\tZoneCode=61\n", FormatError, "found '61'"),
        ("GCTP_PS", "(3396190,0)", "", RegionError, "expected the radius of the Earth"),
        ("GCTP_PS", "(0,0)", SPHERE_CODE.format(7), RegionError, "expected SphereCode 19 or one"),
        ("GCTP_PS", "(6378137,nan)", "", FormatError, "expected numbers in ProjParams"),
        ("GCTP_PS", "(6378137,0,0,0,0,95000000)", "", FormatError, "expected an angle"),
        ("GCTP_ALBERS", "(6378137,0,0,0,0,0)", "", FormatError, "expected parameters of"),
        ("GCTP_LAMAZ", "(6378137,0,0,0,0,777777777)", "", FormatError, "expected an angle"),
    ],
)
def test_parameters_that_lie_are_errors(
    tmp_path: Path, projection: str, parameters: str, more: str, error: Any, words: str
) -> None:
    array = grid(tmp_path / "a.he5", projection, parameters, more=more)
    with pytest.raises(error, match=words):
        region_of_bounds(array, (0, 0, 10, 10))
    with pytest.warns(UserWarning, match="the cut has no place"):
        swathe.cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(0, 0, 2, 2))
