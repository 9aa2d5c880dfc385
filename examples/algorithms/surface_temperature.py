# /// script
# requires-python = ">=3.11"
# dependencies = ["netCDF4", "numpy"]
# [tool.swathe.algorithm]
# name = "surface-temperature"
# version = "1.0"
# description = "Mean surface temperature of a day on a grid"
# inputs.granules = {arrays = ["sea_surface_temperature"], count = "1..288", group = "day"}
# outputs.grid = {media_type = "application/netcdf", checks = ["mean", "count"]}
# outputs.log = {media_type = "text/csv", optional = true}
# parameters.least_kelvin = {type = "number", minimum = 0, maximum = 400, default = 271.15}
# parameters.degrees = {type = "number", minimum = 0.1, maximum = 10, default = 0.25}
# resources = {cpu = 1, memory = "1 GB", wall = "10 min", output = "200 MB"}
# ///
"""Reduce swaths of surface temperature (GHRSST L2P) to a grid: the mean of each cell."""

import netCDF4
import numpy as np


def run(granules, grid, log, least_kelvin, degrees):
    """Add the pixels of each granule to their cells, and write means and counts."""
    rows, columns = round(180 / degrees), round(360 / degrees)
    sums, counts = np.zeros(rows * columns), np.zeros(rows * columns, np.int64)
    with log.open("w") as lines:
        print("granule,pixels", file=lines)
        for granule in granules:
            latitude, longitude, values = read(granule, least_kelvin)
            row = np.clip(np.floor((latitude + 90) / degrees), 0, rows - 1)
            column = np.floor((longitude + 180) % 360 / degrees)
            cells = (row * columns + column).astype(np.int64)
            sums += np.bincount(cells, values, rows * columns)
            counts += np.bincount(cells, minlength=rows * columns)
            print(f"{granule.id},{values.size}", file=lines)
    with np.errstate(invalid="ignore"):
        means = (sums / counts).astype(np.float32)
    write(grid, means.reshape(rows, columns), counts.reshape(rows, columns), degrees)


def read(granule, least_kelvin):
    """Return latitudes, longitudes and values of the pixels that are no ice and no cloud."""
    with netCDF4.Dataset(granule) as file:
        values = file["sea_surface_temperature"][0]
        latitude, longitude = file["lat"][:], file["lon"][:]
    good = np.ma.filled(values >= least_kelvin, False)
    good &= ~np.ma.getmaskarray(latitude) & ~np.ma.getmaskarray(longitude)
    parts = (latitude, longitude, values)
    return tuple(np.asarray(part[good], np.float64) for part in parts)


def write(path, means, counts, degrees):
    """Write means and counts, the south first."""
    with netCDF4.Dataset(path, "w") as file:
        for name, start, length in (("lat", -90, means.shape[0]), ("lon", -180, means.shape[1])):
            file.createDimension(name, length)
            centres = file.createVariable(name, "f8", (name,))
            centres[:] = start + (np.arange(length) + 0.5) * degrees
        mean = file.createVariable(
            "mean", "f4", ("lat", "lon"), zlib=True, shuffle=True, fill_value=np.nan
        )
        mean.units = "kelvin"
        mean[:] = means
        count = file.createVariable("count", "i4", ("lat", "lon"), zlib=True, shuffle=True)
        count[:] = counts
