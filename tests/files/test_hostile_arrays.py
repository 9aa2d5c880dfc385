"""Files of arrays whose names, attributes and shapes ask too much, or clash."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core.errors import FormatError, OutputError, RegionError
from swathe.files.array_file import ArrayFile

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
cut: Any = swathe.cut
VALUES = np.arange(600, dtype="f4").reshape(20, 30)
BOX = (3, 4, 6, 5)
CARDS: dict[str, Any] = {
    "CTYPE1": "RA---TAN",
    "CTYPE2": "DEC--TAN",
    "CRPIX1": 28.0,
    "CRPIX2": 22.0,
    "CRVAL1": 10.0,
    "CRVAL2": 20.0,
    "CDELT1": -1e-3,
    "CDELT2": 1e-3,
}


def write_hdf5(path: Path, **attrs: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("image", data=VALUES).attrs.update(attrs)
    return path


def test_empty_keys_of_asdf_are_groups(tmp_path: Path) -> None:
    asdf = pytest.importorskip("asdf")
    asdf.AsdfFile({"": {"x": VALUES}}).write_to(tmp_path / "a.asdf")
    assert np.array_equal(cut(tmp_path / "a.asdf", array="//x", box=BOX).data, VALUES[4:9, 3:9])


@pytest.mark.parametrize("name", ["attributes/data", "dims/data", "dims", "asdf_library/image"])
def test_arrays_at_our_own_keys_are_not_written_as_asdf(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file[name] = VALUES
    with pytest.raises(OutputError, match="which a cut as ASDF has for itself"):
        cut(tmp_path / "a.h5", array=name, box=BOX).write(tmp_path / "cut.asdf")


def test_axes_of_one_name_have_one_length(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, shape, dims in (
        ("lst", (10, 10), ("y", "x")),
        ("lat", (10, 10), ("y", "x")),
        ("lon", (10, 10), ("y", "x")),
        ("a", (20_000,), ("y",)),
        ("b", (20_000,), ("x",)),
    ):
        array = root.create_array(name, shape=shape, dtype="f4", dimension_names=dims)
        array[...] = 1
        array.attrs["units"] = {"lat": "degrees_north", "lon": "degrees_east"}.get(name, "K")
    with pytest.raises(RegionError, match=r"axis .: expected 10 elements as /lst has, found 20000"):
        swathe.reduce(tmp_path / "a.zarr", array="/lst", grid="1deg", where="a + b > 0")


def test_coordinates_with_large_axes_of_their_own_are_left_out(tmp_path: Path) -> None:
    with h5py.File(write_hdf5(tmp_path / "a.h5", coordinates="big"), "a") as file:
        file.create_dataset("big", (1 << 30,), "f8", chunks=(1 << 16,))
    with pytest.warns(UserWarning, match="big: left out of the cut of /image: expected at most"):
        assert not cut(tmp_path / "a.h5", array="image", box=BOX).coords


@pytest.mark.parametrize("name", ["coordinates", "grid_mapping"])
def test_names_of_other_arrays_are_few(tmp_path: Path, name: str) -> None:
    source = write_hdf5(tmp_path / "a.h5", **{name: " ".join(f"n{at}" for at in range(2000))})
    with pytest.raises(FormatError, match="expected at most 1,000 names, found 2,000"):
        cut(source, array="image", box=BOX)


@pytest.mark.parametrize("dims", [("y", "x"), ("x",), ("y",), ()])
def test_a_wcs_moves_once(tmp_path: Path, dims: tuple[str, ...]) -> None:
    lengths = {"y": 20, "x": 30}
    crs = np.zeros([lengths[dim] for dim in dims], "i4")
    image = (("y", "x"), VALUES, {"grid_mapping": "crs"})
    xarray.Dataset({"image": image, "crs": (dims, crs, CARDS)}).to_netcdf(tmp_path / "a.nc")
    part = cut(tmp_path / "a.nc", array="image", box=BOX)
    found = (part.coords | part.others)["crs"].attrs
    assert (found["CRPIX1"], found["CRPIX2"]) == (28 - 3, 22 - 4)


def test_names_of_variables_stay_apart(tmp_path: Path) -> None:
    names = ["lat", "a/lat", "a_lat", "c/a/lat", "q/x"]
    source = write_hdf5(tmp_path / "a.h5", coordinates=" ".join(names))
    with h5py.File(source, "a") as file:
        for at, axis in enumerate(("y", "x")):
            file[axis] = np.arange(VALUES.shape[at])
            file[axis].make_scale(axis)
        for number, name in enumerate(["image", *names]):
            if number:
                file[name] = VALUES + number
            for at, axis in enumerate(("y", "x")):
                file[name].dims[at].attach_scale(file[axis])
    part = cut(source, array="image", box=BOX)
    for suffix in ("nc", "zarr"):
        part.write(tmp_path / f"cut.{suffix}")
        file = swathe.open(tmp_path / f"cut.{suffix}")
        assert isinstance(file, ArrayFile)
        ends = {int(file[path].data[0, 0] - VALUES[4, 3]) for path in file if file[path].ndim == 2}
        assert ends == set(range(len(names) + 1))


def test_a_wcs_of_too_many_keywords_is_none(tmp_path: Path) -> None:
    cards = {f"PV{axis}_{at}": 1.0 for axis in range(1, 40) for at in range(100)}
    text = "\n".join(f"{name:8}= {value!r}" for name, value in (CARDS | cards).items())
    source = write_hdf5(tmp_path / "a.h5", header=text)
    with pytest.warns(UserWarning, match="a WCS of at most 1,000 keywords, found"):
        cut(source, array="image", box=BOX).write(tmp_path / "cut.fits")
    assert "CTYPE1" not in fits.getheader(tmp_path / "cut.fits")


@pytest.mark.parametrize(
    "attrs",
    [
        {"header": "the keyword CTYPE1 is not set"},
        {name.lower(): value for name, value in CARDS.items()},
        {name: value for name, value in CARDS.items() if not name.startswith("CTYPE")},
    ],
)
def test_fits_has_no_wcs_that_was_not_moved(tmp_path: Path, attrs: dict[str, Any]) -> None:
    source = write_hdf5(tmp_path / "a.h5", **attrs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut(source, array="image", box=BOX).write(tmp_path / "cut.fits")
    assert not {*fits.getheader(tmp_path / "cut.fits")} & CARDS.keys()


def test_attributes_that_zarr_cannot_hold_are_an_output_error(tmp_path: Path) -> None:
    source = write_hdf5(tmp_path / "a.h5", precise=np.longdouble(1) / 3)
    with pytest.raises(OutputError):
        cut(source, array="image", box=BOX).write(tmp_path / "cut.zarr")


def test_results_stay_out_of_a_zarr(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "a.zarr", mode="w")
    box = {"x0": [3], "y0": [4], "width": [6], "height": [5]}
    given = {"file": [str(write_hdf5(tmp_path / "a.h5"))], "array": ["image"], **box}
    with pytest.raises(OutputError, match="it is inside the Zarr"):
        swathe.cut_many(given, tmp_path / "a.zarr/out", progress=False)
    assert {each.name for each in (tmp_path / "a.zarr").iterdir()} == {"zarr.json"}
