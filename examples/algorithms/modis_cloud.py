# /// script
# requires-python = ">=3.11"
# dependencies = ["netCDF4", "numpy", "pyhdf"]
# [tool.swathe.algorithm]
# name = "modis-cloud"
# version = "1.0"
# description = "Cloud cover and mean temperature of cloud tops of swaths like MOD06_L2, on a grid"
# inputs.granules.collection = "MOD06_L2"
# inputs.granules.arrays = ["Cloud_Fraction", "Cloud_Top_Temperature"]
# inputs.granules.count = "1..2016"
# inputs.granules.group = "all"
# outputs.grid = {media_type = "application/netcdf", checks = ["cover", "top", "count"]}
# parameters.degrees = {type = "number", minimum = 0.05, maximum = 10, default = 0.25}
# resources = {cpu = 1, memory = "1 GB", wall = "30 min", output = "200 MB"}
# ///
"""Reduce clouds of 1 km to a coarse grid: their cover, and the mean of their tops by cover."""

import netCDF4
import numpy as np
from pyhdf.SD import SD

SCALE, NONE = 0.01, -9999


def run(granules, grid, degrees):
    """Add cover, and tops weighted by it, of each granule; write the means of the cells."""
    rows, columns = round(180 / degrees), round(360 / degrees)
    counts = np.zeros(rows * columns, np.int64)
    covers, tops = np.zeros(rows * columns), np.zeros(rows * columns)
    for granule in granules:
        file = SD(str(granule))
        cover, top = (file.select(n).get() for n in ("Cloud_Fraction", "Cloud_Top_Temperature"))
        good = (cover != NONE) & (top != NONE)
        cells = cells_of(file, cover.shape, rows, columns)[good]
        file.end()
        weight = SCALE * cover[good]
        counts += np.bincount(cells, minlength=rows * columns)
        covers += np.bincount(cells, weight, rows * columns)
        tops += np.bincount(cells, weight * (SCALE * top[good]), rows * columns)
        print(f"{granule.id}: {cells.size} pixels")
    with np.errstate(invalid="ignore"):
        means = {"cover": covers / counts, "top": tops / covers, "count": counts}
    with netCDF4.Dataset(grid, "w") as file:
        for name, length in (("lat", rows), ("lon", columns)):
            file.createDimension(name, length)
        for name, values in means.items():
            kind = "i4" if name == "count" else "f4"
            array = file.createVariable(name, kind, ("lat", "lon"), zlib=True)
            array[:] = values.reshape(rows, columns)
        file["top"].units = "K"


def cells_of(file, shape, rows, columns):
    """Return the cell of each pixel; that of the nearest place, which every fifth pixel has."""
    latitude, longitude = file.select("Latitude").get(), file.select("Longitude").get()
    row = np.clip(np.floor((latitude + 90) * rows / 180), 0, rows - 1)
    column = np.floor((longitude + 180) % 360 * columns / 360) % columns
    nearest = [
        np.minimum(np.arange(pixels) // 5, places - 1)
        for pixels, places in zip(shape, latitude.shape, strict=True)
    ]
    return (row * columns + column).astype(np.int64)[np.ix_(*nearest)]
