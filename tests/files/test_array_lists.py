"""Lists of targets of arrays: paths, axes named by columns, and files that are rejected."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import NoSuchArrayError, OptionError, TargetsError
from swathe.core.row_record import RowRecord
from swathe.files.array_file import ArrayFile
from swathe.operations.array_results import ArrayResults
from tests.jobs.test_arrays import write_globe

h5py = pytest.importorskip("h5py")
WHEN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
VALUES = np.arange(4 * 60 * 80, dtype="f4").reshape(4, 60, 80)


def write_array(path: Path) -> str:
    with h5py.File(path, "w") as file:
        array = file.create_dataset(
            "/s/lst", data=VALUES, chunks=(1, 20, 20), compression="gzip", shuffle=True
        )
        for axis, name in enumerate(("time", "y", "x")):
            scale = file.create_dataset(name, data=np.arange(VALUES.shape[axis]))
            scale.make_scale(name)
            array.dims[axis].attach_scale(scale)
    return str(path)


def targets(*files: str, **columns: Any) -> dict[str, Any]:
    box = {"x0": 5, "y0": 6, "width": 10, "height": 7, "array": "s/lst"}
    return (
        {"file": list(files)} | {name: [each] * len(files) for name, each in box.items()} | columns
    )


@pytest.mark.parametrize(("time", "planes"), [("2", slice(2, 3)), ("1:3", slice(1, 3)), ("", ...)])
def test_columns_named_like_axes_choose_their_ranges(
    tmp_path: Path, time: str, planes: Any
) -> None:
    given = targets(write_array(tmp_path / "a.h5"), time=[time])
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok"]
    cut = np.load(tmp_path / "out" / manifest["path"][0])
    assert np.array_equal(cut, VALUES[planes, 6:13, 5:15])
    assert swathe.predict(given, format="npy").median_s > 0


def test_axes_of_the_only_array_need_no_path(tmp_path: Path) -> None:
    given = targets(write_array(tmp_path / "a.h5"), time=["2"])
    del given["array"]
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert manifest["status"][0] == "ok"
    cut = np.load(tmp_path / "out" / manifest["path"][0])
    assert np.array_equal(cut, VALUES[2:3, 6:13, 5:15])


def test_rejected_file_and_bad_range_are_faults_of_their_rows(tmp_path: Path) -> None:
    good, bad = write_array(tmp_path / "a.h5"), tmp_path / "b.h5"
    bad.write_bytes(b"\x89HDF\r\n\x1a\n" + b"x" * 99)
    given = targets(good, str(bad), good, good, time=["2", "2", "7", "later"])
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok", "error", "error", "error"]
    reasons = list(manifest["reason"])
    assert "expected a valid HDF5 file" in reasons[1]
    assert "time: expected a range within 0:4, found 7" in reasons[2]
    assert "time: expected an index or first:last" in reasons[3]


def test_rows_of_a_list_have_their_own_ranges(tmp_path: Path) -> None:
    file = write_array(tmp_path / "a.h5")
    times = ["3", "1:3", "", "3", ":2"]
    given = targets(*[file] * 5, time=times)
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok"] * 5
    cuts = [np.load(tmp_path / "out" / path) for path in manifest["path"]]
    spans = [slice(3, 4), slice(1, 3), slice(None), slice(3, 4), slice(2)]
    for cut, span in zip(cuts, spans, strict=True):
        assert np.array_equal(cut, VALUES[span, 6:13, 5:15])
    assert swathe.predict(given, format="npy").median_s > 0


@pytest.mark.parametrize("name", ["noname", "a.dat", "a.fits"])
def test_arrays_are_known_by_their_bytes(tmp_path: Path, name: str) -> None:
    image = tmp_path / "image.nc"
    fits.PrimaryHDU(VALUES[0]).writeto(image)
    given = targets(write_array(tmp_path / name), str(image), time=["2", ""])
    del given["array"]
    manifest = swathe.cut_many(given, tmp_path / "out", progress=False)
    assert list(manifest["path"]) == ["0.nc", "1.fits"], list(manifest["reason"])
    cut = swathe.open(tmp_path / "out" / "0.nc")
    assert isinstance(cut, ArrayFile)
    assert np.array_equal(cut["lst"].data, VALUES[2:3, 6:13, 5:15])
    assert swathe.predict(given).faults == []


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would be read for ever."""
    os.mkfifo(tmp_path / "pipe")
    given = targets(str(tmp_path), str(tmp_path / "pipe"), str(tmp_path / "none"))
    del given["array"]
    manifest = swathe.cut_many(given, tmp_path / "out", progress=False)
    assert list(manifest["status"]) == ["error", "error", "missing"]


