"""Pack tables into bytes to send them from a confined process; nothing is unpickled.

A JSON header describes each column. The values follow: numbers as NumPy has them in memory, all
else as JSON. A column keeps its unit and its short metadata, such as UCD and frame.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from swathe.core.errors import TargetsError

if TYPE_CHECKING:
    import numpy as np
    from astropy.table import Table
    from numpy.typing import NDArray

LENGTH = struct.Struct("<Q")
LONGEST_TEXT = 10_000
"""Limit of a text value, in characters."""
PIECE_ROWS = 500
LONGEST_META, MOST_META = 500, 1000
"""Limits of metadata of a table or column: characters of an entry, number of entries."""
NUMBERS = "iufb"
"""Kinds of dtypes that are numbers."""


def pack_table(table: Table) -> bytes:
    """Return a table as bytes; only columns of numbers, texts and sky positions are included.

    Raises:
        TargetsError: If a text is too long.
    """
    heads: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name in table.colnames:
        column = _pack_column(name, table[name])
        if column is not None:
            head, values = column
            heads.append({"name": name, **head, "lengths": [len(part) for part in values]})
            parts += values
    return _join({"columns": heads, "meta": _short(table.meta)}, parts)


def unpack_table(content: bytes) -> Table:
    """Return the table that `pack_table` packed; texts are objects, missing ones are `None`."""
    from astropy.table import Table

    head, at = _head(content)
    columns = {}
    for each in head["columns"]:
        parts = []
        for length in each["lengths"]:
            parts.append(memoryview(content)[at : at + length])
            at += length
        columns[each["name"]] = _unpack_column(each, parts)
    return Table(columns, meta=head["meta"])


def pack_lists(columns: Mapping[str, list[Any]], rest: Mapping[str, Any]) -> bytes:
    """Return columns of JSON values, and further values beside them, as bytes.

    A column is packed in pieces, so that a reader can do other work between two of them.
    """
    parts: list[bytes] = []
    lengths = []
    for values in columns.values():
        starts = range(0, len(values), PIECE_ROWS)
        pieces = [json.dumps(values[at : at + PIECE_ROWS]).encode() for at in starts]
        lengths.append(list(map(len, pieces)))
        parts += pieces
    return _join({"names": list(columns), "lengths": lengths, "rest": rest}, parts)


def unpack_lists(content: bytes) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the columns that `pack_lists` packed, and the other values."""
    head, at = _head(content)
    columns: dict[str, list[Any]] = {}
    for name, lengths in zip(head["names"], head["lengths"], strict=True):
        values = columns[name] = []
        for length in lengths:
            values += json.loads(content[at : at + length])
            at += length
    return columns, head["rest"]


def _join(head: Mapping[str, Any], parts: list[bytes]) -> bytes:
    first = json.dumps(head).encode()
    return b"".join([LENGTH.pack(len(first)), first, *parts])


def _head(content: bytes) -> tuple[dict[str, Any], int]:
    (length,) = LENGTH.unpack_from(content)
    at = LENGTH.size + length
    head: dict[str, Any] = json.loads(content[LENGTH.size : at])
    return head, at


def _pack_column(name: str, column: Any) -> tuple[dict[str, Any], list[bytes]] | None:
    import numpy as np
    from astropy.coordinates import SkyCoord

    if isinstance(column, SkyCoord):
        place = column.icrs
        degrees = [np.asarray(angle.deg, "<f8").tobytes() for angle in (place.ra, place.dec)]
        return {"kind": "sky"}, degrees
    dtype = getattr(column, "dtype", None)
    if dtype is None or not hasattr(column, "tolist"):
        return None  # such as times, which no target uses
    meta = getattr(getattr(column, "info", None), "meta", None)
    about = {"unit": _unit_text(column), "meta": _short(meta)}
    if dtype.kind in NUMBERS:
        values = np.ma.asarray(getattr(column, "value", column))
        flat = np.ascontiguousarray(values.filled(0) if values.mask.any() else values.data)
        parts = [flat.astype(dtype.newbyteorder("<"), copy=False).tobytes()]
        if values.mask.any():
            parts.append(np.ma.getmaskarray(values).tobytes())
        head = {"kind": "numbers", "dtype": dtype.newbyteorder("<").str, "shape": flat.shape}
        return {**head, **about}, parts
    texts = _texts(name, column)
    distinct = list(dict.fromkeys(texts))
    # Equal texts are one object of the reader: names of files are few, and may be in every row.
    if 2 * len(distinct) > len(texts) or {*map(type, distinct)} - {str, type(None)}:
        return {"kind": "texts", **about}, [json.dumps(texts).encode()]
    number_of = {text: number for number, text in enumerate(distinct)}
    codes = np.fromiter(map(number_of.__getitem__, texts), "<i4", len(texts)).tobytes()
    return {"kind": "repeated texts", **about}, [json.dumps(distinct).encode(), codes]


def _unit_text(column: Any) -> str | None:
    unit = getattr(column, "unit", None)
    return None if unit is None else str(unit)


def _short(meta: Mapping[Any, Any] | None) -> dict[str, str]:
    """Return the short metadata of a table or column, such as its UCD and frame."""
    texts = {
        name: value
        for name, value in (meta or {}).items()
        if isinstance(name, str) and isinstance(value, str) and len(name + value) <= LONGEST_META
    }
    return dict(islice(texts.items(), MOST_META))


def _texts(name: str, column: Any) -> list[Any]:
    """Return the values of a column as JSON values."""
    values = []
    for row, value in enumerate(column.tolist()):
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif not isinstance(value, str | int | float | bool | None):
            value = str(value)
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise TargetsError(
                f"row {row}, column {name[:100]!r}: expected up to {LONGEST_TEXT:,} characters, "
                f"found {len(value):,}"
            )
        values.append(value)
    return values


def _unpack_column(head: Mapping[str, Any], parts: list[memoryview]) -> Any:
    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.table import Column, MaskedColumn
    from astropy.units import Unit

    if head["kind"] == "sky":
        ra, dec = (np.frombuffer(part, "<f8") for part in parts)
        return SkyCoord(ra, dec, unit="deg", frame="icrs")
    unit = None if head["unit"] is None else Unit(head["unit"], parse_strict="silent")
    meta = head["meta"]
    if head["kind"] in ("texts", "repeated texts"):
        texts = np.array(json.loads(bytes(parts[0])), object)
        if head["kind"] == "repeated texts":
            texts = texts[np.frombuffer(parts[1], "<i4")]
        return Column(texts, unit=unit, meta=meta)
    shape = tuple(head["shape"])
    values: NDArray[np.generic] = np.frombuffer(parts[0], head["dtype"]).reshape(shape).copy()
    if len(parts) == 1:
        return Column(values, unit=unit, meta=meta)
    mask = np.frombuffer(parts[1], bool).reshape(shape)
    return MaskedColumn(values, mask=mask, unit=unit, meta=meta)
