"""How long a swath takes to become a coarse grid, beside NumPy and pyresample.

    python benches/reduce.py [--smoke] [--turns 7]

A scan of 1354 pixels to both sides of a slanted track, 2030 times, as MODIS has it, becomes mean
and count on cells of 0.25 degree of the globe; 2 % of the pixels are NaN. All is float32. What is
timed is the whole call: cells of pixels, sums, and the arrays of the result. NumPy does the same in
two ways: `exact` has the same cells and fill; `plain` assumes longitudes from -180 to 180 and no
fill, and rounds in float32, so that pixels at edges are in other cells. pyresample is left out if
it is not installed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import options
from swathe.experiments.results.environment_record import cpu_model
from swathe.operations.reduction.reduction import Reduction

STEPS = 4
"""Cells of a degree."""
ROWS, COLUMNS = 180 * STEPS, 360 * STEPS
Array = NDArray[Any]


def swath(lines: int, pixels: int) -> tuple[Array, Array, Array]:
    """Return latitudes, longitudes and values, shape (lines, pixels), float32."""
    earth_km, height_km, heading = 6371.0, 705.0, np.radians(100)
    scan = np.radians(np.linspace(-55, 55, pixels))
    angle = np.arcsin(np.sin(scan) * (earth_km + height_km) / earth_km) - scan
    track = np.linspace(0, 1, lines)[:, None]
    lat0, lon0 = np.radians(10 + 18.2 * track), np.radians(30 - 4 * track)
    lat = np.arcsin(np.sin(lat0) * np.cos(angle) + np.cos(lat0) * np.sin(angle) * np.cos(heading))
    east = np.sin(heading) * np.sin(angle) * np.cos(lat0)
    lon = lon0 + np.arctan2(east, np.cos(angle) - np.sin(lat0) * np.sin(lat))
    values = 290 + 10 * np.sin(20 * lat)
    values[np.random.default_rng(1).random(values.shape) < 0.02] = np.nan
    lat, lon = np.degrees(lat).astype(np.float32), np.degrees(lon).astype(np.float32)
    return lat, lon, values.astype(np.float32)


def swathe_grid(lat: Array, lon: Array, values: Array, threads: int) -> tuple[Array, Array]:
    """Return mean and count by Swathe."""
    reduction = Reduction(f"{1 / STEPS}deg", ("mean", "count"), threads)
    reduction.add(values, lat, lon)
    result = reduction.result()
    return result["mean"], result["count"]


def exact_grid(lat: Array, lon: Array, values: Array) -> tuple[Array, Array]:
    """Return mean and count by NumPy, of the same cells."""
    valid = np.isfinite(values)
    lat, lon, values = lat[valid].astype(float), lon[valid].astype(float), values[valid]
    rows = np.minimum(((lat + 90) * STEPS).astype(np.int32), ROWS - 1)
    lon = np.where(lon >= 180, lon - 360, lon)
    return mean_count(rows * COLUMNS + ((lon + 180) * STEPS).astype(np.int32), values)


def plain_grid(lat: Array, lon: Array, values: Array) -> tuple[Array, Array]:
    """Return mean and count by NumPy, in the fewest passes."""
    rows = ((lat + np.float32(90)) * np.float32(STEPS)).astype(np.int32)
    columns = ((lon + np.float32(180)) * np.float32(STEPS)).astype(np.int32)
    return mean_count((rows * COLUMNS + columns).ravel(), values.ravel())


def mean_count(cells: Array, values: Array) -> tuple[Array, Array]:
    """Return mean and count of cells by `numpy.bincount`."""
    count = np.bincount(cells, minlength=ROWS * COLUMNS)
    total = np.bincount(cells, weights=values, minlength=ROWS * COLUMNS)
    with np.errstate(invalid="ignore"):
        mean = total / count
    return mean.reshape(ROWS, COLUMNS), count.reshape(ROWS, COLUMNS)


def pyresample_grid(lat: Array, lon: Array, values: Array) -> tuple[Array, Array]:
    """Return mean and count by the bucket resampler of pyresample; rows from the north."""
    dask_array: Any = import_module("dask.array")
    from pyresample.bucket import BucketResampler
    from pyresample.geometry import AreaDefinition

    area = AreaDefinition("a", "", "", "EPSG:4326", COLUMNS, ROWS, (-180, -90, 180, 90))
    lon, lat, values = (
        dask_array.from_array(each, chunks=each.shape) for each in (lon, lat, values)
    )
    resampler = BucketResampler(area, lon, lat)
    mean, count = dask_array.compute(resampler.get_average(values), resampler.get_count())
    return mean, count


def medians_ms(calls: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Return the median time of each call. Calls take turns, so that all meet the same load."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns + 1):
        for name, call in calls.items():
            start_s = time.perf_counter()
            call()
            if turn:  # the first ones import
                took[name].append(1e3 * (time.perf_counter() - start_s))
    return {name: statistics.median(times) for name, times in took.items()}


def main() -> None:
    """Check that the results agree, and print the times."""
    parser = options(__doc__)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    shape, turns = ((60, 50), 1) if arguments.smoke else ((2030, 1354), arguments.turns)
    swath_arrays = swath(*shape)
    mean, count = swathe_grid(*swath_arrays, threads=1)
    expected_mean, expected_count = exact_grid(*swath_arrays)
    np.testing.assert_array_equal(count, expected_count)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-12)
    print(f"{shape[0]} x {shape[1]} pixels to {ROWS} x {COLUMNS} cells, {cpu_model()}")
    print("| what | median | beside Swathe |")
    print("|---|---|---|")
    calls: dict[str, Callable[[], Any]] = {
        "Swathe, 1 thread": lambda: swathe_grid(*swath_arrays, threads=1),
        "Swathe, 2 threads": lambda: swathe_grid(*swath_arrays, threads=2),
        "NumPy, exact": lambda: exact_grid(*swath_arrays),
        "NumPy, plain": lambda: plain_grid(*swath_arrays),
    }
    if find_spec("pyresample") and find_spec("dask"):
        calls["pyresample, BucketResampler"] = lambda: pyresample_grid(*swath_arrays)
    times = medians_ms(calls, turns)
    for name, took_ms in times.items():
        print(f"| {name} | {took_ms:.1f} ms | {took_ms / times['Swathe, 1 thread']:.2f} |")
    print(f"load of the last minute: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
