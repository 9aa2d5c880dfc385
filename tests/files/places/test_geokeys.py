"""Projections of GeoTIFF without an EPSG code lie where GDAL places them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import RegionError
from swathe.files.places.geotiff import degrees_transformer
from swathe.files.places.regions import region_of_bounds
from tests.files.places.test_geotiff import fake

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("rasterio.warp")
pytest.importorskip("tifffile")
pytest.importorskip("pyproj")
PROJECTIONS = {
    "Albers": "+proj=aea +lat_1=29.5 +lat_2=45.5 +lat_0=23 +lon_0=-96 +x_0=9 +y_0=5 +ellps=GRS80",
    "Lambert, two": "+proj=lcc +lat_1=33 +lat_2=45 +lat_0=40 +lon_0=-97 +x_0=1000 +R=6370000",
    "Lambert, one": "+proj=lcc +lat_1=25 +lat_0=25 +lon_0=-95 +k_0=0.9996 +R=6371200",
    "azimuthal": "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=WGS84",
    "Mercator of a meridian": "+proj=tmerc +lat_0=49 +lon_0=-2 +k=0.9996 +x_0=4e5 +ellps=airy",
    "polar": "+proj=stere +lat_0=90 +lat_ts=71 +lon_0=-39 +datum=WGS84",
    "polar, south": "+proj=stere +lat_0=-90 +lat_ts=-71 +lon_0=10 +datum=WGS84",
    "polar, by scale": "+proj=stere +lat_0=90 +lon_0=-39 +k=0.994 +x_0=2e6 +y_0=2e6 +datum=WGS84",
    "sinusoidal": "+proj=sinu +lon_0=20 +R=6371007.181",
    "Mercator": "+proj=merc +lon_0=30 +k=0.9 +datum=WGS84",
    "Mercator, by parallel": "+proj=merc +lat_ts=41 +lon_0=30 +datum=WGS84",
    "equirectangular": "+proj=eqc +lat_ts=30 +lon_0=10 +datum=WGS84",
    "cylindrical": "+proj=cea +lat_ts=30 +lon_0=10 +datum=WGS84",
    "equidistant": "+proj=aeqd +lat_0=40 +lon_0=10 +datum=WGS84",
    "conic": "+proj=eqdc +lat_1=30 +lat_2=50 +lat_0=40 +lon_0=10 +datum=WGS84",
    "Robinson": "+proj=robin +lon_0=10 +datum=WGS84",
    "polyconic": "+proj=poly +lat_0=10 +lon_0=10 +datum=WGS84",
    "orthographic": "+proj=ortho +lat_0=10 +lon_0=10 +datum=WGS84",
    "double": "+proj=sterea +lat_0=52.156 +lon_0=5.387 +k=0.9999079 +x_0=155000 +ellps=bessel",
    "stereographic": "+proj=stere +lat_0=52 +lon_0=5 +k=0.9999 +datum=WGS84",
    "feet": "+proj=lcc +lat_1=33 +lat_2=45 +lat_0=40 +lon_0=-97 +x_0=6e5 +ellps=GRS80 +units=us-ft",
    "zone": "+proj=utm +zone=33 +ellps=bessel",
}
EDGE = np.array([0.0, 1e5, 3e5]), np.array([0.0, -1e5, 2e5])


@pytest.mark.parametrize("name", PROJECTIONS)
def test_places_equal_those_of_gdal(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / "a.tif", PROJECTIONS[name]
    transform = rasterio.Affine(30_000, 0, 0, 0, -30_000, 0)
    profile = {"driver": "GTiff", "height": 3, "width": 4, "count": 1, "dtype": "uint8"}
    if "units" not in text:
        text += " +units=m"
    with rasterio.open(path, "w", crs=text, transform=transform, **profile) as file:
        file.write(np.zeros((1, 3, 4), "u1"))
    array: Any = swathe.open(path)["/0"]
    assert array.attrs.get("ProjectedCSTypeGeoKey") == 32767
    with rasterio.open(path) as file:
        expected = rasterio.warp.transform(file.crs, "OGC:CRS84", *EDGE)
    np.testing.assert_allclose(degrees_transformer(array).transform(*EDGE), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["lcmap_tiny_cog_2019.tif", "lcmap_tiny_cog_2020.tif"])
def test_a_real_image_on_an_ellipsoid_of_its_own(name: str, data: Path) -> None:
    """Its geographic system is WGS 84, and its ellipsoid another."""
    path = data / "formats" / name
    array: Any = swathe.open(path)["/0"]
    with rasterio.open(path) as file:
        x, y = file.transform @ (np.array([10.5, 100.5]), np.array([20.5, 200.5]))
        lon, lat = rasterio.warp.transform(file.crs, "OGC:CRS84", x, y)
    np.testing.assert_allclose(degrees_transformer(array).transform(x, y), (lon, lat), atol=1e-9)
    box = (lon[0] - 1e-6, lat[0] - 1e-6, lon[0] + 1e-6, lat[0] + 1e-6)
    (part,) = region_of_bounds(array, box)
    assert part == {0: (20, 21), 1: (10, 11)}


ALBERS = {
    "GTModelTypeGeoKey": 1,
    "ProjectedCSTypeGeoKey": 32767,
    "ProjCoordTransGeoKey": 11,
    "GeographicTypeGeoKey": 4326,
    "ProjStdParallel1GeoKey": 29.5,
    "ProjStdParallel2GeoKey": 45.5,
    "ProjNatOriginLongGeoKey": -96.0,
    "ProjNatOriginLatGeoKey": 23.0,
}


def test_codes_of_conversions_and_ellipsoids_are_those_of_epsg() -> None:
    keys = {"GTModelTypeGeoKey": 1, "ProjectedCSTypeGeoKey": 32767, "ProjectionGeoKey": 16033}
    zone = degrees_transformer(fake(**keys, GeographicTypeGeoKey=4326))
    whole = degrees_transformer(fake(GTModelTypeGeoKey=1, ProjectedCSTypeGeoKey=32633))
    assert zone.transform(5e5, 5e6) == pytest.approx(whole.transform(5e5, 5e6))
    ellipsoid = fake(**ALBERS | {"GeographicTypeGeoKey": None}, GeogEllipsoidGeoKey=7030)
    places = [degrees_transformer(each).transform(9e5, 9e5) for each in (ellipsoid, fake(**ALBERS))]
    assert places[0] == pytest.approx(places[1])


def test_a_polar_image_without_a_parallel_is_true_at_the_pole() -> None:
    keys = {"GTModelTypeGeoKey": 1, "ProjCoordTransGeoKey": 15, "GeographicTypeGeoKey": 4326}
    longitude, latitude = degrees_transformer(fake(**keys)).transform(0, -1e6)
    assert (longitude, latitude) == (pytest.approx(0), pytest.approx(81.0, abs=0.1))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ProjCoordTransGeoKey": 3}, "one of the methods 1, 7, .* found method 3"),
        ({"ProjCoordTransGeoKey": None}, "found method 0"),
        ({"ProjCoordTransGeoKey": np.array([11, 11])}, "expected a projection that PROJ knows"),
        ({"ProjectedCSTypeGeoKey": 12345}, "expected a projection that PROJ knows"),
        ({"ProjectedCSTypeGeoKey": 5703}, "found EPSG:5703, Vertical CRS"),
        ({"ProjectionGeoKey": 5}, "expected a projection that PROJ knows"),
        ({"GeographicTypeGeoKey": 5}, "expected a projection that PROJ knows"),
        ({"GeographicTypeGeoKey": None}, "expected a geographic system or an ellipsoid"),
        ({"ProjStdParallel1GeoKey": "south"}, "expected a projection that PROJ knows"),
        ({"ProjStdParallel1GeoKey": 1e300}, "expected a projection that PROJ knows"),
        ({"ProjStdParallel1GeoKey": np.nan}, "expected a projection that PROJ knows"),
        ({"ProjLinearUnitsGeoKey": 9004}, "expected a linear unit of 9001, 9002, 9003"),
        ({"ProjLinearUnitsGeoKey": 32767}, "expected a linear unit"),
        ({"GeogAngularUnitsGeoKey": 9101}, "expected degrees"),
        ({"GeogPrimeMeridianLongGeoKey": 2.3}, "expected degrees"),
        ({"GeogSemiMajorAxisGeoKey": 3.4e6}, "expected the radius of the Earth"),
    ],
)
def test_keys_of_no_projection_raise(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(RegionError, match=message):
        region_of_bounds(fake(**ALBERS | keys), (0, 0, 20, 60))
