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

FILES = (
    "formats/air.nc",
    "swath/SS_MODIS_A-JPL-L2P-v2014.0.nc",
    "swath/SS_MODIS_T-JPL-L2P-v2014.0.nc",
    "swath/SS_VIIRS_NPP-NAVO-L2P-v3.0.nc",
    "swath/SS_AMSR2-L2B_v08_r38622-v02.0-fv01.0.nc",
    "swath/ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc",
    "swath/ascat_20211220_213600_metopb_48037_eps_o_250_3202_ovw.l2_subsetted.nc4",
    "swath/JA1_GPN_2PeP001_002_20020115_060706_20020115_070316.nc",
)


@pytest.mark.filterwarnings("ignore:variable .* has multiple fill values")
@pytest.mark.parametrize("name", FILES)
def test_real_places_lie_in_their_outlines(name: str) -> None:
    """Each pixel, as xarray reads it, is in the outline or next to it; other places are not."""
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
        d = 2 * size
        box = (lon_deg, max(-90, lat_deg - d), lon_deg, min(90, lat_deg + d))
        assert EarthArea(Bounds.of(box)).touches([granule.place.outlines]) == [True], box
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
