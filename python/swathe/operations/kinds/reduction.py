"""Reduce the granules of each group to a coarser grid, as `swathe.reduce` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError
from swathe.operations.operation import OperationOption, ReducingOperation, ResultFormat
from swathe.operations.reduction.cell_statistics import DEFAULTS_TEXT, STATISTICS_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile
    from swathe.operations.reduction.condition import Condition

CELL_BYTES = 8
"""Bytes of a statistic of a cell in a result."""


def _check_grid(text: str) -> None:
    from swathe.operations.reduction.reduction import Reduction

    Reduction(text, ("mean",))


def _check_statistics(text: str) -> None:
    from swathe.operations.reduction.cell_statistics import names_of_statistics

    names_of_statistics(text)


def _condition(text: str) -> Condition | None:
    from swathe.operations.reduction.condition import Condition

    return Condition(text) if text else None


class ReduceOperation(ReducingOperation):
    """One grid of all granules, or of each group."""

    name = "reduce"
    title = "Reduce granules to a grid"
    formats = (
        ResultFormat(
            "nc",
            "NetCDF, of arrays",
            "a grid",
            ".nc",
            "application/x-netcdf",
            0.1,
            0.1,
            pixel_bytes=CELL_BYTES,
        ),
    )
    options = (
        OperationOption(
            "grid",
            "Grid",
            "Grid of the result, such as 0.25deg (default), N80 or healpix64",
            (),
            "0.25deg",
            _check_grid,
        ),
        OperationOption(
            "statistics",
            "Statistics",
            f"Statistics of a cell, separated by commas: {STATISTICS_TEXT}; "
            f"{DEFAULTS_TEXT} by default",
            (),
            DEFAULTS_TEXT,
            _check_statistics,
        ),
        OperationOption(
            "where",
            "Condition",
            "Condition on arrays of the same file, as 'qa & 3 == 0'",
            (),
            "",
            _condition,
        ),
        OperationOption(
            "array",
            "Array",
            "Array of granules whose row names none, as lst or /grid/lst; by default the only one",
            (),
            "",
        ),
    )

    def read_granule(
        self,
        source: str,
        array: str | None,
        options: Mapping[str, Any],
        path: Path,
        most_bytes: int | None,
        count: Callable[[Mapping[str, Any]], None],
    ) -> str:
        """Read the pixels of a granule, and check that they can be added; return its version."""
        from swathe.operations.reduction.cell_statistics import names_of_statistics
        from swathe.operations.reduction.reduction import check_pixels
        from swathe.operations.reduction.swath import pixels_of, swath_of

        condition = _condition(options["where"])
        swath = swath_of(source, array or options["array"] or None, condition, count, most_bytes)
        pixels = pixels_of(swath, condition)
        # What cannot be added is an error of this granule, not of the result.
        check_pixels(pixels, names_of_statistics(options["statistics"]))
        pixels.save(path)
        return swath.version

    def reduce(
        self,
        path: Path,
        granules: Sequence[tuple[str, Path]],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Add the granules to the grid in their order, one at a time, and write it."""
        from swathe.operations.reduction.pixels import Pixels
        from swathe.operations.reduction.reduction import Reduction

        reduction = Reduction(options["grid"], options["statistics"])
        attrs: dict[str, Any] = {}
        for name, file in granules:
            if should_stop():
                return False
            pixels = Pixels.load(file)
            try:
                reduction.add_pixels(pixels)
            except OptionError as error:
                raise OptionError(f"{name}: {error}") from error
            attrs = attrs or pixels.attrs
        reduction.result(attrs, options["where"] or None).write(path)
        return True

    def arrays_of(
        self, file: ArrayFile, array: str | None, options: Mapping[str, Any]
    ) -> list[Array]:
        """Return the variable, its latitudes and longitudes, and the arrays of the condition."""
        from swathe.operations.reduction.swath import granule_arrays

        condition = _condition(options["where"])
        arrays = granule_arrays(file, array or options["array"] or None, condition)
        return arrays.all

    def shown_array(self, options: Mapping[str, Any]) -> str:
        """Return the first statistic."""
        from swathe.operations.reduction.cell_statistics import names_of_statistics

        return names_of_statistics(options["statistics"])[0]

    def result_bytes(self, options: Mapping[str, Any]) -> int:
        """Return the size of the grid with its counts."""
        from swathe.operations.reduction.cell_statistics import names_of_statistics
        from swathe.operations.reduction.grid_result import COUNTS
        from swathe.operations.reduction.grid_spec import GridSpec

        names = {*names_of_statistics(options["statistics"]), *COUNTS}
        return GridSpec.of(options["grid"]).cells * CELL_BYTES * len(names)


OPERATION = ReduceOperation()
