"""Cells of tables as text and plain values."""

from __future__ import annotations

from typing import Any


def texts(column: Any) -> list[str]:
    """Give a column as text."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    values = column.tolist() if kind in ("U", "O") else list(column)
    if set(map(type, values)) == {str} and "".join(values).isascii():
        return list(map(str.strip, values))
    # By way of the distinct values, which are often few.
    distinct: dict[str, str] = {}
    cells = []
    for value in values:
        cell = distinct.get(value) if isinstance(value, str) else text_of(value)
        if cell is None:
            cell = distinct[value] = text_of(value)
        cells.append(cell)
    return cells


def text_of(value: Any) -> str:
    """Give a cell as text, empty where it is missing."""
    if isinstance(value, str) and value.isascii():
        return value.strip()
    if is_missing(value):
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    # Names from a file system may hold what is no text, which no manifest can.
    return str(value).strip().encode("utf-8", "backslashreplace").decode()


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty, masked or NaN."""
    import numpy as np

    if value is None or value is np.ma.masked:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def floats(column: Any) -> list[float]:
    """Give numbers; where there is none, the row has a fault and any will do."""
    found = []
    for value in column:
        try:
            found.append(float(value))
        except (TypeError, ValueError, OverflowError):
            found.append(0.0)
    return found


def plain_cells(column: Any) -> list[Any]:
    """Give the values of a column as Python has them; `None` where they are masked."""
    return column.tolist() if hasattr(column, "tolist") else list(column)