def test_default_array_is_that_of_a_cut(tmp_path: Path) -> None:
    """Coordinates of two axes do not count."""
    path = tmp_path / "swath.h5"
    with h5py.File(path, "w") as file:
        file["lst"] = VALUES[0]
        file["lst"].attrs["coordinates"] = "lat lon"
        file["lat"], file["lon"] = VALUES[1], VALUES[2]
    given = targets(str(path))
    del given["array"]
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    expected: Any = swathe.cut(path, box=(5, 6, 10, 7))
    assert np.array_equal(np.load(tmp_path / "out" / manifest["path"][0]), expected.data)
    assert np.array_equal(expected.data, VALUES[0, 6:13, 5:15])
    assert swathe.predict(given).faults == []


@pytest.mark.parametrize("name", ["a.h5", "noname"])
def test_arrays_of_several_stores(tmp_path: Path, catalog: Catalog, name: str) -> None:
    """Each of the files is read from a store that has it; one lacks one."""
    for store in ("one", "two"):
        (tmp_path / store).mkdir()
        write_array(tmp_path / store / name)
        catalog.add_store(store, str(tmp_path / store))
    write_array(tmp_path / "two" / "b.h5")
    given = targets(name, "b.h5", name, time=["2", "3", "1"])
    stores = ["one", "two"]
    manifest = swathe.cut_many(given, tmp_path / "out", stores=stores, progress=False)
    assert list(manifest["status"]) == ["ok"] * 3, list(manifest["reason"])
    assert manifest["source"][1] == "two:b.h5"
    for path, time in zip(manifest["path"], (2, 3, 1), strict=True):
        cut = swathe.open(tmp_path / "out" / path)
        assert isinstance(cut, ArrayFile)
        assert np.array_equal(cut["lst"].data, VALUES[time : time + 1, 6:13, 5:15])
    prediction = swathe.predict(given, stores=stores)
    assert set(prediction.shares) == set(stores) and prediction.bytes > 0


def test_bounds_of_several_stores(tmp_path: Path, catalog: Catalog) -> None:
    path = write_globe(tmp_path / "globe.h5")
    for store in ("one", "two"):
        (tmp_path / store).mkdir()
        (tmp_path / store / "globe.h5").write_bytes(Path(path).read_bytes())
        catalog.add_store(store, str(tmp_path / store))
    bounds = {"west": [-20], "south": [30], "east": [20], "north": [60]}
    given = {"file": ["globe.h5"], "array": ["lst"], **bounds}
    manifest = swathe.cut_many(
        given, tmp_path / "out", stores=["one", "two"], format="npy", progress=False
    )
    assert list(manifest["status"]) == ["ok"], list(manifest["reason"])
    expected: Any = swathe.cut(path, array="lst", bounds=(-20, 30, 20, 60))
    assert np.array_equal(np.load(tmp_path / "out" / manifest["path"][0]), expected.data)


def test_default_array_is_no_place_and_no_bounds(tmp_path: Path) -> None:
    path = tmp_path / "swath.h5"
    with h5py.File(path, "w") as file:
        for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
            file[f"geolocation/{name}"] = np.zeros((6, 8))
            file[f"geolocation/{name}"].attrs["units"] = units
        file["product/height"], file["product/height_bnds"] = np.arange(8.0), np.zeros((8, 2))
        file["product/height"].attrs["bounds"] = "height_bnds"
        file["product/no2"] = np.ones((6, 8))
    cut: Any = swathe.cut(path, box=(0, 0, 2, 2))
    assert cut.path == "/product/no2"
    with h5py.File(path, "a") as file:
        del file["product/no2"]
    with pytest.raises(NoSuchArrayError, match="found 2: give array="):
        swathe.cut(path, box=(0, 0, 2, 2))


def test_default_array_of_roman_is_its_data(tmp_path: Path) -> None:
    asdf = pytest.importorskip("asdf")
    path, values = tmp_path / "r.asdf", np.arange(64, dtype="f4").reshape(8, 8)
    tree = {"data": values, "dq": np.zeros((8, 8), "u4"), "err": np.ones((8, 8), "f4")}
    asdf.AsdfFile({"roman": tree}).write_to(path)
    assert np.array_equal(swathe.cut(path, box=(1, 2, 3, 4)), values[2:6, 1:4])
    asdf.AsdfFile({"a": {"data": values}, "b": {"data": values}}).write_to(path)
    with pytest.raises(NoSuchArrayError, match="found 2: give array="):
        swathe.cut(path, box=(1, 2, 3, 4))


