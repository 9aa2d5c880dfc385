"""Sample swaths: HDF-EOS2 as other libraries read it, with places and times, the same by seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import OutputExistsError
from swathe.core.sample_granules import PRODUCTS, sample_swaths
from swathe.datasets.read_granules import granules_of, read_headers
from swathe.files.array import Array
from swathe.files.places.tie_points import tie_points

SHAPE = (60, 47)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swaths")
    return sample_swaths(folder, days=2, granules=2, shape=SHAPE, progress=False)


def test_each_product_has_its_granules(folder: Path) -> None:
    for product in PRODUCTS:
        times = [f"A2005{day}.{clock}" for day in (121, 122) for clock in ("0000", "1200")]
        names = sorted(path.name for path in (folder / product).iterdir())
        assert names == [f"{product}.{time}.hdf" for time in times]


@pytest.mark.parametrize("product", PRODUCTS)
def test_fields_are_found_and_equal_those_of_pyhdf(folder: Path, product: str) -> None:
    sd = pytest.importorskip("pyhdf.SD")
    path = folder / product / f"{product}.A2005122.1200.hdf"
    reference = sd.SD(str(path))
    with swathe.open(path) as file:
        for field in PRODUCTS[product]:
            array = file[f"/mod_swath/Data Fields/{field.name}"]
            assert (array.shape, array.dtype.name) == (SHAPE, field.kind)
            np.testing.assert_array_equal(array.data, reference.select(field.name)[:])
            share = float(np.mean(array.data == field.fill))
            assert 0.1 < share < 0.9 if field.under_clouds else share == 0
            assert np.ptp(array.data) > 0
        latitude = file["/mod_swath/Geolocation Fields/Latitude"].data
        assert isinstance(array, Array)
        (ties,) = tie_points(array)
        places = ties.places([(0, SHAPE[0]), (0, SHAPE[1])])[0]
        np.testing.assert_allclose(places[2::5, 2:45:5], latitude, atol=1e-4)


def test_a_catalogue_has_their_times_and_places(folder: Path) -> None:
    path = str(folder / "MOD11_L2" / "MOD11_L2.A2005122.1200.hdf")
    granules = granules_of(path, read_headers(path))
    assert {(each.t_min, each.t_max) for each in granules} == {(53492.5, 53492.5 + 300 / 86400)}
    assert [each.name for each in granules] == ["LST", "QC"]
    assert all(each.place is not None for each in granules)


def test_values_depend_on_the_seed_alone(folder: Path, tmp_path: Path) -> None:
    def lst(root: Path, time: str) -> Any:
        path = root / "MOD11_L2" / f"MOD11_L2.{time}.hdf"
        return swathe.open(path)["/mod_swath/Data Fields/LST"].data

    same, other = (
        sample_swaths(tmp_path / str(seed), days=1, granules=2, seed=seed, shape=SHAPE)
        for seed in (1, 2)
    )
    for clock in ("0000", "1200"):
        np.testing.assert_array_equal(
            lst(same, f"A2005121.{clock}"), lst(folder, f"A2005121.{clock}")
        )
    assert (lst(other, "A2005121.0000") != lst(folder, "A2005121.0000")).any()
    with pytest.raises(OutputExistsError, match="another seed or shape"):
        sample_swaths(same, days=1, granules=1, seed=2, shape=SHAPE)
    sample_swaths(same, days=1, granules=1, seed=2, shape=SHAPE, overwrite=True)
    assert len(list(same.rglob("*.hdf"))) == len(PRODUCTS)
