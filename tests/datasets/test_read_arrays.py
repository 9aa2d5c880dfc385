"""Files that are not FITS in datasets: footprints against all pixels, times, and damaged files."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog.records.datasets import Granule
from swathe.core.errors import DatasetError, FormatError
from swathe.datasets.array_metadata import _entries, _mjd
from swathe.datasets.earth_search import EarthArea
from swathe.datasets.read_arrays import array_granules
from swathe.files.array_file import ArrayFile
from swathe.files.places.bounds import Bounds
from tests.conftest import DATA
from tests.support.fits_frames import Runner, frame

h5py = pytest.importorskip("h5py")
hdf_eos5 = pytest.importorskip("tests.support.hdf_eos5")
CF_TIME = "hours since 2005-05-01 00:00:00"
MJD_2005_05_01 = 53491.0


def write_grid(path: Path, lat: Any, lon: Any, **more: Any) -> Path:
    """A NetCDF-like grid with one array and two times; attributes of time may be given."""
    with h5py.File(path, "w") as file:
        for name, values, units in (
            ("time", np.array([0.0, 36.0]), more.get("units", CF_TIME)),
            ("lat", np.asarray(lat, float), "degrees_north"),
            ("lon", np.asarray(lon, float), "degrees_east"),
        ):
            file[name] = values
            file[name].attrs["units"] = units
            file[name].make_scale(name)
        if "calendar" in more:
            file["time"].attrs["calendar"] = more["calendar"]
        shape = 2, len(lat), len(lon)
        file["lst"] = np.arange(math.prod(shape), dtype="f4").reshape(shape)
        for axis, name in enumerate(("time", "lat", "lon")):
            file["lst"].dims[axis].attach_scale(file[name])
        file.attrs["platform"], file.attrs["instrument"] = "Terra", "MODIS"
    return path


def write_swath(path: Path, lat: Any, lon: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, values, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
            file[name] = np.asarray(values, float)
            file[name].attrs["units"] = units
        file["sst"] = np.arange(np.size(lat), dtype="f4").reshape(np.shape(lat))
        file["sst"].attrs["coordinates"] = "lat lon"
    return path


def write_tie_points(path: Path, lat: Any, lon: Any, shape: tuple[int, int]) -> Path:
    """A swath of blocks of 5 x 5 pixels, each with one place, at its centre."""
    with h5py.File(path, "w") as file:
        file["lat"], file["lon"] = np.asarray(lat, float), np.asarray(lon, float)
        for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
            file[name].attrs["units"] = units
        file["sst"] = np.zeros(shape, "f4")
    return path


def granules(path: Path) -> list[Granule]:
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    return array_granules(path.name, file, path.stat().st_size)


def covers(granule: Granule, lat: float, lon: float) -> bool:
    assert granule.place is not None
    return EarthArea(Bounds.of((lon, lat, lon, lat))).touches([granule.place.outlines])[0]


# ---- From files to cuts


@pytest.fixture
def archive(tmp_path: Path, run: Runner) -> Path:
    """A store of two grids, a swath at the dateline, a FITS image, and two damaged files."""
    folder = tmp_path / "archive"
    folder.mkdir()
    write_grid(folder / "a.nc", np.linspace(40, 50, 41), np.linspace(0, 20, 81))
    write_grid(folder / "b.h5", np.linspace(-10, -20, 41), np.linspace(160, 200, 81))
    lat, lon = np.meshgrid(np.linspace(-5, 5, 50), np.linspace(175, 185, 40), indexing="ij")
    write_swath(folder / "c", lat, (lon + 180) % 360 - 180)
    (folder / "d.fits").write_bytes(frame(10.0, DATE_OBS="2005-05-01T12:00:00", EXPTIME=10.0))
    (folder / "e.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + b"x" * 99)
    write_grid(folder / "f.nc", [10, 30, 20], [1, 2, 3])
    run("store", "add", "disk", folder)
    return folder


def test_add_find_and_cut(run: Runner, archive: Path, tmp_path: Path) -> None:
    report = run.json("dataset", "add", "all", "disk:", code=1)
    assert (report["read"], report["images"]) == (4, 4)
    assert sorted(fault["path"] for fault in report["faults"]) == ["e.nc", "f.nc"]
    assert run.json("dataset", "sync", "all", code=1)["read"] == 0
    table = swathe.find(bounds=(5, 42, 8, 44), time=("2005-05-02T00:00", "2005-05-03"))
    (row,) = table
    assert (row["file"], row["array"], row["body"]) == ("disk:a.nc", "/lst", "earth")
    assert (row["shape"], row["west"], row["north"]) == ("2 x 41 x 81", 5, 44)
    assert str(row["s_region"]).startswith("POLYGON GEO_D")
    assert [row["t_min"], row["t_max"]] == [MJD_2005_05_01, MJD_2005_05_01 + 1.5]
    manifest = swathe.cut_many(table, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok"]
    expected = swathe.cut(archive / "a.nc", array="/lst", bounds=(5, 42, 8, 44))
    assert np.array_equal(np.load(tmp_path / "out" / manifest["path"][0]), expected.data)


def test_sky_and_earth_are_apart(run: Runner, archive: Path) -> None:
    run("dataset", "add", "all", "disk:", code=1)
    # A FITS image and a grid have a place of the same numbers.
    assert [str(each) for each in swathe.find((10.0, -1.0), 60)["body"]] == ["sky"]
    everywhere = swathe.find(bounds=(-180, -90, 180, 90))
    assert [str(each) for each in everywhere["body"]] == ["earth"] * 3
    assert [str(each) for each in swathe.find()["body"]] == ["earth"] * 3 + ["sky"]
    assert [str(each) for each in swathe.find(place=(10.0, -1.0))["file"]] == []
    assert [str(each) for each in swathe.find(place=(-179, 1))["file"]] == ["disk:c"]
    with pytest.raises(DatasetError, match="give one of sky, bounds and place"):
        swathe.find((10.0, -1.0), bounds=(0, 0, 1, 1))
    with pytest.raises(DatasetError, match="place: expected"):
        swathe.find(place=(1, 2, 3))  # type: ignore[arg-type]


def test_command_finds_by_bounds(run: Runner, archive: Path) -> None:
    run("dataset", "add", "all", "disk:", code=1)
    span = ("--time", "2005-05-01", "2005-05-02")
    found = run.json("find", "all", "--bounds", "170", "-15", "-170", "-12", *span)
    assert [each["file"] for each in found["images"]] == ["disk:b.h5"]
    assert found["images"][0]["hdu"] is None
    found = run.json("find", "--place", "-179", "1")
    assert [each["array"] for each in found["images"]] == ["/sst"]
    assert "no image matches" in run("find", "all", "--bounds", "100", "0", "110", "1")
    assert "give the dataset once" in run("find", "all", "--dataset", "all", code=2)


def test_rows_with_bounds_that_cannot_be_cut(archive: Path, tmp_path: Path) -> None:
    files = [archive / name for name in ("a.nc", "a.nc", "c", "d.fits", "a.nc")]
    rows = {
        "file": [str(file) for file in files],
        "array": ["/lst", "/lst", "/sst", "", "/lst"],
        "west": [5, 100, 178, 1, 5],
        "south": [42, 42, -1, 1, 60],
        "east": [8, 110, -178, 2, 8],
        "north": [44, 44, 1, 2, 50],
    }
    manifest = swathe.cut_many(rows, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok", "no-overlap", "ok", "error", "error"]
    assert "found FITS" in manifest["reason"][3]
    assert "south at most north" in manifest["reason"][4]


# ---- Times, and metadata that lies


def test_times_and_origin(tmp_path: Path) -> None:
    (granule,) = granules(write_grid(tmp_path / "a.nc", [1, 2, 3], [4, 5, 6]))
    assert (granule.t_min, granule.t_max) == (MJD_2005_05_01, MJD_2005_05_01 + 1.5)
    assert (granule.facility, granule.instrument) == ("Terra", "MODIS")
    assert covers(granule, 2, 5)
    assert covers(granule, 3.4, 6.4)
    assert not covers(granule, 3.6, 5)


@pytest.mark.parametrize(
    ("calendar", "units"),
    [
        ("360_day", CF_TIME),
        ("noleap", CF_TIME),
        ("mayan", CF_TIME),
        ("standard", "hours since 2005-02-30"),
        ("standard", "hours since -900-01-01"),
        ("standard", "days since 9000-01-01"),
    ],
)
def test_odd_calendars_leave_the_time_empty(tmp_path: Path, calendar: str, units: str) -> None:
    path = write_grid(tmp_path / "a.nc", [1, 2, 3], [4, 5, 6], calendar=calendar, units=units)
    (granule,) = granules(path)
    assert (granule.t_min, granule.t_max) == (None, None)


def test_texts_of_time() -> None:
    day = MJD_2005_05_01
    for text in ("2005-05-01T12:00:00Z", "20050501T120000Z", "2005-121T12:00:00.000"):
        assert _mjd(text) == pytest.approx(day + 0.5, abs=1e-9)
    assert _mjd("2005-05-01", "06:00:00") == pytest.approx(day + 0.25)
    for wrong in ("2005-13-01", "2005-000", "soon", "", None, 1e9, math.nan):
        assert _mjd(wrong) is None


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), math.nan, "9999-366", "0000-001", "2005-367"]
)
def test_times_beyond_any_calendar_are_none(value: Any) -> None:
    assert _mjd(value) is None


def test_latitudes_of_all_arrays_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lat, lon = np.mgrid[10:20:0.5, 20:30:0.5]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("a", "b", "c"):
            for key, values in (("lat", lat), ("lon", lon), ("sst", lat), ("ice", lat)):
                file[f"{name}/{key}"] = values
            file[f"{name}/lat"].attrs["units"] = "degrees_north"
            file[f"{name}/lon"].attrs["units"] = "degrees_east"
    monkeypatch.setattr("swathe.datasets.array_places.MOST_FILE_ELEMENTS", 2 * lat.size)
    found = {each.array: each for each in granules(tmp_path / "a.h5")}
    assert {key for key, each in found.items() if each.place is None} == {"/c/ice", "/c/sst"}
    assert "latitudes in all arrays" in str(found["/c/sst"].note)


@pytest.mark.parametrize("radius", ["none", np.zeros(0), np.nan, "1e999"])
def test_radii_that_are_none_have_no_place(tmp_path: Path, radius: Any) -> None:
    path = write_grid(tmp_path / "a.nc", [10, 11, 12], [20, 21, 22])
    with h5py.File(path, "a") as file:
        file["crs"] = 0
        file["crs"].attrs["earth_radius"] = radius
        file["lst"].attrs["grid_mapping"] = "crs"
    (granule,) = granules(path)
    assert granule.place is None and "radius" in str(granule.note)


def test_objects_of_core_metadata() -> None:
    text = """GROUP = A
      OBJECT = CONTAINER
        CLASS = "1"
        OBJECT = RANGEBEGINNINGDATE
          NUM_VAL = 1
          VALUE = "2024-08-13"
        END_OBJECT = RANGEBEGINNINGDATE
      END_OBJECT = CONTAINER
      OBJECT = RANGEBEGINNINGDATE
        VALUE = "other"
    """
    assert _entries(text) == {"RANGEBEGINNINGDATE": "2024-08-13"}


def test_fill_and_lies_in_geolocation(tmp_path: Path) -> None:
    lat, lon = np.meshgrid(np.linspace(10, 20, 30), np.linspace(50, 60, 30), indexing="ij")
    lat[:5], lon[:, 25:] = np.nan, -9999.0
    (granule,) = granules(write_swath(tmp_path / "a.h5", lat, lon))
    assert covers(granule, 15, 54)
    assert not covers(granule, 10.5, 54)
    assert not covers(granule, 15, 59.5)
    (granule,) = granules(write_swath(tmp_path / "b.h5", lat * 0 + 1e30, lon))
    assert granule.place is None
    assert "found none" in str(granule.note)
    with pytest.raises(FormatError, match="expected -90 to 90"):
        granules(write_grid(tmp_path / "c.h5", [80, 90, 100], [1, 2, 3]))


def test_other_planets_have_no_place(tmp_path: Path) -> None:
    path = write_grid(tmp_path / "mars.nc", [1, 2, 3], [4, 5, 6])
    with h5py.File(path, "a") as file:
        file["crs"] = 0
        file["crs"].attrs["semi_major_axis"] = 3396190.0
        file["lst"].attrs["grid_mapping"] = "crs"
    (granule,) = granules(path)
    assert granule.place is None
    assert "radius of the Earth" in str(granule.note)


# ---- Real files


def real(name: str) -> list[Granule]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the real file is not there: {path}")
    return granules(path)


def test_tie_points_make_the_outline_of_finer_arrays(tmp_path: Path) -> None:
    """The outline ends with the outermost pixels, 2 pixels beyond the tie points."""
    lat, lon = np.meshgrid(np.arange(-2, 2, 0.05), np.arange(178, 182, 0.05), indexing="ij")
    [granule] = granules(write_tie_points(tmp_path / "a.h5", lat, lon, (400, 400)))
    assert granule.array == "/sst" and granule.note is None
    south, north, west, east = -2.025, 1.975, 177.975, 181.975
    for place in ((0, 180), (south + 0.01, west + 0.01), (north - 0.01, east - 360 - 0.01)):
        assert covers(granule, *place), place
    for place in ((south - 0.01, 180), (north + 0.01, 180), (0, west - 0.01), (0, east - 359.99)):
        assert not covers(granule, *place), place


def test_geotiff_in_degrees() -> None:
    rasterio = pytest.importorskip("rasterio")
    pytest.importorskip("tifffile")
    (granule,) = real("formats/world.byte.tif")
    with rasterio.open(DATA / "formats/world.byte.tif") as image:
        edges = image.bounds
    for lat, lon in ((0, 0), (edges.top - 0.1, 179.9), (edges.bottom + 0.1, -179.9)):
        assert covers(granule, lat, lon)
    assert not covers(granule, edges.top + 0.1, 0)
    assert not covers(granule, edges.bottom - 0.1, 0)


def test_sinusoidal_grid_of_hdf_eos() -> None:
    granule = real("swath/ref_chunked.hdf4")[0]
    # Tile h00v08 of MODIS: from the equator to 10 degrees north, at the dateline.
    assert covers(granule, 1, -175)
    assert covers(granule, 9.5, -179)
    assert not covers(granule, 9.5, -171)
    assert not covers(granule, 0.5, 175)
    assert granule.instrument == "MODIS"


@pytest.mark.parametrize(
    ("elements", "mjd"),
    [
        ({}, 50568 + (11 * 60 + 29 + 36 / 60 + 300) / 1440),
        ({"TimezoneOffsetFromUTC": ""}, 50568 + (11 * 60 + 29 + 36 / 60) / 1440),
        ({"AcquisitionDateTime": "20010203040506.5+0100"}, 51943 + (3 * 3600 + 306.5) / 86400),
        ({"AcquisitionTime": "noon"}, 50568 + 300 / 1440),
        ({"AcquisitionDate": "", "ContentDate": "", "SeriesDate": ""}, 53023 + 44850 / 86400),
    ],
)
def test_elements_of_dicom_give_time_device_and_modality(
    elements: dict[str, str], mjd: float, tmp_path: Path
) -> None:
    pydicom = pytest.importorskip("pydicom")
    from pydicom.data import get_testdata_file

    data = pydicom.dcmread(str(get_testdata_file("CT_small.dcm", download=False)))
    for name, value in elements.items():
        data[name] = pydicom.DataElement(name, "LO", value)
    data.save_as(tmp_path / "ct.dcm")
    [granule] = granules(tmp_path / "ct.dcm")
    assert (granule.facility, granule.instrument) == ("RHAPSODE", "CT")
    assert granule.t_min == pytest.approx(mjd, abs=1e-6)
    assert granule.t_max == granule.t_min


def test_grids_and_swaths_of_hdf_eos5_have_places(tmp_path: Path) -> None:
    [granule] = granules(hdf_eos5.write_grid(tmp_path / "a.he5", lower_right="(0.0,0.0)"))
    assert granule.array == hdf_eos5.COLUMN and granule.note is None
    assert covers(granule, 1, -179)
    assert not covers(granule, -1, -1)
    lat, lon = np.meshgrid(np.arange(-2, 2, 0.05), np.arange(178, 182, 0.05), indexing="ij")
    [granule] = granules(hdf_eos5.write_swath(tmp_path / "b.he5", lat, lon))
    assert granule.array == hdf_eos5.RADIANCE and granule.note is None
    assert covers(granule, 0, 180)
    assert not covers(granule, 0, 177)


def test_corners_of_hdf_eos5_that_lie_are_errors(tmp_path: Path) -> None:
    path = hdf_eos5.write_grid(tmp_path / "a.he5", upper_left="(0,99000000)")
    with pytest.raises(FormatError, match="StructMetadata: expected a corner in degrees"):
        granules(path)
    [granule] = granules(hdf_eos5.write_grid(tmp_path / "b.he5", projection="HE5_GCTP_ROBIN"))
    assert granule.place is None and granule.note is not None
    assert "found GCTP_ROBIN" in granule.note


def test_core_metadata_gives_the_time() -> None:
    granule = real("formats/MOD14.hdf4")[0]
    assert granule.facility == "Terra"
    assert granule.t_min == pytest.approx(60535 + (23 * 60 + 45) / 1440)


# ---- What a scan says


@pytest.mark.parametrize("suffix", ["nc", "fits", "fits.gz", "asdf", "h5"])
def test_a_geotiff_of_any_name_has_its_place(run: Runner, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("tifffile")
    content = (DATA / "formats" / "world.byte.tif").read_bytes()
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "a.tif").write_bytes(content)
    packed = gzip.compress(content) if suffix.endswith(".gz") else content
    (tmp_path / "archive" / f"a.{suffix}").write_bytes(packed)
    run("store", "add", "disk", tmp_path / "archive")
    report = run.json("dataset", "add", "all", "disk:")
    assert (report["read"], report["arrays"], report["notes"]) == (2, 2, {})
    own, other = swathe.find(place=(100.0, -30.0))
    assert own["array"] == other["array"] == "/0"
    assert own["s_region"] == other["s_region"]


def test_an_asdf_called_fits_is_catalogued_as_asdf(run: Runner, tmp_path: Path) -> None:
    text = "a: !core/ndarray-1.0.0 {data: [[1, 2], [3, 4]], datatype: int16}"
    bad = "b: !core/ndarray-1.0.0 {source: 7, shape: [2, 2], datatype: int16, byteorder: big}"
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "a.fits").write_text(
        f"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \n{text}\n{bad}\n...\n"
    )
    run("store", "add", "disk", tmp_path / "archive")
    report = run.json("dataset", "add", "all", "disk:")
    assert (report["read"], report["arrays"], report["faults"]) == (1, 1, [])
    assert [str(each["array"]) for each in swathe.find()] == ["/a"]
    assert list(report["refusals"]) == ["array /b: expected a block of 0, found 7"]


def test_a_scan_says_of_every_place_that_is_not_unique(run: Runner, tmp_path: Path) -> None:
    lat, lon = np.meshgrid(np.linspace(0, 9, 12), np.linspace(0, 9, 12), indexing="ij")
    (tmp_path / "archive").mkdir()
    for number in range(22):
        path = write_swath(tmp_path / "archive" / f"{number}.h5", lat, lon)
        with h5py.File(path, "a") as file:
            del file["sst"].attrs["coordinates"]  # it named one of the pairs
            file[f"lat{number}"] = lat
            file[f"lat{number}"].attrs["units"] = "degrees_north"
    run("store", "add", "disk", tmp_path / "archive")
    _, text = run.told("dataset", "add", "all", "disk:")
    assert text.count("expected one latitude on the axes") == 20
    assert "no position: 2 images for 2 more reasons: swathe dataset sync all --reread" in text
    assert "give index=" not in text


def test_the_advice_of_an_error_is_what_the_command_has(run: Runner, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.zeros((4, 5))
    bounds = ("--bounds", 0, 0, 1, 1)
    text = run.ran("cut", tmp_path / "a.h5", *bounds, "-o", tmp_path / "a.nc").err
    assert "found none; give index= or box= (--index, --box)" in text
    cells = ("--array", "a", "--grid", "1deg", "-o", tmp_path / "b.nc")
    text = run.ran("reduce", tmp_path / "a.h5", *cells).err
    assert "expected latitude and longitude" in text and "index" not in text


def test_a_place_in_the_sky_that_is_not_catalogued_is_named(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    text = "a: !core/ndarray-1.0.0 {data: [[1, 2], [3, 4]], datatype: int16}"
    model = "wcs: !<tag:stsci.edu:gwcs/wcs-1.2.0> {name: none}"
    (tmp_path / "archive" / "a.asdf").write_text(
        f"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \n{text}\n{model}\n...\n"
    )
    with h5py.File(tmp_path / "archive" / "b.h5", "w") as file:
        file["a"] = np.zeros((4, 5))
        cards = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CRVAL2": 20.0}
        cards |= {"CRPIX1": 1.0, "CRPIX2": 1.0, "CDELT1": -0.1, "CDELT2": 0.1}
        file["a"].attrs.update(cards)
    run("store", "add", "disk", tmp_path / "archive")
    notes = run.json("dataset", "add", "all", "disk:")["notes"]
    begin = "its place is in the sky, by"
    assert [note.removeprefix(begin)[:10] for note in sorted(notes)] == [" a GWCS (/", " a WCS in "]
