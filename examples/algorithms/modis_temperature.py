# /// script
# requires-python = ">=3.11"
# dependencies = ["netCDF4", "numpy", "pyhdf"]
# [tool.swathe.algorithm]
# name = "modis-temperature"
# version = "1.0"
# description = "Mean surface temperature of swaths like MOD11_L2, on a grid"
# inputs.granules.collection = "MOD11_L2"
# inputs.granules.arrays = ["LST", "QC"]
# inputs.granules.count = "1..2016"
# inputs.granules.group = "all"
# outputs.grid = {media_type = "application/netcdf", checks = ["mean", "count"]}
# parameters.degrees = {type = "number", minimum = 0.05, maximum = 10, default = 0.25}
# parameters.worst_quality = {type = "integer", minimum = 0, maximum = 3, default = 1}
# resources = {cpu = 1, memory = "1 GB", wall = "30 min", output = "200 MB"}
# ///
"""Reduce surface temperature of 1 km to a coarse grid: mean and number of good pixels."""

import netCDF4
import numpy as np
from pyhdf.SD import SD

SCALE, NONE, QUALITY_BITS = 0.02, 0, 0b11


def run(granules, grid, degrees, worst_quality):
    """Add the pixels of each granule to their cells, and write means and counts."""
    rows, columns = round(180 / degrees), round(360 / degrees)
    sums, counts = np.zeros(rows * columns), np.zeros(rows * columns, np.int64)
    for granule in granules:
        file = SD(str(granule))
        stored, quality = file.select("LST").get(), file.select("QC").get()
        good = (stored != NONE) & (quality & QUALITY_BITS <= worst_quality)
        cells = cells_of(file, stored.shape, rows, columns)[good]
        file.end()
        sums += np.bincount(cells, stored[good], rows * columns)
        counts += np.bincount(cells, minlength=rows * columns)
        print(f"{granule.id}: {cells.size} pixels")
    with np.errstate(invalid="ignore"):
        means = SCALE * sums / counts
    with netCDF4.Dataset(grid, "w") as file:
        for name, length in (("lat", rows), ("lon", columns)):
            file.createDimension(name, length)
        for name, values, kind in (("mean", means, "f4"), ("count", counts, "i4")):
            array = file.createVariable(name, kind, ("lat", "lon"), zlib=True)
            array[:] = values.reshape(rows, columns)
        file["mean"].units = "K"


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
