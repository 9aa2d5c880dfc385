"""Bin granules into the cells of a grid."""

from __future__ import annotations

import glob
import mmap
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.errors import NotFoundError, OptionError, RegionError
from swathe.operations.reduction.cell_statistics import (
    DEFAULTS,
    MOST_VALUES,
    names_of_statistics,
)
from swathe.operations.reduction.condition import Condition
from swathe.operations.reduction.grid_result import COUNTS, GridResult
from swathe.operations.reduction.grid_spec import GridSpec
from swathe.operations.reduction.pixels import Pixels
from swathe.operations.reduction.swath import pixels_of, swath_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

LEAST_MAPPING_BYTES = 4 << 20
"""Bytes of an array for which NumPy asks for large pages."""


class Reduction:
    """A grid that fills with granules; memory is bounded by the grid and one granule.

    Attributes:
        grid: the grid.
        statistics: names of the statistics.
    """

    def __init__(
        self, grid: str | GridSpec, statistics: Sequence[str], threads: int | None = None
    ) -> None:
        """Begin with empty cells.

        Raises:
            OptionError: If the grid or a statistic is unknown.
            LimitError: If the grid has more than 2^27 cells.
        """
        self.grid = GridSpec.of(grid)
        self.statistics = names_of_statistics(statistics)
        self._threads = threads or os.cpu_count() or 1
        self._native = _swathe.Reduction(
            self.grid.kind,
            self.grid.steps,
            self.grid.bounds,
            std="std" in self.statistics,
            extremes=bool({"min", "max"} & set(self.statistics)),
            mode="mode" in self.statistics,
        )

    def add(
        self, data: Any, latitude: Any, longitude: Any, where: NDArray[np.bool_] | None = None
    ) -> None:
        """Add values, each to the cell of its place.

        Args:
            data: numbers of any shape; masked elements and values that are not finite are fill.
            latitude: degrees, of a shape that broadcasts to that of `data`; masked or NaN elements
                have no place.
            longitude: degrees, in the same way.
            where: values that are taken; others count as fill. All by default.

        Raises:
            RegionError: If a latitude lies beyond a pole, a longitude is infinite, or shapes
                differ.
            OptionError: If values are no real numbers, or have no mode.
        """
        self.add_pixels(Pixels.of(data, latitude, longitude, where))

    def add_pixels(self, pixels: Pixels) -> None:
        """Add the pixels of a granule, all or, after an error, none.

        Raises:
            RegionError: If a latitude lies beyond a pole, or a longitude is infinite.
            OptionError: If values have no mode.
        """
        _check_kind(pixels, self.statistics)
        self._native.add(*pixels.flat(), self._threads)

    def merge(self, other: Reduction) -> None:
        """Add the cells of another reduction of the same grid and statistics.

        Raises:
            OptionError: If grid or statistics differ.
        """
        self._native.merge(other._native)

    def result(self, attrs: dict[str, Any] | None = None, where: str | None = None) -> GridResult:
        """Return the statistics of all cells.

        Args:
            attrs: attributes of the values.
            where: condition on the pixels that were added.
        """
        edges = self._native.edges()
        rows, columns = (None, None) if edges is None else map(np.array, edges)
        names = dict.fromkeys((*self.statistics, *COUNTS))
        data = {}
        for name in names:
            cells, is_count = self._native.cells, name in COUNTS
            out: NDArray[Any] = _zeros(cells) if is_count else np.full(cells, np.nan)
            self._native.write(name, out)
            if rows is not None and columns is not None:
                out = out.reshape(len(rows) - 1, len(columns) - 1)
            data[name] = out
        latitudes = None
        if self.grid.kind == "gaussian":
            latitudes = np.array(_swathe.gaussian_latitudes(int(self.grid.steps[0])))
        attributes = dict(attrs or {}) | ({} if where is None else {"where": where})
        return GridResult(
            self.grid, data, rows, columns, latitudes, self._native.outside, attributes
        )


def _zeros(cells: int) -> NDArray[np.int64]:
    """Return zeros. Pages of them take memory and time when they are written.

    NumPy asks the system for pages of 2 MiB, and granules lie in some cells of all of these.
    """
    if cells * 8 < LEAST_MAPPING_BYTES:
        return np.zeros(cells, np.int64)
    pages = mmap.mmap(-1, cells * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.int64)


