"""Choose the images of each combined result, from images that were listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swathe.core.errors import TargetsError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.core.row_record import Fault
    from swathe.operations.registry import ResultOptions

MOST_NAMES = 20
"""Rows whose bands are named in an error."""


class Inputs(NamedTuple):
    """Images of one result.

    Attributes:
        result: name of the result.
        rows: rows of its images, in the order of use; with a fault, of all images of its group.
        faults: status and reason of each row that is not cut.
        fault: reason if the result cannot be made, else empty.
    """

    result: str
    rows: list[int]
    faults: dict[int, Fault]
    fault: str


def rows_of_bands(image_bands: Sequence[str] | None, bands: Sequence[str]) -> list[int]:
    """Return the rows whose image has one of these bands.

    Raises:
        TargetsError: If the list has no column of bands, or no row has one of them.
    """
    if image_bands is None:
        raise TargetsError(
            "the targets: expected a column 'band', since bands are given; found none"
        )
    rows = [row for row, band in enumerate(image_bands) if band in bands]
    if not rows:
        names = ", ".join(dict.fromkeys(image_bands[:MOST_NAMES]))
        raise TargetsError(
            f"the targets: expected a row of the bands {', '.join(bands)} in the column 'band', "
            f"found {short_text(names)}"
        )
    return rows


def inputs_of(
    result_options: ResultOptions, groups: Sequence[str], image_bands: Sequence[str]
) -> list[Inputs]:
    """Return the images of each result.

    Args:
        result_options: options of the results.
        groups: group of each row, empty if it has none.
        image_bands: band of each row, empty if it has none.
    """
    by_result: dict[str, list[int]] = {}
    for row, result in enumerate(result_options.grouping.name_results((), groups)):
        by_result.setdefault(result, []).append(row)
    return [_inputs(result_options, *group, image_bands) for group in by_result.items()]


def _inputs(
    result_options: ResultOptions, result: str, rows: list[int], image_bands: Sequence[str]
) -> Inputs:
    bands_of_rows = [image_bands[row] for row in rows]
    indexes, fault = result_options.kind.choose_images(bands_of_rows, result_options.bands, None)
    if fault:
        return Inputs(result, rows, dict.fromkeys(rows, ("error", f"{result}: {fault}")), fault)
    input_rows = [rows[index] for index in indexes]
    other_rows = set(rows).difference(input_rows)
    reason = f"{result}: operation {result_options.operation} does not use this image"
    return Inputs(result, input_rows, dict.fromkeys(sorted(other_rows), ("no-overlap", reason)), "")
