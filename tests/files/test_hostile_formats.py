"""Crafted files: what lies elsewhere, expands, refers to itself, or is not what it says."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays import indexing
from swathe.core.errors import FormatError, LimitError, SwatheError
from swathe.files.places.regions import region_of_bounds
from swathe.files.variable import Variable, physical_values

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
cut: Any = swathe.cut
opened: Any = swathe.open
VALUES = np.arange(60, dtype="i2").reshape(6, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.h5"


def test_virtual_arrays_named_by_a_pattern_are_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for number in range(2):
            file[f"part{number}"] = np.arange(4)
        space = h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (4,), (4,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(space, b".", b"part%b", h5py.h5s.create_simple((4,)))
        h5py.h5d.create(file.id, b"all", h5py.h5t.NATIVE_INT64, space, plist)
    array = opened(path)["/all"]
    assert array.is_refused and "part%b" in array.problem
    with pytest.raises(FormatError, match="part%b"):
        array.read([0], [1])


def test_a_block_of_the_user_is_passed_over(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=1024) as file:
        file.create_dataset("a", data=VALUES, chunks=(2, 5))
        file["plain"] = VALUES
    for name in ("/a", "/plain"):
        np.testing.assert_array_equal(opened(path)[name].data, VALUES)


def test_an_unknown_filter_loads_no_plugin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library in the folder of plugins would be loaded by HDF5 in the confined process."""
    plugins = path.parent / "plugins"
    plugins.mkdir()
    (plugins / "libhostile.so").write_bytes(b"\x7fELF")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(plugins))
    with h5py.File(path, "w") as file:
        array = file.create_dataset("a", (6, 10), "i2", chunks=(6, 10), compression="gzip")
        array.id.write_direct_chunk((0, 0), zlib.compress(VALUES.tobytes()))
    content = path.read_bytes()
    message = content.index(b"deflate\0") - 8
    assert content[message : message + 2] == b"\1\0"
    path.write_bytes(content[:message] + b"\x39\x30" + content[message + 2 :])
    array = opened(path)["/a"]
    assert array.is_refused and "12345" in array.problem


def test_a_chunk_that_inflates_to_more_is_an_error(path: Path) -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    assert len(bomb) < 70_000
    with h5py.File(path, "w") as file:
        array = file.create_dataset("a", (6, 10), "i2", chunks=(6, 10), compression="gzip")
        array.id.write_direct_chunk((0, 0), bomb)
    with pytest.raises(FormatError, match=r"a\.h5"):
        opened(path)["/a"].read([0, 0], [1, 1])


@pytest.mark.parametrize("head", [b"\xff" * 4, b"\x11\0\0\0", b"\0\0\0\x80"], ids=range(3))
def test_scale_offset_of_more_bits_than_elements_have_is_an_error(path: Path, head: bytes) -> None:
    """CVE-2025-2308 and -44905: the filter of HDF5 wrote beyond its buffer."""
    with h5py.File(path, "w") as file:
        array = file.create_dataset("a", data=VALUES, chunks=VALUES.shape, scaleoffset=0)
        chunk = array.id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + 4] = head
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.h5, array /a"):
        _ = opened(path)["/a"].data


@pytest.mark.parametrize("size", [0, 1, 0x7FFF, 0xFFFF])
@pytest.mark.parametrize("field", [6, 4, 2], ids=["name", "type", "space"])
def test_an_attribute_whose_sizes_lie_is_an_error_or_refused(
    path: Path, field: int, size: int
) -> None:
    """CVE-2025-2309 and -2310: HDF5 read beyond the name, type or shape of an attribute."""
    with h5py.File(path, "w", libver="earliest") as file:
        file["a"] = VALUES
        file["a"].attrs["attribute_that_lies"] = np.arange(3)
    content = bytearray(path.read_bytes())
    at = content.index(b"attribute_that_lies\0") - field
    content[at : at + 2] = size.to_bytes(2, "little")
    path.write_bytes(content)
    try:
        array = opened(path)["/a"]
    except FormatError as error:
        assert str(path) in str(error)
    else:
        lie = array.attrs.get("attribute_that_lies")
        assert array.is_refused or lie is None or np.size(lie) <= 3


