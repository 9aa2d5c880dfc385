"""Compare each dump of an array, or plane of a cube, with the next: mean squared difference."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError
from swathe.operations.operation import ConvertingOperation, ResultFormat, check_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.cutout import Cutout

TABLE_BYTES = 100
"""Size of a table of one difference, about."""
MOST_LINES = 100_000
"""Differences in a table."""


class MseOperation(ConvertingOperation):
    """A table for each target: the differences along its first axis."""

    name = "mse"
    title = "Mean squared difference of consecutive dumps or planes"
    formats = (
        ResultFormat(
            "csv",
            "CSV, of differences",
            "a table",
            ".csv",
            "text/csv",
            0.05,
            5e-3,
            has_pictures=False,
            memory_per_pixel=24,
        ),
    )

    def convert(
        self,
        cutout: Cutout,
        name: Path,  # noqa: ARG002 - there is one format
        options: Mapping[str, Any],  # noqa: ARG002 - it has none
        should_stop: Callable[[], bool],
    ) -> bytes:
        """Return the differences of the planes of a cube, which are counted from 0."""
        if cutout.ndim < 3:
            raise RegionError(f"{cutout.url}: expected a cube, found an image of {cutout.shape}")
        return _table(cutout.data, range(len(cutout.data)), cutout.url, should_stop)

    def convert_array(
        self,
        cutout: ArrayCutout,
        name: Path,  # noqa: ARG002 - as above
        options: Mapping[str, Any],  # noqa: ARG002
        should_stop: Callable[[], bool],
    ) -> bytes:
        """Return the differences along the first axis, named by its coordinate if it has one."""
        values, axis = cutout.physical, cutout.dims[0]
        labels: Sequence[Any] = range(cutout.start[0], cutout.start[0] + len(values))
        coordinate = cutout.coords.get(axis)
        if coordinate is not None and coordinate.data.shape == (len(values),):
            labels = coordinate.data.tolist()
        what = f"{cutout.url}, array {cutout.path}, axis {axis}"
        return _table(values, labels, what, should_stop)

    def result_bytes(self, options: Mapping[str, Any]) -> int:  # noqa: ARG002 - it has none
        """Return the size of a table of one difference."""
        return TABLE_BYTES


def _table(
    values: NDArray[Any], labels: Sequence[Any], what: str, should_stop: Callable[[], bool]
) -> bytes:
    """Return a line for each two consecutive elements along the first axis.

    Raises:
        RegionError: If there are fewer than two.
        Interruption: If the work was stopped.
    """
    import numpy as np

    if len(values) < 2:
        raise RegionError(f"{what}: expected two elements or more to compare, found {len(values)}")
    if len(values) > MOST_LINES:
        raise RegionError(f"{what}: expected up to {MOST_LINES:,} elements, found {len(values):,}")
    if values.dtype.kind not in "biuf":
        raise RegionError(f"{what}: expected numbers, found elements of {values.dtype}")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("first", "second", "mse"))
    for at in range(len(values) - 1):
        check_stop(should_stop)
        difference = values[at + 1].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite, or no number
            difference -= values[at]
            mean = float(np.vdot(difference, difference)) / difference.size
        table.writerow((labels[at], labels[at + 1], repr(mean)))
    return text.getvalue().encode()


OPERATION = MseOperation()
