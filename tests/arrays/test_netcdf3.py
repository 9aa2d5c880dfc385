"""NetCDF classic in the chunk index, beside netCDF4; and how formats are recognised."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swathe.arrays import indexing
from swathe.arrays.array_tree import decode_attribute, dtype_of
from swathe.arrays.readers import netcdf3
from swathe.core.errors import FormatError, SettingsError
from swathe.core.served_file import FileReads
from tests.arrays.test_hdf5 import Index

netcdf4 = pytest.importorskip("netCDF4")
KINDS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


def values_of(each: dict[str, Any], content: bytes) -> np.ndarray[Any, Any]:
    dtype, shape, storage = dtype_of(each["dtype"]), each["shape"], each["storage"]
    if storage["kind"] == "contiguous" or not shape[0]:
        return np.ndarray(shape, dtype, content, storage["offset"])
    row = np.empty(shape[1:], dtype)
    strides = (storage["strides"][0], *row.strides)
    return np.ndarray(shape, dtype, content, storage["offset"], strides)


def check(path: Path) -> None:
    content = path.read_bytes()
    index = Index(netcdf3.describe(io.BytesIO(content)))
    with netcdf4.Dataset(path) as file:
        file.set_auto_mask(False)
        file.set_auto_scale(False)
        file.set_auto_chartostring(False)
        assert list(index.arrays) == [f"/{name}" for name in file.variables]
        for name, variable in file.variables.items():
            each = index.arrays[f"/{name}"]
            assert (tuple(each["shape"]), tuple(each["dims"])) == (
                variable.shape,
                variable.dimensions,
            )
            assert list(each["attributes"]) == variable.ncattrs()
            for key, value in each["attributes"].items():
                np.testing.assert_array_equal(decode_attribute(value), variable.getncattr(key))
            assert (
                values_of(each, content).astype(variable.dtype).tobytes() == variable[...].tobytes()
            )


def test_every_array_of_real_files_is_as_the_library_says(data: Path) -> None:
    paths = [path for path in (data / "swath").glob("*.nc") if path.read_bytes()[:3] == b"CDF"]
    assert len(paths) == 2
    for path in paths:
        check(path)


def write(path: Path, kind: str, records: tuple[str, ...]) -> None:
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("fixed", "i4", ("x",))[:] = [1, 2, 3]
        file.createVariable("scalar", "f8", ())[...] = 2.5
        for i, dtype in enumerate(records):
            variable = file.createVariable(f"r{i}", dtype, ("time", "x"))
            variable[:] = np.arange(12).reshape(4, 3)
            variable.units = "m"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("records", [(), ("i1",), ("i2", "f8", "i1")])
def test_records_lie_where_the_index_says(
    tmp_path: Path, kind: str, records: tuple[str, ...]
) -> None:
    write(tmp_path / "x.nc", kind, records)
    check(tmp_path / "x.nc")


def test_streaming_files_have_as_many_records_as_their_size_allows(tmp_path: Path) -> None:
    write(tmp_path / "x.nc", KINDS[0], ("i2", "f4"))
    content = bytearray((tmp_path / "x.nc").read_bytes())
    content[4:8] = b"\xff" * 4
    assert Index(netcdf3.describe(io.BytesIO(bytes(content)))).arrays["/r0"]["shape"] == [4, 3]


def test_damaged_headers_are_errors(tmp_path: Path, data: Path) -> None:
    arrays = Index(
        netcdf3.describe(io.BytesIO((data / "odd" / "bad_cdf5_begin.nc").read_bytes()))
    ).arrays
    assert "expected" in arrays["/var_big"]["storage"]["why"]
    write(tmp_path / "x.nc", KINDS[2], ("i2", "f4"))
    content = (tmp_path / "x.nc").read_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] = 0xFF
        for each in (bytes(damaged), content[:at]):
            try:
                Index(netcdf3.describe(io.BytesIO(each)))
            except FormatError as error:
                assert "expected" in str(error)


@pytest.mark.parametrize(
    ("start", "at", "name"),
    [
        (b"SIMPLE  =", 0, "fits"),
        (indexing.HDF5, 0, "hdf5"),
        (indexing.HDF5, 1024, "hdf5"),
        (indexing.HDF5, 1 << 20, "hdf5"),
        (indexing.HDF5, 1000, None),
        (b"CDF\x05", 0, "netcdf3"),
        (b"CDF\x03", 0, None),
        (b"\x0e\x03\x13\x01", 0, "hdf4"),
        (b"#ASDF 1.0.0", 0, "asdf"),
        (b"MM\0+", 0, "tiff"),
        (b"", 0, None),
    ],
)
def test_formats_are_known_by_their_bytes(start: bytes, at: int, name: str | None) -> None:
    content = bytes(at) + start
    assert indexing.format_of(lambda at, length: content[at : at + length]) == name


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"x\.h5: .*h5py; try: pip install 'swathe\[hdf\]'"):
        indexing.describe(FileReads(lambda at, length: b"", 0), "hdf5", "x.h5")
    with pytest.raises(FormatError, match=r"x: expected one of .*, found fits"):
        indexing.describe(FileReads(lambda at, length: b"", 0), "fits", "x")


class CountingFile(io.BytesIO):
    """A file that counts the bytes that are read."""

    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read and count."""
        part = super().read(size)
        self.bytes_read += len(part)
        return part


@pytest.mark.parametrize("length", [10, 100_000])
def test_hardly_more_than_the_header_is_read(length: int, tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path = tmp_path / "a.nc"
    with scipy_io.netcdf_file(path, "w") as made:
        made.note = "n" * length
        made.createDimension("x", 300_000)
        made.createVariable("a", "f8", ("x",))[:] = 0
    file = CountingFile(path.read_bytes())
    index = Index(netcdf3.describe(file))
    assert index.arrays["/a"]["shape"] == [300_000]
    assert file.bytes_read <= max(netcdf3.FIRST_READ, 3 * length)