@pytest.mark.parametrize("name", [None, "npy", "fits"])
@pytest.mark.parametrize("mode", ["trim", "partial", "strict"])
def test_bounds_over_the_edge_of_a_grid(tmp_path: Path, mode: Any, name: str | None) -> None:
    """Both ends of the rows are one result, of the times that the row chooses."""
    path = tmp_path / "grid.h5"
    values = np.arange(3 * 4 * 36, dtype="f4").reshape(3, 4, 36)
    with h5py.File(path, "w") as file:
        array = file.create_dataset("t", data=values, chunks=(1, 4, 9), compression="gzip")
        axes = {
            "time": np.arange(3),
            "lat": np.arange(50.0, 10, -10),
            "lon": np.arange(0.0, 360, 10),
        }
        for axis, (dim, coordinate) in enumerate(axes.items()):
            file[dim] = coordinate
            file[dim].make_scale(dim)
            array.dims[axis].attach_scale(file[dim])
    bounds = {"west": [-15, 5], "south": [25, 25], "east": [15, 25], "north": [45, 45]}
    given = {"file": [str(path)] * 2, "array": ["t"] * 2, "time": ["1:3", ""]} | bounds
    assert swathe.predict(given, format=name).median_s > 0
    manifest = swathe.cut_many(given, tmp_path / "out", format=name, mode=mode, progress=False)
    assert [*zip(manifest["status"], manifest["reason"], strict=True)] == [("ok", "")] * 2
    both, inside = (tmp_path / "out" / result for result in manifest["path"])
    wanted = values[1:, 1:3][..., [35, 0, 1]], values[:, 1:3, 1:3]
    for result, elements in zip((both, inside), wanted, strict=True):
        if name == "npy":
            assert np.array_equal(np.load(result), elements)
        elif name == "fits":
            assert np.array_equal(fits.getdata(result), elements)
        else:
            with h5py.File(result) as file:
                assert np.array_equal(file["t"], elements)
                assert file["lon"][0] == (350 if result == both else 10)


def test_zarr_is_refused_in_lists(tmp_path: Path) -> None:
    given = targets(write_array(tmp_path / "a.h5"))
    with pytest.raises(OptionError, match="found 'zarr', which is a folder: choose nc"):
        swathe.cut_many(given, tmp_path / "out", format="zarr", progress=False)


@pytest.mark.parametrize("name", ["source", "nc", "h5", "tif", "png", "asdf", "fits"])
def test_results_have_the_content_of_a_cut(tmp_path: Path, name: str) -> None:
    file = write_array(tmp_path / "a.h5")
    given = targets(file, time=["2"])
    manifest = swathe.cut_many(given, tmp_path / "out", format=name, progress=False)
    assert list(manifest["status"]) == ["ok"], manifest["reason"][0]
    assert manifest["path"][0] == f"0.{'nc' if name == 'source' else name}"
    single = tmp_path / f"one{Path(manifest['path'][0]).suffix}"
    region = swathe.cut(file, array="s/lst", box=(5, 6, 10, 7), index={"time": slice(2, 3)})
    region.write(single)
    result = tmp_path / "out" / manifest["path"][0]
    if name in ("png", "fits"):
        # The history says when it was made.
        one_bytes, other_bytes = (WHEN.sub(b"", each.read_bytes()) for each in (single, result))
        assert one_bytes == other_bytes
        return
    one, other = swathe.open(single), swathe.open(result)
    assert isinstance(one, ArrayFile) and isinstance(other, ArrayFile)
    assert set(one) == set(other)
    for path in one:
        assert np.array_equal(one[path].data, other[path].data)
        assert one[path].attrs.keys() == other[path].attrs.keys()
    assert (other.attrs.keys()) == one.attrs.keys()


def test_rows_of_fits_and_arrays_keep_their_formats(tmp_path: Path) -> None:
    from astropy.io import fits

    image = tmp_path / "i.fits"
    fits.PrimaryHDU(VALUES[0]).writeto(image)
    given = targets(write_array(tmp_path / "a.h5"), str(image), array=["/s/lst", ""])
    manifest = swathe.cut_many(given, tmp_path / "out.zip", progress=False)
    assert list(manifest["status"]) == ["ok", "ok"], list(manifest["reason"])
    assert list(manifest["path"]) == ["0.nc", "1.fits"]
    again = swathe.cut_many(given, tmp_path / "out.zip", progress=False, resume=True)
    assert again.meta["done_before"] == 2


