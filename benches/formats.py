"""Windows of 100 x 100 from HDF5, NetCDF4, GeoTIFF, ASDF and Zarr, beside their libraries.

    python benches/formats.py [--only windows --only tiff ...] [--repeats N]

Parts: `windows` (chunked, deflated HDF5 on disk, chunks of 100, 256 and 512, on one and two
threads; h5py opened for each cut, and kept open without its cache of chunks), `netcdf` (the same
chunks in NetCDF4 that netCDF4-python wrote, alone and with coordinates, on one thread; netCDF4 and
h5py, both ways), `tiff` (a tiled, deflated GeoTIFF; rasterio), `asdf` (an uncompressed array of
4,096 x 4,096; asdf), `zarr` (a folder of version 3, zstd; zarr-python opened for each cut, and kept
open), `index` (the index of a file of 100,000 chunks), `remote` and `remote_zarr` (nginx behind
56 ms and 160 Mb/s; h5py over fsspec, zarr-python). Other peers are those of `format_peers.py` that
are installed. Decoded chunks are not cached by either side, indexes are known unless the line says
otherwise.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import swathe
from format_peers import (
    hdf5_ways,
    hdf5_ways_of_server,
    netcdf_ways,
    roman_ways,
    tiff_ways,
    zarr_ways,
)
from harness import options, save, survey
from links import FOLDER, Link, probe, reach, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Places = Iterable[tuple[int, int]]

SIDE, WINDOW = 4096, 100
CHUNKS = (100, 256, 512)
MANY_CHUNKS = 100_000
LINK = Link("nginx", 56, shared=20_000_000)
PARTS = ("windows", "netcdf", "tiff", "asdf", "zarr", "index", "remote", "remote_zarr")


def main() -> None:
    """Run the parts, and print the microseconds of a window in each way."""
    parser = options(__doc__, PARTS)
    parser.add_argument("--repeats", type=int, default=5, help="series in each way (5)")
    parser.add_argument("--windows", type=int, default=200, help="windows of a series (200)")
    args = parser.parse_args()
    if args.smoke:
        args.repeats, args.windows = 1, 5
    side = 1024 if args.smoke else SIDE
    results = {}
    with work():
        for part in args.only or PARTS:
            measure = globals()[f"measure_{part}"]
            results[part] = measure(side, args)
    save("formats", results)


def pixels(side: int) -> NDArray[np.int16]:
    """Counts of a detector: noise around 1,000, so that they deflate to about half."""
    noise = np.random.default_rng(7).normal(1000, 30, (side, side))
    return noise.astype(np.int16)


def corners(count: int, side: int) -> list[tuple[int, int]]:
    """First row and column of each window."""
    draw = random.Random(count)
    last = side - WINDOW
    return [(draw.randrange(last), draw.randrange(last)) for _ in range(count)]


def compare(name: str, ways: dict[str, Callable[[], Any]], windows: int, repeats: int) -> Any:
    """Time each way in turns; print the median of a window, and how many times ours it is."""
    figures: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, run in ways.items():
            began = time.perf_counter()
            run()
            figures[way].append((time.perf_counter() - began) / windows * 1e6)
    medians = {way: statistics.median(each) for way, each in figures.items()}
    ours = next(iter(medians.values()))
    for way, median in medians.items():
        low, high = min(figures[way]), max(figures[way])
        print(f"{name:24} {way:26} {median:10.0f} us ({low:.0f} to {high:.0f})  "
              f"{median / ours:5.2f} of ours")  # fmt: skip
    return medians


def swathe_windows(path: str, array: str, places: Places) -> None:
    """Read windows as a user does; each call finds the file anew."""
    for y, x in places:
        _ = swathe.cut(path, array=array, box=(x, y, WINDOW, WINDOW)).data


def in_threads(pool: ThreadPoolExecutor, read: Callable[[Places], None], places: Places) -> None:
    """Read windows in two threads; each takes the next one that none has taken."""
    rest = iter(places)
    list(pool.map(read, [rest, rest]))


def measure_windows(side: int, args: Any) -> Any:
    """Windows from chunked, deflated HDF5 on disk."""
    import h5py

    data, places, results = pixels(side), corners(args.windows, side), {}
    for chunk in CHUNKS:
        path = str(FOLDER / f"chunks-{chunk}.h5")
        with h5py.File(path, "w") as file:
            file.create_dataset(
                "a", data=data, chunks=(chunk, chunk), compression="gzip", shuffle=True
            )

        def opened(path: str = path) -> None:
            for y, x in places:
                with h5py.File(path) as file:
                    file["a"][y : y + WINDOW, x : x + WINDOW]

        kept_file = h5py.File(path, rdcc_nbytes=0)

        def kept(some: Places, file: Any = kept_file) -> None:
            for y, x in some:
                file["a"][y : y + WINDOW, x : x + WINDOW]

        ours = partial(swathe_windows, path, "/a")
        y, x = places[0]
        got = swathe.open(path)["/a"][y : y + WINDOW, x : x + WINDOW]
        assert (got == data[y : y + WINDOW, x : x + WINDOW]).all()
        with kept_file, ThreadPoolExecutor(2) as pool:
            ways: dict[str, Callable[[], Any]] = {
                "swathe": partial(ours, places),
                "h5py, opened for each": opened,
                "h5py, kept open": partial(kept, places),
                "swathe, 2 threads": partial(in_threads, pool, ours, places),
                "h5py, kept, 2 threads": partial(in_threads, pool, kept, places),
                **hdf5_ways(path, "a", places, WINDOW),
            }
            name = f"HDF5, chunks of {chunk}"
            results[name] = compare(name, ways, len(places), args.repeats)
    return results


def measure_netcdf(side: int, args: Any) -> Any:
    """Windows from chunked, deflated NetCDF4; with coordinates, theirs are read, too."""
    data, places, results = pixels(side), corners(args.windows, side), {}
    cases = [(chunk, False) for chunk in CHUNKS] + [(CHUNKS[1], True)]
    for chunk, has_coordinates in cases:
        name = f"NetCDF4, {chunk}, y and x" if has_coordinates else f"NetCDF4, chunks of {chunk}"
        path = str(FOLDER / f"{name}.nc")
        make_netcdf(path, data, chunk, has_coordinates)
        names = ("a", "y", "x") if has_coordinates else ("a",)
        y, x = places[0]
        cut: Any = swathe.cut(path, array="a", box=(x, y, WINDOW, WINDOW))
        assert (cut.data == data[y : y + WINDOW, x : x + WINDOW]).all()
        assert set(cut.coords) == {*names[1:]}
        ways: dict[str, Callable[[], Any]] = {
            "swathe": partial(swathe_windows, path, "/a", places),
            **netcdf_ways(path, names, places, WINDOW),
        }
        results[name] = compare(name, ways, len(places), args.repeats)
    return results


def make_netcdf(path: str, data: NDArray[np.int16], chunk: int, has_coordinates: bool) -> None:
    """Write NetCDF4 with square chunks, shuffled and deflated."""
    from netCDF4 import Dataset

    with Dataset(path, "w") as file:
        for name, length in zip("yx", data.shape, strict=True):
            file.createDimension(name, length)
            if has_coordinates:
                file.createVariable(name, "f8", (name,))[:] = np.arange(length) / 10
        options: dict[str, Any] = {"zlib": True, "shuffle": True, "chunksizes": (chunk, chunk)}
        file.createVariable("a", "i2", ("y", "x"), **options)[:] = data


def measure_tiff(side: int, args: Any) -> Any:
    """Windows from a tiled, deflated GeoTIFF."""
    import rasterio
    from rasterio.windows import Window

    data, places, path = pixels(side), corners(args.windows, side), str(FOLDER / "tiles.tif")
    profile = {"driver": "GTiff", "width": side, "height": side, "count": 1, "dtype": "int16"}
    tiles = {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "deflate"}
    with rasterio.open(path, "w", predictor=2, **profile, **tiles) as file:
        file.write(data, 1)

    def opened() -> None:
        for y, x in places:
            with rasterio.open(path) as file:
                file.read(1, window=Window(x, y, WINDOW, WINDOW))

    def kept() -> None:
        with rasterio.Env(GDAL_CACHEMAX=0), rasterio.open(path) as file:
            for y, x in places:
                file.read(1, window=Window(x, y, WINDOW, WINDOW))

    ways: dict[str, Callable[[], Any]] = {
        "swathe": partial(swathe_windows, path, "/0", places),
        "rasterio, opened for each": opened,
        "rasterio, kept open": kept,
        **tiff_ways(path, 256, places, WINDOW),
    }
    return compare("GeoTIFF, tiles of 256", ways, len(places), args.repeats)


def measure_asdf(side: int, args: Any) -> Any:
    """Windows from an uncompressed array of ASDF."""
    import asdf

    data, places, path = pixels(side), corners(args.windows, side), str(FOLDER / "a.asdf")
    asdf.AsdfFile({"roman": {"data": data}}).write_to(path)

    def opened() -> None:
        for y, x in places:
            with asdf.open(path, lazy_load=True) as file:
                np.array(file["roman"]["data"][y : y + WINDOW, x : x + WINDOW])

    ours = partial(swathe_windows, path, "/roman/data", places)
    ways: dict[str, Callable[[], Any]] = {"swathe": ours, "asdf, opened for each": opened}
    results = {"asdf": compare("ASDF, not compressed", ways, len(places), args.repeats)}
    image = str(FOLDER / "roman.asdf")
    if peers := roman_ways(image, data, places, WINDOW):
        ways = {"swathe": partial(swathe_windows, image, "/roman/data", places), **peers}
        results["roman"] = compare("Roman image, plain", ways, len(places), args.repeats)
    return results


def measure_zarr(side: int, args: Any) -> Any:
    """Windows from chunked Zarr on disk."""
    data, places, results = pixels(side), corners(args.windows, side), {}
    for chunk in CHUNKS:
        path = str(FOLDER / f"chunks-{chunk}.zarr")
        make_zarr(path, data, chunk)
        ours = partial(swathe_windows, path, "/", places)
        ways: dict[str, Callable[[], Any]] = {"swathe": ours}
        ways |= zarr_ways(path, places, WINDOW)
        name = f"Zarr, chunks of {chunk}"
        results[name] = compare(name, ways, len(places), args.repeats)
    return results


def make_zarr(path: str, data: NDArray[np.int16], chunk: int) -> None:
    """Write a folder of version 3 with square chunks, zstd."""
    import zarr
    from zarr.codecs import ZstdCodec

    codec = ZstdCodec(level=3)
    options: dict[str, Any] = {"chunks": (chunk, chunk), "dtype": "i2", "compressors": codec}
    zarr.create_array(path, shape=data.shape, **options)[...] = data


def measure_index(_: int, args: Any) -> Any:
    """Time and size of the index of a file of many chunks."""
    import h5py

    path, count = FOLDER / "many.h5", 1000 if args.smoke else MANY_CHUNKS
    chunk_bytes = 10_000
    with h5py.File(path, "w") as file:
        shape = (count, chunk_bytes // 2)
        data = file.create_dataset("a", shape, "i2", chunks=(1, shape[1]), compression="gzip")
        raw = np.random.default_rng(3).bytes(chunk_bytes)
        for number in range(count):
            data.id.write_direct_chunk((number, 0), raw, filter_mask=1)
    figures = []
    for _repeat in range(args.repeats):
        shutil.rmtree(FOLDER / "index", ignore_errors=True)
        # Another name, so that it is not the file opened before.
        other = path.rename(path.with_name(f"many-{_repeat}.h5"))
        began = time.perf_counter()
        swathe.open(str(other))
        figures.append(time.perf_counter() - began)
        path = other
    size = sum(each.stat().st_size for each in (FOLDER / "index").rglob("*") if each.is_file())
    seconds, share = statistics.median(figures), size / path.stat().st_size
    low, high = min(figures), max(figures)
    print(f"index of {count:,} chunks   {seconds:.2f} s ({low:.2f} to {high:.2f}), {size:,} bytes, "
          f"{share:.3%} of the file")  # fmt: skip
    return {"seconds": seconds, "bytes": size, "share": share}


def measure_remote(side: int, args: Any) -> Any:
    """Windows from a server 56 ms away: index known, and not."""
    import fsspec
    import h5py

    places, files = corners(args.windows, side)[: 3 if args.smoke else 20], FOLDER / "served"
    files.mkdir()
    with h5py.File(files / "a.h5", "w") as file:
        file.create_dataset(
            "a", data=pixels(side), chunks=(256, 256), compression="gzip", shuffle=True
        )
    shutil.copy(survey(2) / "frame-000001.fit", files)  # for the probe
    with reach(LINK, files) as proxy:
        probe(LINK)
        name, url = f"{LINK.id}:a.h5", f"{proxy.url}/a.h5"

        def unknown() -> None:
            for y, x in places:
                shutil.rmtree(FOLDER / "index", ignore_errors=True)
                _ = swathe.cut(name, array="/a", box=(x, y, WINDOW, WINDOW)).data

        def over_fsspec() -> None:
            for y, x in places:
                with fsspec.open(url, block_size=1 << 16) as stream, h5py.File(stream) as file:
                    file["a"][y : y + WINDOW, x : x + WINDOW]

        ways: dict[str, Callable[[], Any]] = {
            "swathe": partial(swathe_windows, name, "/a", places),
            "swathe, index not known": unknown,
            "h5py over fsspec": over_fsspec,
            **hdf5_ways_of_server(url, "a", places, WINDOW),
        }
        return compare(LINK.name, ways, len(places), args.repeats)


def measure_remote_zarr(side: int, args: Any) -> Any:
    """Windows of a folder of a server 56 ms away that lists it; the index is known."""
    places, files = corners(args.windows, side)[: 3 if args.smoke else 20], FOLDER / "folders"
    files.mkdir()
    make_zarr(str(files / "a.zarr"), pixels(side), 256)
    shutil.copy(survey(2) / "frame-000001.fit", files)  # for the probe
    with reach(LINK, files) as proxy:
        probe(LINK)
        ours = partial(swathe_windows, f"{LINK.id}:json/a.zarr", "/", places)
        ways: dict[str, Callable[[], Any]] = {"swathe": ours}
        ways |= zarr_ways(f"{proxy.url}/json/a.zarr", places, WINDOW)
        return compare(f"Zarr, {LINK.name}", ways, len(places), args.repeats)


if __name__ == "__main__":
    main()
