"""Other readers of windows, each taken if it is installed: `formats.py` says which are missing.

They need no extra: zarrs, tensorstore, async-tiff, roman_datamodels, hidefix, kerchunk and
virtualizarr are installed for a comparison by `pip install`, h5coro by `pip install --no-deps`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ways = dict[str, Callable[[], Any]]
Places = list[tuple[int, int]]


def is_installed(*packages: str) -> bool:
    """Return whether all packages are there; print which are not."""
    missing = [package for package in packages if find_spec(package) is None]
    for package in missing:
        print(f"{package}: left out: it is not installed", file=sys.stderr)
    return not missing


def read_each(array: Any, places: Places, window: int) -> None:
    """Read windows of an array that is sliced."""
    for y, x in places:
        array[y : y + window, x : x + window]


def read_opened(open_array: Callable[[], Any], places: Places, window: int) -> None:
    """Read windows of an array that is opened for each."""
    for y, x in places:
        open_array()[y : y + window, x : x + window]


def zarr_ways(path: str, places: Places, window: int) -> Ways:
    """zarr-python, the same with the codecs of zarrs, and tensorstore; its cache is off.

    Args:
        path: folder, or URL of one.
        places: first row and column of each window.
        window: rows and columns of each.
    """
    import zarr

    def with_codecs(pipeline: str, read: Callable[[], Any]) -> None:
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            read()

    ways: Ways = {}
    pipelines = {"zarr": zarr.config.get("codec_pipeline.path")}
    if is_installed("zarrs"):
        import_module("zarrs")
        pipelines["zarrs"] = "zarrs.ZarrsCodecPipeline"
    for name, pipeline in pipelines.items():
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            array = zarr.open_array(path, mode="r")
        opened = partial(read_opened, partial(zarr.open_array, path, mode="r"), places, window)
        ways[f"{name}, opened for each"] = partial(with_codecs, pipeline, opened)
        kept = partial(read_each, array, places, window)
        ways[f"{name}, kept open"] = partial(with_codecs, pipeline, kept)
    if is_installed("tensorstore"):
        ways |= _tensorstore_ways(path, places, window)
    return ways


def _tensorstore_ways(path: str, places: Places, window: int) -> Ways:
    tensorstore = import_module("tensorstore")
    place = path if "://" in path else Path(path).as_uri()

    def opened() -> Any:
        spec = {"driver": "zarr3", "kvstore": f"{place}/"}
        return tensorstore.open(spec, read=True).result()

    def read(open_array: Callable[[], Any]) -> None:
        for y, x in places:
            open_array()[y : y + window, x : x + window].read().result()

    array = opened()
    return {
        "tensorstore, opened for each": partial(read, opened),
        "tensorstore, kept open": partial(read, lambda: array),
    }


def tiff_ways(path: str, tile: int, places: Places, window: int) -> Ways:
    """async-tiff, kept open and opened for each: the tiles of a window, decoded, side by side."""
    if not is_installed("async_tiff"):
        return {}
    async_tiff, local = import_module("async_tiff"), import_module("async_tiff.store")
    folder, name = Path(path).parent, Path(path).name
    store = local.LocalStore(str(folder))

    async def windows(file: Any) -> None:
        for y, x in places:
            tiff = file or await async_tiff.TIFF.open(name, store=store)
            rows = range(y // tile, (y + window - 1) // tile + 1)
            columns = range(x // tile, (x + window - 1) // tile + 1)
            wanted = [(column, row) for row in rows for column in columns]
            tiles = await tiff.fetch_tiles(wanted, 0)
            await asyncio.gather(*(each.decode() for each in tiles))

    async def kept() -> None:
        await windows(await async_tiff.TIFF.open(name, store=store))

    return {
        "async-tiff, opened for each": lambda: asyncio.run(windows(None)),
        "async-tiff, kept open": lambda: asyncio.run(kept()),
    }


def roman_ways(path: str, data: NDArray[Any], places: Places, window: int) -> Ways:
    """roman_datamodels, opened for each; the file, an image of Roman, is made first."""
    if not is_installed("roman_datamodels"):
        return {}
    import asdf

    models = import_module("roman_datamodels.datamodels")
    image = models.ImageModel.create_fake_data(shape=data.shape)
    image.data = data.astype(np.float32)
    image.save(f"{path}-packed.asdf")
    with asdf.open(f"{path}-packed.asdf") as file:
        file.write_to(path, all_array_compression=None)

    def opened() -> None:
        for y, x in places:
            with models.open(path) as file:
                np.array(file.data[y : y + window, x : x + window])

    return {"roman_datamodels, opened for each": opened}


def hdf5_ways(path: str, array: str, places: Places, window: int) -> Ways:
    """Hidefix with its index known, which has no cache of chunks; h5coro."""
    ways = h5coro_ways(path, "filedriver.FileDriver", array, places, window)
    if is_installed("hidefix"):
        data = import_module("hidefix").Index(path).dataset(array)
        ways["hidefix, index known"] = partial(read_each, data, places, window)
    return ways


def netcdf_ways(path: str, names: tuple[str, ...], places: Places, window: int) -> Ways:
    """netCDF4 and h5py, opened for each window, and kept open without their caches of chunks.

    Args:
        path: the file.
        names: its array; then its coordinates along y and x, whose parts are read, too.
        places: first row and column of each window.
        window: rows and columns of each.
    """
    import h5py
    from netCDF4 import Dataset

    array, *others = names

    def open_netcdf() -> Any:
        file = Dataset(path)
        file.set_auto_maskandscale(False)
        return file

    def read(file: Any, y: int, x: int) -> None:
        file[array][y : y + window, x : x + window]
        for other, start in zip(others, (y, x), strict=False):
            file[other][start : start + window]

    def opened(open_file: Callable[[], Any]) -> None:
        for y, x in places:
            with open_file() as file:
                read(file, y, x)

    def kept(file: Any) -> None:
        for y, x in places:
            read(file, y, x)

    netcdf = open_netcdf()
    netcdf[array].set_var_chunk_cache(size=0, nelems=1, preemption=0)
    return {
        "netCDF4, opened for each": partial(opened, open_netcdf),
        "netCDF4, kept open": partial(kept, netcdf),
        "h5py, opened for each": partial(opened, partial(h5py.File, path)),
        "h5py, kept open": partial(kept, h5py.File(path, rdcc_nbytes=0)),
    }


def h5coro_ways(file: str, driver: str, array: str, places: Places, window: int) -> Ways:
    """h5coro, which keeps no index: opened for each window.

    Args:
        file: path or URL.
        driver: module and class that read it.
        array: path of the array.
        places: first row and column of each window.
        window: rows and columns of each.
    """
    if not is_installed("h5coro"):
        return {}
    module, name = driver.split(".")
    reader = getattr(import_module(f"h5coro.{module}"), name)
    h5coro = import_module("h5coro.h5coro")

    def opened() -> None:
        for y, x in places:
            part = {"dataset": array, "hyperslice": [(y, y + window), (x, x + window)]}
            h5coro.H5Coro(file, reader, credentials=None).readDatasets([part])[array]

    return {"h5coro, opened for each": opened}


def hdf5_ways_of_server(url: str, array: str, places: Places, window: int) -> Ways:
    """h5coro; kerchunk and VirtualiZarr, with references made before, or for each window."""
    ways = h5coro_ways(url, "webdriver.HTTPDriver", array, places, window)
    if is_installed("kerchunk"):
        open_kerchunk = partial(_open_kerchunk, url, array)
        ways["kerchunk, references known"] = partial(read_each, open_kerchunk(), places, window)
        ways["kerchunk, references made for each"] = partial(
            read_opened, open_kerchunk, places, window
        )
    if is_installed("virtualizarr", "obstore", "obspec_utils"):
        open_virtual = partial(_open_virtualizarr, url, array)
        ways["virtualizarr, manifest known"] = partial(read_each, open_virtual(), places, window)
        ways["virtualizarr, manifest made for each"] = partial(
            read_opened, open_virtual, places, window
        )
    return ways


def _open_kerchunk(url: str, array: str) -> Any:
    import fsspec
    import zarr

    with fsspec.open(url) as stream:
        references = import_module("kerchunk.hdf").SingleHdf5ToZarr(stream, url).translate()
    files = fsspec.filesystem(
        "reference",
        fo=references,
        remote_protocol="http",
        remote_options={"asynchronous": True},
        asynchronous=True,
    )
    store = zarr.storage.FsspecStore(files, read_only=True)
    return zarr.open_group(store, mode="r", zarr_format=2)[array]


def _open_virtualizarr(url: str, array: str) -> Any:
    import zarr

    root, name = url.rsplit("/", 1)
    http = import_module("obstore.store").HTTPStore(root, client_options={"allow_http": True})
    registry = import_module("obspec_utils.registry").ObjectStoreRegistry({root: http})
    store = import_module("virtualizarr.parsers").HDFParser()(f"{root}/{name}", registry)
    return zarr.open_group(store, mode="r")[array]
