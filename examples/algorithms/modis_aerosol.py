# /// script
# requires-python = ">=3.11"
# dependencies = ["netCDF4", "numpy", "pyhdf"]
# [tool.swathe.algorithm]
# name = "modis-aerosol"
# version = "1.0"
# description = "Optical depth of aerosol: mean and spread, of swaths like MOD05_L2, on a grid"
# inputs.granules.collection = "MOD05_L2"
# inputs.granules.arrays = ["Optical_Depth_Land_And_Ocean", "Water_Vapor_Near_Infrared"]
# inputs.granules.count = "1..2016"
# inputs.granules.group = "all"
# outputs.grid.media_type = "application/netcdf"
# outputs.grid.checks = ["depth", "spread", "vapour", "count"]
# parameters.degrees = {type = "number", minimum = 0.05, maximum = 10, default = 0.25}
# resources = {cpu = 1, memory = "1 GB", wall = "30 min", output = "200 MB"}
# ///
"""Reduce aerosol and water vapour of 1 km to a coarse grid: means, and the spread of the depth."""

import netCDF4
import numpy as np
from pyhdf.SD import SD

SCALE, NONE = 0.001, -9999


def run(granules, grid, degrees):
    """Add depth, its square and vapour of each granule to their cells, and write the moments."""
    rows, columns = round(180 / degrees), round(360 / degrees)
    counts = np.zeros(rows * columns, np.int64)
    depths, squares, vapours = (np.zeros(rows * columns) for _ in range(3))
    for granule in granules:
        file = SD(str(granule))
        depth = file.select("Optical_Depth_Land_And_Ocean").get()
        vapour = file.select("Water_Vapor_Near_Infrared").get()
        good = (depth != NONE) & (vapour != NONE)
        cells = cells_of(file, depth.shape, rows, columns)[good]
        file.end()
        values = SCALE * depth[good]
        counts += np.bincount(cells, minlength=rows * columns)
        depths += np.bincount(cells, values, rows * columns)
        squares += np.bincount(cells, values * values, rows * columns)
        vapours += np.bincount(cells, SCALE * vapour[good], rows * columns)
        print(f"{granule.id}: {cells.size} pixels")
    with np.errstate(invalid="ignore"):
        means = depths / counts
        spread = np.sqrt(np.maximum(squares / counts - means * means, 0))
        results = {"depth": means, "spread": spread, "vapour": vapours / counts, "count": counts}
    with netCDF4.Dataset(grid, "w") as file:
        for name, length in (("lat", rows), ("lon", columns)):
            file.createDimension(name, length)
        for name, values in results.items():
            kind = "i4" if name == "count" else "f4"
            array = file.createVariable(name, kind, ("lat", "lon"), zlib=True)
            array[:] = values.reshape(rows, columns)
        file["vapour"].units = "cm"


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
