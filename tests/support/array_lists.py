"""Lists of windows of arrays: one file for each of some formats, filters and chunks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SIDE, WINDOW = 1024, 100


class Case(NamedTuple):
    """A file with an array of SIDE x SIDE elements of int16 (uint8 for JPEG).

    Attributes:
        name: format, filters and chunks.
        path: the file, or the folder of a Zarr.
        array: path of the array.
    """

    name: str
    path: Path
    array: str

    def targets(self, count: int, seed: int) -> dict[str, Any]:
        """Return a list of windows at random places."""
        rng = np.random.default_rng(seed)
        x, y = (rng.integers(0, SIDE - WINDOW, count).tolist() for _ in range(2))
        same = {"file": str(self.path), "array": self.array, "width": WINDOW, "height": WINDOW}
        return {"x0": x, "y0": y} | {name: [each] * count for name, each in same.items()}


def pixels() -> NDArray[np.int16]:
    """Return a smooth field with noise."""
    rng = np.random.default_rng(7)
    walk = np.cumsum(rng.integers(-3, 4, (SIDE, SIDE)), axis=1)
    return (walk + 1000).astype("<i2")


def write_cases(folder: Path) -> Iterator[Case]:
    """Write the files whose libraries are installed, and yield them."""
    values = pixels()
    if find_spec("h5py") is not None:
        yield from _hdf5(folder, values)
    if find_spec("tifffile") is not None and find_spec("imagecodecs") is not None:
        yield from _tiff(folder, values)
    if find_spec("zarr") is not None:
        yield from _zarr(folder, values)
    if find_spec("asdf") is not None:
        yield from _asdf(folder, values)


def _hdf5(folder: Path, values: NDArray[np.int16]) -> Iterator[Case]:
    import h5py

    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "deflate": {"compression": "gzip"},
        "shuffle+deflate": {"compression": "gzip", "shuffle": True},
        "lzf": {"compression": "lzf"},
        "szip": {"compression": "szip", "compression_opts": ("nn", 16)},
    }
    for (filters, keywords), chunk in zip(options.items(), (64, 64, 256, 128, 128), strict=True):
        path = folder / f"{filters}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=values, chunks=(chunk, chunk), **keywords)
        yield Case(f"HDF5, {filters}, {chunk}", path, "/a")
    path = folder / "made.h5"
    with h5py.File(path, "w") as file:
        file["a"] = values
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource(".", "a", values.shape)
        file.create_virtual_dataset("made", layout)
    yield Case("HDF5, virtual (library)", path, "/made")


def _tiff(folder: Path, values: NDArray[np.int16]) -> Iterator[Case]:
    import tifffile

    for compression, tile in (("zlib", 256), ("zlib", 64), ("lzw", 128), ("zstd", 256)):
        path = folder / f"{compression}-{tile}.tif"
        tifffile.imwrite(path, values, compression=compression, tile=(tile, tile))
        yield Case(f"TIFF, {compression}, {tile}", path, "/0")
    path = folder / "jpeg.tif"
    tifffile.imwrite(path, (values & 255).astype("u1"), compression="jpeg", tile=(256, 256))
    yield Case("TIFF, jpeg (library), 256", path, "/0")


def _zarr(folder: Path, values: NDArray[np.int16]) -> Iterator[Case]:
    import zarr
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    codecs = {"zstd": ZstdCodec(), "gzip": GzipCodec(), "blosc": BloscCodec(cname="lz4")}
    for (name, codec), chunk in zip(codecs.items(), (64, 128, 256), strict=True):
        path = folder / f"{name}.zarr"
        group = zarr.open_group(path, mode="w")
        made = group.create_array(
            "a", shape=values.shape, dtype=values.dtype, chunks=(chunk, chunk), compressors=[codec]
        )
        made[:] = values
        yield Case(f"Zarr, {name}, {chunk}", path, "/a")


def _asdf(folder: Path, values: NDArray[np.int16]) -> Iterator[Case]:
    import asdf

    for compression in (None, "zlib"):
        path = folder / f"{compression}.asdf"
        asdf.AsdfFile({"a": values}).write_to(path, all_array_compression=compression)
        yield Case(f"ASDF, {compression or 'plain'}", path, "/a")
    path = folder / "columns.asdf"
    asdf.AsdfFile({"a": np.asfortranarray(values)}).write_to(path)
    yield Case("ASDF, columns first (library)", path, "/a")
