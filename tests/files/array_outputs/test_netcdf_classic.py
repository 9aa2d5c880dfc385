"""Cuts of NetCDF classic keep names and attributes, as netCDF4 reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import swathe

netcdf = pytest.importorskip("netCDF4")


@pytest.mark.parametrize("name", ["témp", "温", "t"])
def test_names_and_attributes_are_kept(tmp_path: Path, name: str) -> None:
    attrs = {"é": "a", "data": "b", "dimensions": "c"} if name != "t" else {"data": "b"}
    values = np.arange(20, dtype="i4").reshape(4, 5)
    with netcdf.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("y", 4)
        file.createDimension("x", 5)
        file.createVariable(name, "i4", ("y", "x"))[...] = values
        file[name].setncatts(attrs)
        file.setncatts({"mode": "d", "variables": "e", "title": "f"})
    swathe.cut(tmp_path / "a.nc", array=name, box=(1, 1, 3, 2)).write(tmp_path / "cut.nc")
    with netcdf.Dataset(tmp_path / "cut.nc") as file:
        np.testing.assert_array_equal(file[name][...], values[1:3, 1:4])
        assert attrs.items() <= file[name].__dict__.items()
        assert {"mode": "d", "variables": "e", "title": "f"}.items() <= file.__dict__.items()
