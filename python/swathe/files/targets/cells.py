"""Convert cells of tables to text, numbers and plain values; invalid cells keep their errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError, TargetsError
from swathe.files.targets.positions import degrees_per

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = (1 << 63) - 1
"""Largest integer of a column."""


def texts(column: Any) -> list[str]:
    """Return a column as text."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    values = column.tolist() if kind in ("U", "O") else list(column)
    if set(map(type, values)) == {str} and "".join(values).isascii():
        return list(map(str.strip, values))
    # Only distinct values are converted, since they are often few.
    distinct: dict[str, str] = {}
    cells = []
    for value in values:
        cell = distinct.get(value) if isinstance(value, str) else text_of(value)
        if cell is None:
            cell = distinct[value] = text_of(value)
        cells.append(cell)
    return cells


def text_of(value: Any) -> str:
    """Return a cell as text, empty if it is missing."""
    if isinstance(value, str) and value.isascii():
        return value.strip()
    if is_missing(value):
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    # Names from a file system may hold bytes that are not text, which a manifest cannot store.
    return str(value).strip().encode("utf-8", "backslashreplace").decode()


def is_missing(value: Any) -> bool:
    """Check whether a cell is empty, masked or NaN."""
    import numpy as np

    if value is None or value is np.ma.masked:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def plain_cells(column: Any) -> list[Any]:
    """Return the values of a column as Python objects; masked ones are `None`."""
    return column.tolist() if hasattr(column, "tolist") else list(column)


@dataclass(frozen=True)
class InvalidCell:
    """An invalid cell, whose row has a fault: the error and the original value."""

    fault: str
    cell: Any = None

    def __str__(self) -> str:
        return self.fault


def float_column(column: Any) -> NDArray[np.float64]:
    """Return a column as floats; NaN for cells that are not numbers."""
    import numpy as np

    if getattr(getattr(column, "dtype", None), "kind", "O") == "f":
        return np.asarray(column)
    cells = [cell if isinstance(cell, float) else np.nan for cell in column]
    return np.array(cells, float)


def mask_to_nan(values: Any) -> NDArray[np.float64]:
    """Return numbers; masked ones are NaN."""
    import numpy as np

    mask = getattr(values, "mask", None)
    plain = getattr(values, "unmasked", values)
    numbers: NDArray[np.float64] = np.array(np.ma.getdata(plain), float)
    if mask is not None and np.any(mask):
        numbers[np.broadcast_to(mask, numbers.shape)] = np.nan
    return numbers


def numbers_of(column: Any) -> Any:
    """Return the numbers of a column in its own unit."""
    return column.value if hasattr(column, "to_value") else column


def degrees_per_unit(unit: Any, name: str) -> float:
    """Return the degrees in the unit of a column; 1 if it has none.

    Raises:
        TargetsError: If the unit is not an angle.
    """
    scale = degrees_per(unit)
    if scale is None:
        raise TargetsError(f"column {name}: expected an angle, found unit {str(unit)!r}")
    return scale


def read_cells(column: Any, read: Callable[[Any], Any]) -> Any:
    """Return the value of every cell; an invalid cell keeps its error."""
    import numpy as np

    values: list[Any] = []
    sound = True
    for cell in plain_cells(column):
        if isinstance(cell, InvalidCell):
            values.append(cell)
            sound = False
            continue
        if is_missing(cell) or (isinstance(cell, str | bytes) and not cell.strip()):
            values.append(np.nan)
            continue
        try:
            values.append(read(cell))
        except RegionError as error:
            values.append(InvalidCell(str(error), cell))
            sound = False
    if sound and all(isinstance(value, float) for value in values):
        return np.array(values, float)
    cells = np.empty(len(values), object)
    cells[:] = values
    return cells
