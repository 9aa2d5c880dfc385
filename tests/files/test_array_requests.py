"""Requests to a server for a cut of an array: each of them is a round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import swathe
from tests.support.servers import FileServer, nginx

VALUES = np.random.default_rng(5).integers(0, 1 << 15, (1024, 1024)).astype("i2")
CORNERS = ((300, 520), (600, 10))
"""First row and column of each window; each lies in one chunk of 256 x 256."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    with nginx(tmp_path_factory.mktemp("nginx")) as files:
        yield files


def write_hdf5(path: Path) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=VALUES, chunks=(256, 256), compression="gzip")
    return "/a"


def write_netcdf(path: Path) -> str:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        for name in "yx":
            file.createDimension(name, 1024)
        file.createVariable("a", "i2", ("y", "x"), zlib=True, chunksizes=(256, 256))[:] = VALUES
    return "/a"


def write_cog(path: Path) -> str:
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(path, VALUES, tile=(256, 256), compression="zlib")
    return "/0"


def requests_of(server: FileServer, name: str, array: str) -> list[int]:
    """Cut the windows, compare them, and return the number of requests for each."""
    counts = []
    for y, x in CORNERS:
        cutout = swathe.cut(f"{server.url}/{name}", array=array, box=(x, y, 100, 100))
        np.testing.assert_array_equal(cutout.data, VALUES[y : y + 100, x : x + 100])
        counts.append(len(server.requests()))
    return counts


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.h5", write_hdf5),
        ("a.nc", write_netcdf),
        ("a.tif", write_cog),
    ],
)
def test_an_index_that_fits_the_first_read_costs_no_request(
    server: FileServer, name: str, write: Callable[[Path], str]
) -> None:
    assert requests_of(server, name, write(server.folder / name)) == [2, 1]


def test_asdf_has_what_follows_its_first_block_read_too(server: FileServer) -> None:
    asdf = pytest.importorskip("asdf")
    columns = VALUES.reshape(-1, 64)
    asdf.AsdfFile({"a": columns}).write_to(server.folder / "a.asdf")
    counts = []
    for row in (9000, 12000):
        cutout = swathe.cut(f"{server.url}/a.asdf", array="/a", box=(0, row, 64, 50))
        np.testing.assert_array_equal(cutout.data, columns[row : row + 50])
        counts.append(len(server.requests()))
    assert counts == [3, 1]


def test_folders_of_a_zarr_are_listed_once(server: FileServer) -> None:
    """A web server tells the version of a member in the listing of its folder."""
    zarr = pytest.importorskip("zarr")
    zarr.create_array(server.folder / "a.zarr", name="a", data=VALUES, chunks=(256, 256))
    folders, metadata = len([".", "a", "a/c"]) + 1024 // 256, len(["zarr.json", "a/zarr.json"])
    assert requests_of(server, "json/a.zarr/", "/a") == [folders + metadata + 1, 1]


def test_the_directory_of_a_zip_file_is_one_request(server: FileServer) -> None:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(server.folder / "a.zip", mode="w") as store:
        zarr.create_array(store, name="a", data=VALUES, chunks=(256, 256))
    assert requests_of(server, "a.zip", "/a") == [3, 1]