def check_pixels(pixels: Pixels, statistics: Sequence[str]) -> None:
    """Check that the pixels of a granule can be added to an empty grid, without binning them.

    Raises:
        RegionError: If a latitude lies beyond a pole, or a longitude is infinite.
        OptionError: If values have no mode.
    """
    pixels.check_places()
    _check_kind(pixels, statistics)
    if "mode" in statistics:
        valid = pixels.values if pixels.flags is None else pixels.values[pixels.flags > 0]
        if len(np.unique(valid)) > MOST_VALUES:
            raise OptionError(f"mode: expected at most {MOST_VALUES} values, found more")


def _check_kind(pixels: Pixels, statistics: Sequence[str]) -> None:
    if "mode" in statistics and pixels.values.dtype.kind == "f":
        raise OptionError(f"mode: expected integers, found {pixels.values.dtype}")


def reduce(
    sources: Any,
    *,
    grid: str | GridSpec,
    statistics: Sequence[str] = DEFAULTS,
    array: str | None = None,
    where: str | None = None,
    threads: int | None = None,
) -> GridResult:
    """Reduce swaths and grids to a coarser grid.

    Each pixel counts in the cell of its centre. A cell holds [south, north) x [west, east). Values
    are masked and scaled by the CF conventions first. One granule is in memory at a time.

    Args:
        sources: path, URL or pattern (`day/*.nc`), an object with `data`, `latitude` and
            `longitude` (such as `Swath`), or several of them.
        grid: `0.25deg`, `0.5x0.25deg` (latitude x longitude), `N80` (Gaussian), `healpix64`
            (nested), `healpix64-ring`, or a `GridSpec`.
        statistics: some of mean, count, std, min, max and mode (of integers of at most 256 values).
        array: path of the variable in each file, or its last name if no other array has it; by
            default the only one with two axes or more.
        where: condition on arrays of the same file, such as `qa & 3 == 0`; other pixels are fill.
        threads: threads that find cells; by default one for each core. Results do not depend on it.

    Returns:
        The statistics of each cell. `pixels` counts all pixels in a cell, `count` the valid ones.

    Raises:
        OptionError: If grid, statistics or condition are invalid.
        LimitError: If the grid has more than 2^27 cells.
        NotFoundError: If a pattern matches nothing.
        NoSuchArrayError: If a file lacks the array, its coordinates, or one of the condition.
        RegionError: If coordinates lie on no globe.
    """
    condition = None if where is None else Condition(where)
    reduction = Reduction(grid, statistics, threads)
    attrs: dict[str, Any] = {}
    urls: list[str] = []
    bytes_moved = requests = 0

    def count(traffic: Mapping[str, Any]) -> None:
        nonlocal bytes_moved, requests
        bytes_moved += traffic["bytes_moved"]
        requests += traffic["requests"]

    is_empty = True
    for source in _each(sources):
        is_file = isinstance(source, str | os.PathLike)
        swath = swath_of(source, array, condition, count) if is_file else source
        pixels = pixels_of(swath, condition)
        url = getattr(swath, "url", None)
        try:
            reduction.add_pixels(pixels)
        except (OptionError, RegionError) as error:
            if url is None:
                raise
            raise type(error)(f"{url}: {error}") from None
        is_empty = False
        attrs = attrs or pixels.attrs
        urls += [] if url is None else [url]
    if is_empty:
        raise OptionError("sources: expected at least one, found none")
    result = reduction.result(attrs, where)
    return replace(result, sources=tuple(urls), bytes_moved=bytes_moved, requests=requests)


def _each(sources: Any) -> Iterator[Any]:
    single = isinstance(sources, str | os.PathLike) or hasattr(sources, "latitude")
    several: Iterable[Any] = [sources] if single else sources
    for source in several:
        is_pattern = isinstance(source, str) and "://" not in source and not os.path.exists(source)
        if not (is_pattern and glob.has_magic(source)):
            yield source
            continue
        paths = sorted(glob.glob(source, recursive=True))
        if not paths:
            raise NotFoundError(f"{source}: expected files that match, found none")
        yield from paths
