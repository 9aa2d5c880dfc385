"""Rows of arrays: their files are described where the rows are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.core.row_record import fault_of
from swathe.files.file import arrays_of
from swathe.files.targets.hdus import is_array_path
from swathe.operations.array_results import is_of_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable


def describe_files(rows: RowTable, should_stop: Callable[[], bool]) -> dict[int, Fault]:
    """Describe the files of arrays, and keep their chunk indexes for the engine.

    Args:
        rows: rows of images and of arrays.
        should_stop: function that returns whether to stop.

    Returns:
        The faults of rows whose file is rejected, by index.
    """
    if not any(map(is_array_path, rows.hdu.few().values)):
        return {}
    faults: dict[int, Fault] = {}
    fault_of_file: dict[str, Fault | None] = {}
    for at, row in enumerate(rows):
        if not is_of_array(row) or should_stop():
            continue
        if row.source not in fault_of_file:
            fault_of_file[row.source] = _describe(row.source)
        fault = fault_of_file[row.source]
        if fault is not None:
            faults[at] = fault
    return faults


def _describe(file: str) -> Fault | None:
    """Describe a file; return why it is rejected, if it is."""
    try:
        arrays_of(file)
    except SwatheError as error:
        return fault_of(error)
    return None
