"""Swaths of five minutes are reduced in memory that does not grow with their number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

SHAPE = (600, 400)
FEW, MANY = 10, 60
MOST_GROWTH_MB = 24
"""Between few granules and many, whose pixels and places take 137 MB more."""
STEP_DEG = 5
CODE = """
import json, sys
import numpy
import swathe

folder, count, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sources = [f"{folder}/{number}.nc" for number in range(count)]
result = swathe.reduce(sources, array="/lst", grid="5deg", statistics=("mean", "count", "max"))
numpy.savez(output, **{name: result[name] for name in ("mean", "count", "max")})
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps(int(status["VmHWM"].split()[0]) / 1024))
"""


def swath(number: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Values, latitudes and longitudes of a granule: a band that crosses the dateline at times."""
    rng = np.random.default_rng(number)
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]] / 20
    lat = rows - 15 + 60 * np.sin(number) + rng.uniform(0, 0.05, SHAPE)
    lon = (columns - 25 * number + rng.uniform(0, 0.05, SHAPE)) % 360 - 180
    return rng.normal(300, 5, SHAPE).astype("f4"), lat.astype("f4"), lon.astype("f4")


def write(path: Path, number: int) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        for name, length in zip("yx", SHAPE, strict=True):
            file.createDimension(name, length)
        for name, values in zip(("lst", "lat", "lon"), swath(number), strict=True):
            file.createVariable(name, "f4", ("y", "x"))[:] = values
        file["lst"].coordinates = "lat lon"


def peak_mb(folder: Path, count: int) -> float:
    """Reduce the first granules in a process of its own; return the most memory it had."""
    words = [sys.executable, "-c", CODE, str(folder), str(count), str(folder / f"{count}.npz")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    return float(json.loads(done.stdout))


def test_many_swaths_take_the_memory_of_few(tmp_path: Path) -> None:
    total, count = np.zeros((2, 180 // STEP_DEG * 360 // STEP_DEG))
    most = np.full(count.shape, -np.inf)
    for number in range(MANY):
        write(tmp_path / f"{number}.nc", number)
        values, lat, lon = (each.astype("f8").ravel() for each in swath(number))
        row, column = (np.floor(each / STEP_DEG).astype(int) for each in (lat + 90, lon + 180))
        cell = row * (360 // STEP_DEG) + column % (360 // STEP_DEG)
        count += np.bincount(cell, minlength=count.size)
        total += np.bincount(cell, values, minlength=count.size)
        np.maximum.at(most, cell, values)
    few, many = peak_mb(tmp_path, FEW), peak_mb(tmp_path, MANY)
    assert many - few < MOST_GROWTH_MB, (few, many)
    result = np.load(tmp_path / f"{MANY}.npz")
    np.testing.assert_array_equal(result["count"].ravel(), count)
    has_values = count > 0
    assert has_values.sum() > 500
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            result["mean"].ravel()[has_values], (total / count)[has_values], rtol=1e-12
        )
    np.testing.assert_array_equal(result["max"].ravel()[has_values], most[has_values])
