"""Cuts of real NetCDF files have no more issues than their source, as compliance-checker counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swathe

runner = pytest.importorskip("compliance_checker.runner")
xarray = pytest.importorskip("xarray")
CONVENTIONS = "cf:1.8"
ARRAYS = {
    "formats/air.nc": "/air",
    "formats/air_linked.nc": "/air",
    "swath/SC_SPL3FTP_spatially_subsetted.nc4": "/Freeze_Thaw_Retrieval_Data_Global/surface_flag",
    "swath/SS_AMSR2-L2B_v08_r38622-v02.0-fv01.0.nc": "/sea_surface_temperature",
    "swath/SS_MODIS_A-JPL-L2P-v2014.0.nc": "/sea_surface_temperature",
    "swath/SS_MODIS_T-JPL-L2P-v2014.0.nc": "/sea_surface_temperature",
    "swath/SS_VIIRS_NPP-NAVO-L2P-v3.0.nc": "/sea_surface_temperature",
    "swath/TEMPO_NO2_L2_V03_20240328T154353Z_S008G01.nc4": "/qa_statistics/fit_rms_residual",
}


def issues_of(path: Path) -> list[str]:
    suite = runner.CheckSuite()
    suite.load_all_available_checkers()
    dataset = suite.load_dataset(str(path))
    try:
        results: dict[str, Any] = suite.run_all(dataset, [CONVENTIONS])
    finally:
        dataset.close()
    assert results
    return [text for checks, _ in results.values() for check in checks for text in check.msgs or ()]


def at_root(path: Path, array: str, folder: Path) -> Path:
    """Return a file whose root has the group of an array: the checker looks at no other."""
    group = array.rpartition("/")[0]
    if not group:
        return path
    with (
        xarray.open_dataset(path, engine="h5netcdf", decode_cf=False) as root,
        xarray.open_dataset(path, group=group, engine="h5netcdf", decode_cf=False) as inner,
    ):
        inner.assign_attrs(root.attrs | inner.attrs).to_netcdf(folder / "source.nc")
    return folder / "source.nc"


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.filterwarnings("ignore")
def test_a_cut_has_no_more_issues_than_its_source(name: str, data: Path, tmp_path: Path) -> None:
    cut: Any = swathe.cut(data / name, array=ARRAYS[name], box=(0, 0, 8, 8))
    cut.write(tmp_path / "cut.nc")
    issues = issues_of(tmp_path / "cut.nc")
    source = at_root(data / name, ARRAYS[name], tmp_path)
    assert len(issues) <= len(issues_of(source)), issues
