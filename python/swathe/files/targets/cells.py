"""Convert cells of tables to text and plain values."""

from __future__ import annotations

from typing import Any


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
