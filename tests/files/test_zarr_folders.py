"""Zarr folders: what changes in them, what links lead to, and cuts written as Zarr."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import (
    ChangedError,
    NotFoundError,
    OutputError,
    OutputExistsError,
    SourceError,
    SwatheError,
)

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")

VALUES = np.arange(40 * 60, dtype="<f4").reshape(40, 60)


def open_file(path: str | Path) -> Any:
    return swathe.open(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Zarr of version 3, with coordinates, whose chunks are 10 x 20; the last is not stored."""
    path = tmp_path / "a.zarr"
    values = VALUES.copy()
    values[30:, 40:] = 7
    data = xarray.Dataset(
        {"lst": (("y", "x"), values, {"units": "K"})},
        {"y": np.arange(40) * 2.0, "x": np.arange(60) * 3.0},
        {"title": "warm"},
    )
    encoding = {"lst": {"chunks": (10, 20), "compressors": None, "_FillValue": np.float32(7)}}
    data.to_zarr(path, zarr_format=3, consolidated=False, encoding=encoding)
    (path / "lst/c/3/2").unlink()
    return path


def corner(path: Path) -> Any:
    return swathe.cut(path, array="/lst", box=(38, 28, 4, 4)).data


def test_a_chunk_that_is_written_over_is_read_anew(folder: Path) -> None:
    before = corner(folder)
    chunk = folder / "lst/c/2/1"
    chunk.write_bytes(np.full((10, 20), 5, "<f4").tobytes())
    os.utime(chunk, ns=(1, 1))
    after = corner(folder)
    assert before[0, 0] == VALUES[28, 38]
    assert after[0, 0] == 5
    assert np.isnan(after[2:, 2:]).all()


def test_a_chunk_that_was_missing_is_found(folder: Path) -> None:
    assert np.isnan(corner(folder)[2:, 2:]).all()
    (folder / "lst/c/3/2").write_bytes(np.full((10, 20), 6, "<f4").tobytes())
    assert (corner(folder)[2:, 2:] == 6).all()


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_folder_that_changes_while_it_is_open_is_an_error(folder: Path, is_gone: bool) -> None:
    with open_file(folder) as file:
        chunk = folder / "lst/c/0/0"
        if is_gone:
            chunk.unlink()
        else:
            chunk.write_bytes(bytes(800))
            os.utime(chunk, ns=(1, 1))
        with pytest.raises(ChangedError, match=r"a\.zarr/lst/c/0/0: changed"):
            file["lst"].read((0, 0), (1, 1))
        assert file["lst"].read((12, 0), (13, 1))[0, 0] == VALUES[12, 0]


def test_links_to_folders_are_refused_and_loops_do_not_matter(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    with pytest.raises(SourceError, match=r"loop cannot be listed: a link to a folder"):
        open_file(folder)
    (folder / "loop").unlink()
    (folder / "lst/c/0/1").unlink()
    (folder / "lst/c/0/1").symlink_to(folder / "lst/c/0/0")
    with open_file(folder) as file:
        assert file["lst"].read((0, 20), (1, 21))[0, 0] == VALUES[0, 0]
    (folder / "lst/c/0/1").unlink()
    (folder / "lst/c/0/1").symlink_to("1")
    with pytest.raises(SourceError, match="cannot be listed"):
        open_file(folder)


def test_a_link_to_a_file_outside_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(800))
    (folder / "lst/c/0/0").unlink()
    (folder / "lst/c/0/0").symlink_to(tmp_path / "secret")
    with pytest.raises(SourceError, match="lst/c/0/0 cannot be listed: a link that leads out of"):
        open_file(folder)
    (tmp_path / "b.zarr").symlink_to(folder)
    with pytest.raises(SourceError, match="a link that leads out of"):
        open_file(tmp_path / "b.zarr")


def test_a_link_to_nothing_is_refused(folder: Path) -> None:
    (folder / "lst/c/0/0").unlink()
    (folder / "lst/c/0/0").symlink_to(folder / "nothing")
    with pytest.raises(SourceError, match="a link to a file that does not exist"):
        open_file(folder)


def test_a_pipe_is_no_missing_chunk(folder: Path) -> None:
    (folder / "lst/c/0/0").unlink()
    os.mkfifo(folder / "lst/c/0/0")
    with pytest.raises(SourceError, match="lst/c/0/0 cannot be listed: neither a"):
        open_file(folder)


def test_a_folder_behind_a_link_is_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.zarr").symlink_to(folder)
    with open_file(tmp_path / "b.zarr") as file:
        assert file["lst"].read((0, 20), (1, 21))[0, 0] == VALUES[0, 20]