def test_a_shape_of_2_to_the_62_is_read_in_parts(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("long", (1 << 62,), "u1", chunks=(1 << 20,), fillvalue=7)
    end = 1 << 62
    assert opened(path)["/long"].read([end - 3], [end]).tolist() == [7, 7, 7]


def test_links_in_a_circle_are_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = h5py.SoftLink("/b")
        file["b"] = h5py.SoftLink("/c/x")
        file.create_group("c")["x"] = h5py.SoftLink("../a")
        file["c/up"] = file["/"]
        file["c/plane"] = VALUES
    file = opened(path)
    assert file["/a"].is_refused and file["/b"].is_refused
    np.testing.assert_array_equal(file["/c/plane"].data, VALUES)


def test_a_list_of_references_is_no_file_of_arrays(tmp_path: Path) -> None:
    """References of kerchunk name any file; they are not read."""
    references = {"version": 1, "refs": {".zgroup": "{}", "a/0.0": ["file:///etc/passwd", 0, 9]}}
    for name in ("a.json", "a.zarr"):
        (tmp_path / name).write_text(json.dumps(references))
        with pytest.raises(FormatError):
            cut(tmp_path / name, box=(0, 0, 1, 1))


def test_keys_of_a_zarr_lead_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(VALUES.tobytes())
    array = {"zarr_format": 2, "shape": [6, 10], "chunks": [6, 10], "dtype": "<i2", "order": "C"}
    array |= {"compressor": None, "fill_value": 0, "filters": None}
    folder = tmp_path / "a.zarr"
    (folder / "good").mkdir(parents=True)
    metadata = {".zgroup": {"zarr_format": 2}, "../../secret/.zarray": array, "good/.zarray": array}
    for name in (".zgroup", "good/.zarray"):
        (folder / name).write_text(json.dumps(metadata[name]))
    consolidated = {"zarr_consolidated_format": 1, "metadata": metadata}
    (folder / ".zmetadata").write_text(json.dumps(consolidated))
    file = opened(folder)
    assert not any("secret" in name for name in file)
    assert not opened(folder)["/good"].data.any()


def test_pickles_in_a_zarr_are_refused(tmp_path: Path) -> None:
    array = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "order": "C"}
    array |= {"compressor": None, "fill_value": None, "filters": [{"id": "pickle", "protocol": 5}]}
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / ".zarray").write_text(json.dumps(array))
    file = opened(tmp_path / "a.zarr")
    assert file["/"].is_refused


