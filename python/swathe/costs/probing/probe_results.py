"""Measure the time to make results: of images, and of arrays (NetCDF, HDF5, TIFF and ASDF)."""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import OptionError
from swathe.core.sample_frame import draw, fits_bytes, header
from swathe.costs.format_costs import IMAGE_FORMATS
from swathe.files.array_cutout import cut_region
from swathe.files.array_file import ArrayFile
from swathe.files.array_outputs import saving
from swathe.files.array_region import region_of
from swathe.files.conversion import convert, digest_of, read_cutout
from swathe.files.file import open_any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

FORMATS = ("nc", "h5", "tif", "asdf")
SMALL, LARGE = 16, 256
"""Sides of small and large results, in elements."""
RUNS = 9
"""Number of results made of each format and size."""


def measure_formats(folder: Path) -> dict[str, dict[str, float]]:
    """Return what `FormatCosts` has, by format, of results of images and of arrays."""
    images = {name: _costs(partial(_image_maker, folder, name)) for name in IMAGE_FORMATS}
    return images | measure_array_formats(folder)


def measure_array_formats(folder: Path) -> dict[str, dict[str, float]]:
    """Return what `FormatCosts` has, by format; a format whose library is missing is left out."""
    source = folder / "array.nc"
    _write_source(source)
    file = open_any(source)
    assert isinstance(file, ArrayFile)
    costs = {}
    for name in FORMATS:
        try:
            costs[name] = _costs(partial(_array_maker, file, folder, name))
        except OptionError:  # an extra that is not installed: nobody makes such results here
            continue
    return costs


def _costs(maker: Callable[[int], Callable[[], None]]) -> dict[str, float]:
    """Return the time of each result, and of each of its pixels.

    Args:
        maker: function that returns what makes and writes a result of a side.
    """
    seconds: dict[int, float] = {}
    for side in (SMALL, LARGE):
        make, times_s = maker(side), []
        for _ in range(1 + RUNS):  # the first one imports what it needs
            began_s = time.perf_counter()
            make()
            times_s.append(time.perf_counter() - began_s)
        # Work of others makes some of them longer, and none of them shorter.
        seconds[side] = min(times_s[1:])
    pixel_s = max(seconds[LARGE] - seconds[SMALL], 1e-9) / (LARGE**2 - SMALL**2)
    return {"row_s": max(seconds[SMALL] - SMALL**2 * pixel_s, 1e-6), "pixel_s": pixel_s}


def _image_maker(folder: Path, suffix: str, side: int) -> Callable[[], None]:
    """Return what converts a cutout of FITS."""
    from astropy.io import fits

    cut, result = folder / f"{side}.fits", folder / f"{side}.{suffix}"
    cut.write_bytes(fits_bytes([fits.PrimaryHDU(draw(1, 1)[:side, :side], header(1, 1))]))

    def make() -> None:
        _finish(convert(read_cutout(cut), result), result)

    return make


def _array_maker(file: ArrayFile, folder: Path, suffix: str, side: int) -> Callable[[], None]:
    """Return what makes a result of the elements that the engine cut."""
    cut, result = folder / f"{side}.npy", folder / f"array-{side}.{suffix}"
    np.save(cut, file["values"][:side, :side])

    def make() -> None:
        array, into = file.array("/values"), BytesIO()
        region = region_of(array, box=(0, 0, side, side))
        elements = np.load(cut, allow_pickle=False)
        saving(cut_region(file, array, region, elements=elements), result)(into)
        _finish(into.getvalue(), result)

    return make


def _finish(content: bytes, result: Path) -> None:
    digest_of(content)
    result.write_bytes(content)


def _write_source(path: Path) -> None:
    """Write a grid with longitudes and latitudes: HDF5, or NetCDF classic without h5py."""
    degrees = np.linspace(0, 50, LARGE)
    coordinates = {"lat": (degrees, "degrees_north"), "lon": (degrees, "degrees_east")}
    elements = draw(1, 1)[:LARGE, :LARGE].astype("i2")
    if find_spec("h5py") is None:
        _write_classic(path, coordinates, elements)
        return
    import h5py

    with h5py.File(path, "w") as file:
        values = file.create_dataset("values", data=elements)
        for axis, (name, (numbers, units)) in enumerate(coordinates.items()):
            file[name] = numbers
            file[name].attrs["units"] = units
            file[name].make_scale(name)
            values.dims[axis].attach_scale(file[name])


def _write_classic(
    path: Path, coordinates: dict[str, tuple[NDArray[np.float64], str]], elements: NDArray[np.int16]
) -> None:
    from scipy.io import netcdf_file  # type: ignore[import-untyped]

    with netcdf_file(path, "w", version=2) as file:
        for name, (numbers, units) in coordinates.items():
            file.createDimension(name, LARGE)
            coordinate = file.createVariable(name, "f8", (name,))
            coordinate[:], coordinate.units = numbers, units
        file.createVariable("values", "i2", ("lat", "lon"))[:] = elements
