"""List the arrays of a file that is not FITS, for `swathe info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.cli.output import print_json, print_line
from swathe.core.format import count_text, size_text

if TYPE_CHECKING:
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

LONGEST_VALUE = 200
"""Characters of an attribute that are printed."""
PLAIN_FILTERS = frozenset(("shuffle", "fletcher32", "crc32c", "horizontal", "floating", "bits"))
"""Filters of chunks that compress nothing."""


def print_arrays(file: ArrayFile, attributes: bool, as_json: bool) -> None:
    """Print the arrays of a file, with all attributes if asked."""
    if as_json:
        print_json(_as_dict(file, attributes))
        return
    size = f"{size_text(file.size)} ({file.size:,} bytes)"
    facts = [size, *_packing(file), file.format, count_text(len(file), "array")]
    print_line(f"{file.url}: {', '.join(facts)}")
    if attributes:
        for path, values in file.groups.items():
            _print_attributes(f"{path}", values)
    for array in file.arrays:
        print_line(f"  {_line(array)}")
        if attributes:
            _print_attributes("    ", array.attrs)
    for note in file.notes:
        print_line(f"  note: {note}", err=True)


def _packing(file: ArrayFile) -> list[str]:
    """Return how the file is compressed; nothing if only the library of its format knows."""
    if file.compression is not None:
        return [file.compression]
    if any(not PLAIN_FILTERS.issuperset(array.filters) for array in file.arrays):
        return ["arrays compressed in chunks"]
    return [] if any(array.problem is not None for array in file.arrays) else ["not compressed"]


def _line(array: Array) -> str:
    axes = " x ".join(
        f"{name} {length}" if name else str(length)
        for name, length in zip(array.dims or [""] * array.ndim, array.shape, strict=True)
    )
    parts = [f"{array.path:32} {_type_text(array.dtype):8} {axes or 'a number'}"]
    if array.chunk_shape is not None:
        chunk = " x ".join(map(str, array.chunk_shape))
        parts.append(f"chunks of {chunk}")
    if array.filters:
        parts.append("+".join(array.filters))
    unit = array.attrs.get("units")
    if isinstance(unit, str) and unit:
        parts.append(unit)
    if array.problem is not None:
        way = "refused" if array.is_refused else "read by its library"
        parts.append(f"{way}: {array.problem}")
    return "  ".join(parts)


def _type_text(dtype: np.dtype[Any]) -> str:
    return "compound" if dtype.names else str(dtype.newbyteorder("="))


def _print_attributes(indent: str, values: dict[str, Any]) -> None:
    for name, value in values.items():
        print_line(f"{indent} {name} = {value_text(value)}")


def value_text(value: Any) -> str:
    """Return an attribute as one line of text of bounded length."""
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= LONGEST_VALUE else f"{value.shape} {value.dtype}"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _as_dict(file: ArrayFile, attributes: bool) -> dict[str, Any]:
    arrays = []
    for array in file.arrays:
        facts: dict[str, Any] = {
            "path": array.path,
            "dtype": str(array.dtype),
            "shape": array.shape,
            "dims": array.dims,
            "chunk_shape": array.chunk_shape,
            "filters": array.filters,
            "units": _plain(array.attrs.get("units")),
            "problem": array.problem,
        }
        if attributes:
            facts["attributes"] = {name: _plain(each) for name, each in array.attrs.items()}
        arrays.append(facts)
    facts = {
        "path": file.url,
        "size": file.size,
        "version": file.version,
        "compression": file.compression,
        "format": file.format,
        "library": file.tree.library,
        "arrays": arrays,
        "notes": file.notes,
    }
    if attributes:
        facts["groups"] = {
            path: {name: _plain(each) for name, each in values.items()}
            for path, values in file.groups.items()
        }
    return facts


def _plain(value: Any) -> Any:
    """Return an attribute as JSON can represent it; numbers that are not finite as text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
