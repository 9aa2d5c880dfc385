"""Types, fill values and attributes of Zarr, versions 2 and 3."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import encode_attribute
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE_2 = re.compile(r"[<>|=]?[biufcSUVmM]\d{1,5}(\[\d{0,4}[a-zA-Z]{1,2}\])?")
"""A simple type of version 2, as NumPy writes it."""
TYPE_3 = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")
RAW = re.compile(r"r(\d{1,6})")
MOST_FIELDS, DEEPEST = 1000, 8
SPECIAL = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


def dtype_2(value: Any, depth: int = 0) -> np.dtype[Any]:
    """Return a type of version 2.

    Raises:
        FormatError: If it is none with elements of one size.
    """
    if isinstance(value, str) and TYPE_2.fullmatch(value):
        return np.dtype(value)
    if isinstance(value, list) and 0 < len(value) <= MOST_FIELDS and depth < DEEPEST:
        fields: list[Any] = []
        for field in value:
            if not (isinstance(field, list) and len(field) in (2, 3)):
                raise FormatError(f"expected name and type of a field, found {str(field)[:100]}")
            sides = (_sides(field[2]),) if len(field) == 3 else ()
            fields.append((str(field[0]), dtype_2(field[1], depth + 1), *sides))
        return np.dtype(fields)
    raise FormatError(f"expected a type of elements of one size, found {str(value)[:100]}")


def _sides(value: Any) -> tuple[int, ...]:
    sides = value if isinstance(value, list) else [value]
    if len(sides) > DEEPEST or not all(
        isinstance(side, int) and 0 < side < 1 << 16 for side in sides
    ):
        raise FormatError(f"expected the sides of a field, found {str(value)[:100]}")
    return tuple(sides)


def dtype_3(value: Any, order: str) -> np.dtype[Any]:
    """Return a type of version 3; `order`: the order of bytes, `<` or `>`.

    Raises:
        FormatError: If it is none with elements of one size.
    """
    options = value.get("configuration", {}) if isinstance(value, dict) else {}
    name = value.get("name") if isinstance(value, dict) else value
    dtype: np.dtype[Any] | None = None
    if isinstance(name, str) and TYPE_3.fullmatch(name):
        dtype = np.dtype(name)
    elif isinstance(name, str) and (raw := RAW.fullmatch(name)) and int(raw[1]) % 8 == 0:
        dtype = np.dtype(f"V{int(raw[1]) // 8}")
    elif name in ("numpy.datetime64", "numpy.timedelta64"):
        kind = "M8" if name == "numpy.datetime64" else "m8"
        scale = options.get("scale_factor", 1)
        dtype = dtype_2(f"<{kind}[{'' if scale == 1 else scale}{options.get('unit')}]")
    elif name in ("fixed_length_utf32", "null_terminated_bytes", "raw_bytes"):
        length = options.get("length_bytes")
        if isinstance(length, int) and 0 < length <= 1 << 16:
            is_text = name == "fixed_length_utf32"
            kind = {"f": "U", "n": "S", "r": "V"}[name[0]]
            dtype = np.dtype(f"{kind}{length // 4 if is_text else length}")
    if dtype is None:
        raise FormatError(f"expected a type of elements of one size, found {str(value)[:100]}")
    return dtype.newbyteorder(order) if dtype.byteorder not in "|" else dtype  # type: ignore[arg-type]


def fill_bytes(value: Any, dtype: np.dtype[Any]) -> bytes | None:
    """Return the element of chunks that are not stored; `None` if the array names none.

    Raises:
        FormatError: If it is no value of the type.
    """
    if value is None:
        return None
    try:
        element = _fill(value, dtype)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise FormatError(
            f"fill value: expected one of {dtype}, found {str(value)[:60]}"
        ) from error
    if len(element) != dtype.itemsize:
        raise FormatError(
            f"fill value: expected {dtype.itemsize} bytes, found {len(element)} ({str(value)[:60]})"
        )
    return element


def _fill(value: Any, dtype: np.dtype[Any]) -> bytes:
    if dtype.kind in "fc" and isinstance(value, list):
        part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
        return b"".join(_fill(each, part) for each in value)
    if dtype.kind in "iufc" and isinstance(value, str):
        if value.startswith("0x"):  # the bits, as a number
            bits = bytes.fromhex(value[2:])
            return bits if dtype.newbyteorder(">") == dtype else bits[::-1]
        return np.array(SPECIAL.get(value, value), dtype).tobytes()
    if dtype.kind == "b":
        if not isinstance(value, bool | int):
            raise TypeError(value)
        return np.array(bool(value), dtype).tobytes()
    if dtype.kind in "SV":
        if isinstance(value, int) and value == 0:
            return bytes(dtype.itemsize)
        content = (
            bytes(value) if isinstance(value, list) else base64.b64decode(value, validate=True)
        )
        return content.ljust(dtype.itemsize, b"\0")
    if dtype.kind == "U":
        return np.array("" if value == 0 else str(value), dtype).tobytes()
    if dtype.kind in "mM":
        number = np.iinfo("i8").min if value == "NaT" else value
        return np.array(number, f"{dtype.byteorder}i8").tobytes()
    if isinstance(value, bool | int | float):
        if dtype.kind in "iu" and value != int(value):
            raise ValueError(value)
        return np.array(int(value) if dtype.kind in "iu" else value, dtype).tobytes()
    raise TypeError(value)


def encode_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an index for JSON: what is no text, number or list is JSON text."""
    return {str(name): encode_attribute(_plain(value)) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | float | np.generic) or _is_int(value):
        return value
    if isinstance(value, list) and value:
        if all(isinstance(each, str) for each in value):
            return np.array(value, object)
        if all(isinstance(each, bool) for each in value):
            return np.array(value)
        if all(_is_int(each) for each in value):
            return np.array(value, "i8")
        if all(isinstance(each, float) or _is_int(each) for each in value):
            return np.array(value, "f8")
    return json.dumps(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def fill_attribute(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the attribute `_FillValue` of version 3, which xarray writes as base64 for floats."""
    if isinstance(value, str) and dtype.kind == "f":
        try:
            content = base64.b64decode(value, validate=True)
        except ValueError:
            return value
        if len(content) == 8:
            return np.frombuffer(content, "<f8").astype(dtype.newbyteorder("="))[0]
        return SPECIAL.get(value, value)
    if dtype.kind in "iuf" and isinstance(value, int | float) and not isinstance(value, bool):
        number = np.array(value).astype(dtype.newbyteorder("="))
        return number[()] if number == value or number != number else value
    return value