def test_a_link_does_not_lead_out_of_a_named_store(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    folder.rename(store / "a.zarr")
    monkeypatch.setenv("SWATHE_CATALOG", str(tmp_path / "catalog.db"))
    swathe.stores.add("disk", str(store))
    with open_file("disk:a.zarr") as file:
        assert file["lst"].read((0, 20), (1, 21))[0, 0] == VALUES[0, 20]
    (tmp_path / "secret").write_bytes(bytes(800))
    (store / "a.zarr/lst/c/0/0").unlink()
    (store / "a.zarr/lst/c/0/0").symlink_to(tmp_path / "secret")
    with pytest.raises(SourceError, match="a link that leads out of its store"):
        open_file("disk:a.zarr")
    with pytest.raises((SourceError, NotFoundError)):
        open_file("disk:../a.zarr")


@pytest.mark.parametrize("names", [[], ["a.txt"], ["sub/zarr.json"]])
def test_a_folder_that_is_no_zarr_is_an_error(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "b"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    with pytest.raises(
        SwatheError, match=r"/b: (expected files, found an empty folder|.*at the root, found)"
    ):
        open_file(folder)


def test_a_cut_is_a_zarr_that_xarray_reads(
    folder: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    cutout = swathe.cut(folder, array="/lst", box=(35, 25, 10, 10))
    path = tmp_path / "cut.zarr"
    cutout.write(path)
    with xarray.open_zarr(path) as found, xarray.open_zarr(folder, consolidated=False) as source:
        expected = source.isel(y=slice(25, 35), x=slice(35, 45))
        xarray.testing.assert_identical(found.drop_attrs(), expected.drop_attrs())
        assert found.lst.attrs == expected.lst.attrs
        assert found.attrs["title"] == "warm"
        assert "cut /lst[25:35, 35:45]" in found.attrs["history"]
    assert zarr.open_group(path, mode="r").metadata.consolidated_metadata is not None
    assert not recwarn.list
    again: Any = swathe.cut(path, array="/lst", box=(0, 0, 10, 10))
    assert again.data.tobytes() == cutout.data.tobytes()
    assert again.attrs["units"] == "K"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zarr", "cut.zarr"]


def test_attributes_of_one_number_are_numbers_if_the_source_is_netcdf(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(source := tmp_path / "a.h5", "w") as file:
        file["lst"] = np.arange(12, dtype="i2").reshape(3, 4)
        file["lst"].attrs.update({"scale_factor": np.array([0.5]), "range": np.array([1, 2])})
        file.attrs["orbit"] = np.array([7])
    path = tmp_path / "cut.zarr"
    swathe.cut(source, array="lst", box=(0, 0, 2, 2)).write(path)
    attrs = json.loads((path / "lst/zarr.json").read_text())["attributes"]
    assert attrs == {"scale_factor": 0.5, "range": [1, 2]}
    assert json.loads((path / "zarr.json").read_text())["attributes"]["orbit"] == 7


def test_attributes_of_a_zarr_stay_lists(folder: Path, tmp_path: Path) -> None:
    meta = json.loads((folder / "lst/zarr.json").read_text())
    meta["attributes"]["one"] = [1]
    (folder / "lst/zarr.json").write_text(json.dumps(meta))
    path = tmp_path / "cut.zarr"
    swathe.cut(folder, array="/lst", box=(0, 0, 3, 3)).write(path)
    assert json.loads((path / "lst/zarr.json").read_text())["attributes"]["one"] == [1]


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize(
    "dtype", ["?", "i1", ">i2", "<u8", "<f2", ">f8", "<c8", "<U3", "S4", "<M8[s]"]
)
def test_every_type_is_written_as_it_is_read(tmp_path: Path, dtype: str) -> None:
    values = np.arange(2000 * 1300 // 4).reshape(-1, 1300).astype("i2" if dtype == "i1" else "i4")
    values = values[:40, :700].astype(dtype)
    np_path, path = tmp_path / "a.zarr", tmp_path / "b.zarr"
    array = zarr.create_array(np_path, shape=values.shape, chunks=(16, 300), dtype=dtype)
    array[...] = values
    swathe.cut(np_path, array="/", box=(1, 2, 690, 31)).write(path)
    (name,) = (each.parent.name for each in path.glob("*/zarr.json"))
    found = zarr.open_array(path / name, mode="r")
    assert found.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    assert np.array_equal(found[...], array[2:33, 1:691])


def test_an_existing_output_is_replaced_only_if_it_is_a_zarr(folder: Path, tmp_path: Path) -> None:
    cutout = swathe.cut(folder, array="/lst", box=(0, 0, 3, 3))
    path = tmp_path / "cut.zarr"
    cutout.write(path)
    with pytest.raises(OutputExistsError, match="exists already"):
        cutout.write(path)
    swathe.cut(folder, array="/lst", box=(0, 0, 5, 4)).write(path, overwrite=True)
    assert json.loads((path / "lst/zarr.json").read_text())["shape"] == [4, 5]
    with pytest.raises(OutputError, match="it is the source"):
        cutout.write(folder, overwrite=True)
    plain = tmp_path / "plain.zarr"
    plain.mkdir()
    (plain / "keep").touch()
    with pytest.raises(OutputError, match="it is a folder"):
        cutout.write(plain, overwrite=True)
    assert (plain / "keep").exists()


def test_a_list_of_cuts_takes_zarr_as_any_file(folder: Path, tmp_path: Path) -> None:
    box = {"x0": [5, 38], "y0": [6, 28], "width": [10, 4], "height": [7, 4]}
    given = {"file": [str(folder)] * 2, "array": ["lst"] * 2} | box
    manifest = swathe.cut_many(given, tmp_path / "out", format="npy", progress=False)
    assert list(manifest["status"]) == ["ok", "ok"]
    cuts = [np.load(tmp_path / "out" / name) for name in manifest["path"]]
    assert np.array_equal(cuts[0], VALUES[6:13, 5:15])
    assert np.array_equal(cuts[1], corner(folder), equal_nan=True)
    assert swathe.predict(given, format="npy").median_s > 0
