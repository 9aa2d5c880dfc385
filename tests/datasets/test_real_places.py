"""Outlines of the real swaths, tracks and grids against all their pixels, as xarray reads them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from swathe.datasets.earth_search import EarthArea
from swathe.datasets.spherical import angle, directions
from swathe.files.places.bounds import Bounds
from tests.conftest import DATA
from tests.datasets.test_read_arrays import covers, real

pytest.importorskip("h5py")

TRACK = "swath/JA1_GPN_2PeP001_002_20020115_060706_20020115_070316.nc"
FILES = (
    "formats/air.nc",
    "swath/SS_MODIS_A-JPL-L2P-v2014.0.nc",
    "swath/SS_MODIS_T-JPL-L2P-v2014.0.nc",
    "swath/SS_VIIRS_NPP-NAVO-L2P-v3.0.nc",
    "swath/SS_AMSR2-L2B_v08_r38622-v02.0-fv01.0.nc",
    "swath/ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc",
    "swath/ascat_20211220_213600_metopb_48037_eps_o_250_3202_ovw.l2_subsetted.nc4",
    TRACK,
)


@pytest.mark.filterwarnings("ignore:variable .* has multiple fill values")
@pytest.mark.parametrize("name", FILES)
def test_real_places_lie_in_their_outlines(name: str) -> None:
    """Each pixel, as xarray reads it, is in the outline; other places are not."""
    xarray = pytest.importorskip("xarray")
    spatial = pytest.importorskip("scipy.spatial")
    granule = next(each for each in real(name) if each.place is not None)
    assert granule.place is not None
    with xarray.open_dataset(DATA / name, drop_variables="time") as data:
        latitude, longitude = (data[each].values.astype(float) for each in ("lat", "lon"))
    if latitude.shape != longitude.shape:
        latitude, longitude = np.meshgrid(latitude, longitude, indexing="ij")
    is_place = np.isfinite(latitude) & np.isfinite(longitude)
    pixels = directions(longitude[is_place], latitude[is_place])
    neighbours = angle(pixels[:-1], pixels[1:])
    size = math.degrees(float(np.median(neighbours)))
    tree = spatial.cKDTree(pixels)
    rng = np.random.default_rng(6)
    some = pixels[rng.integers(0, len(pixels), 300)]
    for point in some:
        lat_deg = math.degrees(math.asin(point[2]))
        lon_deg = math.degrees(math.atan2(point[1], point[0]))
        place = (lon_deg, lat_deg, lon_deg, lat_deg)
        assert EarthArea(Bounds.of(place)).touches([granule.place.outlines]) == [True], place
    shifted = some + rng.normal(0, 0.1, some.shape)
    shifted /= np.linalg.norm(shifted, axis=1)[:, None]
    apart = np.degrees(tree.query(shifted)[0])
    for point, distance in zip(shifted, apart, strict=True):
        lat_deg = math.degrees(math.asin(point[2]))
        lon_deg = math.degrees(math.atan2(point[1], point[0]))
        if distance > max(10 * size, 1.0):
            assert not covers(granule, lat_deg, lon_deg), (lat_deg, lon_deg, distance)


def test_tie_points_place_all_arrays_of_a_swath() -> None:
    granules = real("swath/swath_3_3d_dimmap.hdf")
    assert {each.name for each in granules} == {"temperature_l", "temperature_m", "temperature_h"}
    assert [each.array for each in granules if each.place is None] == []


def test_track_of_twenty_places_a_second() -> None:
    """Each row continues the one before; places that the footprint does not use lie in it, too."""
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(DATA / TRACK, decode_times=False) as data:
        latitude, longitude = (data[each].values.ravel() for each in ("lat_20hz", "lon_20hz"))
    granule = next(each for each in real(TRACK) if each.array == "/time_20hz")
    assert granule.place is not None
    is_place = np.isfinite(latitude) & np.isfinite(longitude)
    latitude, longitude = latitude[is_place], longitude[is_place]
    for number in np.random.default_rng(8).integers(0, len(latitude), 300):
        lat, lon = float(latitude[number]), float(longitude[number])
        assert covers(granule, lat, lon), (lat, lon)
        assert not covers(granule, lat, lon + 1 / math.cos(math.radians(lat))), (lat, lon)