def test_files_beside_a_tiff_are_not_read(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(tmp_path / "a.tif", VALUES)
    tifffile.imwrite(tmp_path / "a.tif.ovr", VALUES[::2, ::2])
    (tmp_path / "a.tif.aux.xml").write_text("<PAMDataset><SRS>EPSG:4326</SRS></PAMDataset>")
    file = opened(tmp_path / "a.tif")
    assert list(file) == ["/0"]
    np.testing.assert_array_equal(file["/0"].data, VALUES)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_hdf4_that_is_cut_off_is_an_error_or_refused(
    share: float, data: Path, tmp_path: Path
) -> None:
    content = (data / "swath" / "SwathFile.hdf").read_bytes()
    (tmp_path / "a.hdf").write_bytes(content[: int(share * len(content))])
    whole = opened(data / "swath" / "SwathFile.hdf")
    try:
        file = opened(tmp_path / "a.hdf")
        for name in file:
            if not file[name].is_refused and file[name].dtype.kind in "iuf":
                np.testing.assert_array_equal(file[name].data, whole[name].data)
    except SwatheError as error:
        assert "a.hdf" in str(error)


def test_a_structure_of_hdf4_that_lies_is_an_error(tmp_path: Path) -> None:
    pyhdf = pytest.importorskip("pyhdf.SD")
    text = (
        'GROUP=GRID_1\nGridName="G"\nXDim=99\nYDim=6\nProjection=GCTP_GEO\n'
        "UpperLeftPointMtrs=(0.0,90000000.0)\nLowerRightMtrs=(90000000.0,0.0)\nEND_GROUP=GRID_1\n"
    )
    file = pyhdf.SD(str(tmp_path / "a.hdf"), pyhdf.SDC.WRITE | pyhdf.SDC.CREATE)
    array = file.create("map", pyhdf.SDC.INT16, VALUES.shape)
    for axis, name in enumerate(("YDim:G", "XDim:G")):
        array.dim(axis).setname(name)
    array[:] = VALUES
    for part in range(2):  # two attributes have one text
        piece = text[70:] if part else text[:70]
        file.attr(f"StructMetadata.{part}").set(pyhdf.SDC.CHAR, piece)
    array.endaccess()
    file.end()
    with pytest.raises(FormatError, match=r"expected a grid of .*'XDim': 10.*, found 6 x 99"):
        region_of_bounds(opened(tmp_path / "a.hdf")["/map"], (0, 0, 10, 10))


def test_two_values_for_nothing_are_both_nothing(tmp_path: Path) -> None:
    """NetCDF classic is big-endian; packed, with `_FillValue` and `missing_value`."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("y", 6)
        file.createDimension("x", 10)
        array = file.createVariable("a", "i2", ("y", "x"), fill_value=3)
        array.set_auto_maskandscale(False)
        array.missing_value = np.int16(5)
        array.scale_factor, array.add_offset = 0.5, 10.0
        array[:] = VALUES
    array = opened(tmp_path / "a.nc")["/a"]
    assert array.dtype == ">i2"
    actual = physical_values(Variable(array.data, array.dims, array.attrs))
    expected = np.where(np.isin(VALUES, (3, 5)), np.nan, VALUES * 0.5 + 10)
    np.testing.assert_array_equal(actual, expected)


def test_names_that_are_no_text_spoil_nothing_else(path: Path) -> None:
    """h5py has bytes for them."""
    with h5py.File(path, "w") as file:
        file["plane"] = VALUES
        file["other"] = VALUES
        file["plane"].attrs["good"], file["plane"].attrs["wrong"] = 3, 4
    content = path.read_bytes()
    for name in (b"wrong\0", b"other\0"):
        assert content.count(name) == 1
        content = content.replace(name, b"\xff\xfe" + name[2:])
    path.write_bytes(content)
    file = opened(path)
    assert sorted(file) == ["/\\xff\\xfeher", "/plane"]
    assert file["/plane"].attrs == {"good": 3, "\\xff\\xfeong": 4}
    np.testing.assert_array_equal(file["/plane"].data, VALUES)


@pytest.mark.parametrize("name", ["scale_factor", "add_offset"])
def test_a_scale_that_is_nan_leaves_no_value(path: Path, name: str) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = VALUES
        file["a"].attrs[name] = np.nan
    cutout = cut(path, box=(0, 0, 3, 2))
    assert cutout.data.tolist() == VALUES[:2, :3].tolist()
    assert np.isnan(cutout.physical).all()
    with pytest.raises(SwatheError, match=r"\.fits cannot hold it"):
        cutout.write(path.with_suffix(".fits"))


@pytest.mark.parametrize("suffix", ["fits", "nc", "asdf", "tif", "zarr", "hdf", "dcm"])
def test_a_suffix_that_lies_counts_nothing(tmp_path: Path, suffix: str) -> None:
    with h5py.File(tmp_path / f"a.{suffix}", "w") as file:
        file["a"] = VALUES
    file = opened(tmp_path / f"a.{suffix}")
    assert file.format == "hdf5"
    np.testing.assert_array_equal(file["/a"].data, VALUES)


def test_a_file_that_gets_shorter_while_it_is_open_is_an_error(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(1 << 20)
    array = opened(path)["/a"]
    assert array.read([0], [1]).tolist() == [0]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SwatheError, match=r"a\.h5"):
        array.read([(1 << 20) - 10], [1 << 20])


def test_a_file_that_is_replaced_stays_what_it_was_where_it_is_open(path: Path) -> None:
    other = path.with_name("b.h5")
    for at, start in ((path, 0), (other, 7)):
        with h5py.File(at, "w") as file:
            file.create_dataset("a", data=VALUES + start, chunks=(2, 5), compression="gzip")
    array = opened(path)["/a"]
    other.replace(path)
    np.testing.assert_array_equal(array.read([0, 0], [6, 10]), VALUES)
    np.testing.assert_array_equal(cut(path, array="/a", box=(0, 0, 10, 6)).data, VALUES + 7)


@pytest.mark.more
def test_a_file_that_keeps_its_library_in_a_loop_is_stopped_soon(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of an attribute that seems longer than the heap around it: HDF5 looks for its end."""
    with h5py.File(path, "w") as file:
        file["a"] = VALUES
        file["a"].attrs["text"] = "some text"
    content = bytearray(path.read_bytes())
    at = content.index(b"some text") - 8
    assert content[at] == len("some text")
    content[at] = 255
    path.write_bytes(content)
    monkeypatch.setattr(indexing, "DESCRIBE_CPU_S", 1)
    with pytest.raises(LimitError, match=r"a\.h5: expected its reader .* at most 1 s of CPU time"):
        opened(path)


def test_time_to_describe_a_file_grows_with_its_size() -> None:
    sizes = 8000, 1 << 20, 5 << 20, 1 << 30, None
    assert [indexing.cpu_limit("describe", size) for size in sizes] == [5, 15, 55, 120, 120]
    assert [indexing.cpu_limit("read", size) for size in sizes] == [15, 25, 65, 120, 120]


@pytest.mark.more
def test_files_of_many_small_objects_are_described_in_time(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        file["c"] = np.arange(4)
        for number in range(8000):
            file[f"link{number}"] = file["c"]
        for number in range(2000):
            file.create_dataset(f"array{number}", data=[1, 2, 3], dtype="u1")
        file.create_dataset("chunks", data=np.ones(100_000, "u1"), chunks=(1,))
    assert len(opened(path)) == 10_002