def test_array_in_the_index_is_cut(tmp_path: Path) -> None:
    asdf = pytest.importorskip("asdf")
    path = tmp_path / "a.asdf"
    tree = {"small": np.arange(12, dtype="i2").reshape(3, 4)}
    asdf.AsdfFile(tree).write_to(path, all_array_storage="inline")
    file = swathe.open(path)
    assert isinstance(file, ArrayFile) and not file["small"].is_native
    given = {"file": [str(path)], "array": ["small"], "x0": [1], "y0": [0]}
    given |= {"width": [2], "height": [3]}
    manifest = swathe.cut_many(given, tmp_path / "out", progress=False)
    assert list(manifest["status"]) == ["ok"], manifest["reason"][0]
    assert manifest["reason"][0] == "read from the index"
    assert manifest["source_version"][0] == file.version
    result = swathe.open(tmp_path / "out" / "0.asdf")
    assert isinstance(result, ArrayFile)
    assert np.array_equal(result["small"].data, [[1, 2], [5, 6], [9, 10]])


@pytest.mark.parametrize("output", ["out", "out.zip"])
def test_only_what_the_engine_does_not_read_is_made_in_python(
    tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elements as `.npy` are written by the threads that decode them."""
    path = tmp_path / "a.h5"
    layout = h5py.VirtualLayout((60, 80), "f4")
    layout[:] = h5py.VirtualSource(".", "plain", (60, 80))
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", data=VALUES[1], chunks=(20, 20), compression="gzip")
        file.create_virtual_dataset("virtual", layout)
        file["elsewhere"] = h5py.ExternalLink("b.h5", "/x")
    made, content = [], ArrayResults.content

    def noted(results: ArrayResults, row: RowRecord, *rest: Any) -> bytes:
        made.append(row.hdu)
        return content(results, row, *rest)

    monkeypatch.setattr(ArrayResults, "content", noted)
    given = targets(*[str(path)] * 3, array=["plain", "virtual", "elsewhere"])
    into = tmp_path / output
    manifest = swathe.cut_many(given, into, format="npy", threads=2, progress=False)
    assert list(manifest["status"]) == ["ok", "ok", "error"], list(manifest["reason"])
    assert "read by the library" in manifest["reason"][1]
    assert "--allow-external" in manifest["reason"][2]
    assert made == ["/virtual"]
    if output == "out.zip":
        zipfile.ZipFile(into).extractall(into := tmp_path / "members")
    for row in range(2):
        content_bytes = (into / manifest["path"][row]).read_bytes()
        assert hashlib.sha256(content_bytes).hexdigest() == manifest["sha256"][row]
        assert np.array_equal(np.load(BytesIO(content_bytes)), VALUES[1, 6:13, 5:15])
    assert manifest.meta["ok"] == 2


def test_hdu_beside_array_is_refused(tmp_path: Path) -> None:
    given = targets(write_array(tmp_path / "a.h5"), hdu=["1"])
    with pytest.raises(TargetsError, match="an 'hdu' or an 'array' in a row, found both"):
        swathe.cut_many(given, tmp_path / "out")


@pytest.mark.parametrize("array", ["lst", "/lst"])
def test_last_name_of_an_array_is_enough(tmp_path: Path, array: str) -> None:
    given = targets(write_array(tmp_path / "a.h5"), time=["2"], array=[array])
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok"]
    cut = np.load(tmp_path / "out" / manifest["path"][0])
    assert np.array_equal(cut, VALUES[2:3, 6:13, 5:15])
    assert swathe.predict(given, format="npy").median_s > 0


def test_last_name_of_several_arrays_is_an_error_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_array(path)
    with h5py.File(path, "a") as file:
        file["t/lst"] = VALUES[0]
    given = targets(*[str(path)] * 3, array=["lst", "t/lst", "lsd"])
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["error", "ok", "error"]
    assert "2 arrays have this name: /s/lst, /t/lst" in manifest["reason"][0]
    assert "near it are /s/lst, /t/lst" in manifest["reason"][2]


def test_row_without_its_array_stops_no_other(tmp_path: Path) -> None:
    file = write_array(tmp_path / "a.h5")
    given = targets(file, file, time=["2", "2"], array=["s/lst", "none"])
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok", "error"]
    assert "expected the path of an array, found '/none'; arrays are /" in manifest["reason"][1]
