"""Make tables of lists of targets, whatever they are given as."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.angles import Size
from swathe.core.errors import RegionError, SwatheError, TargetsError
from swathe.files.targets.cells import LARGEST, InvalidCell
from swathe.files.targets.positions import is_equatorial
from swathe.files.targets.table_files import TargetTable, read_listing, table_of, table_of_lines

if TYPE_CHECKING:
    from astropy.table import Table

    from swathe.files.targets.columns import ListOptions


def read_list(targets: Any, choices: ListOptions | None = None) -> TargetTable:
    """Return a list of targets as a table, with its folder if it is a file, and its faults.

    Raises:
        TargetsError: If the list cannot be read.
    """
    if isinstance(targets, TargetTable):
        return targets
    try:
        hours = is_equatorial(choices.frame if choices is not None else None)
        if isinstance(targets, str | os.PathLike):
            return read_listing(Path(targets), hours=hours)
        if isinstance(targets, list | tuple) and targets and set(map(type, targets)) == {str}:
            table, faults = table_of_lines(targets, table_of, hours=hours)
            return TargetTable(table, None, faults)
        if isinstance(targets, Mapping):
            return TargetTable(
                table_of({name: _values(each) for name, each in targets.items()}), None, {}
            )
        from astropy.table import Table

        if isinstance(targets, Table):
            return TargetTable(targets, None, {})
        if hasattr(targets, "transform_to"):
            return TargetTable(Table({"sky": targets.reshape(-1)}), None, {})
        if hasattr(targets, "to_dict") and hasattr(targets, "columns"):
            return TargetTable(Table.from_pandas(targets), None, {})
    except RegionError as error:
        raise TargetsError(str(error)) from error
    except (TypeError, ValueError) as error:
        if isinstance(error, SwatheError):
            raise
        raise TargetsError(f"the targets cannot be made into a table: {error}") from error
    raise TargetsError(
        "targets must be an astropy Table, a pandas DataFrame, a mapping of columns, a SkyCoord, a "
        f"list of lines or the path of a table, not {type(targets).__name__}"
    )


def read_table(path: Path) -> Table:
    """Read a file of targets, in the format given by its suffix.

    Raises:
        NotFoundError: If the file does not exist.
        TargetsError: If the file, or a line of it, cannot be read.
    """
    table, _, faults = read_listing(path)
    if faults:
        raise TargetsError(f"{path}: {next(iter(faults.values()))}")
    return table


def _values(column: Any) -> Any:
    """Return a column of a mapping in its fastest form: lists of one type as an array."""
    import numpy as np

    if hasattr(column, "unit") or hasattr(column, "transform_to"):
        return column
    if type(column) is np.ndarray and column.dtype.kind in "iufU":
        return column
    values = list(column)
    kinds = set(map(type, values))
    if kinds & {Size, InvalidCell}:
        cells = np.empty(len(values), object)
        cells[:] = values
        return cells
    if kinds == {str}:
        # As objects: in an array of text, one long value would make all as long.
        return np.array(values, object)
    if kinds == {float} or (kinds == {int} and -LARGEST <= min(values) <= max(values) <= LARGEST):
        return np.array(values)
    return values
