"""Encoding of job rows in the database: a thousand to a database row, column by column.

A packed block is a length, a directory in JSON, and the columns one after another: numbers in the
fewest bytes, little endian; all else in JSON. Older jobs must remain readable: a change of the
format needs a migration.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.row_record import RowGranule
from swathe.core.row_table import CODES, DIGEST_BYTES, DictColumn, RowTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 1000
"""Rows per block, by position."""
JSON = "json"
LENGTH_BYTES = 4
INTEGERS = ("<i1", "<i2", "<i4", "<i8")
WAITING = CODES["waiting"]


def pack(columns: Mapping[str, Any]) -> bytes:
    """Return columns as bytes; `None` columns are left out."""
    directory, bodies = [], []
    for name, column in columns.items():
        if column is None:
            continue
        if isinstance(column, np.ndarray):
            column = _narrow(column)
            kind, shape, body = column.dtype.str, column.shape, column.tobytes()
        else:
            kind, shape = JSON, ()
            body = json.dumps(column, ensure_ascii=False, separators=(",", ":")).encode()
        directory.append([name, kind, shape, len(body)])
        bodies.append(body)
    header = json.dumps(directory, separators=(",", ":")).encode()
    return b"".join([len(header).to_bytes(LENGTH_BYTES, "little"), header, *bodies])


def unpack(content: bytes, *names: str) -> dict[str, Any]:
    """Return the columns that were packed."""
    at = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    columns: dict[str, Any] = {}
    for name, kind, shape, size in json.loads(content[LENGTH_BYTES:at]):
        if not names or name in names:
            body = memoryview(content)[at : at + size]
            if kind == JSON:
                columns[name] = json.loads(bytes(body))
            else:
                columns[name] = np.frombuffer(body, kind).reshape(shape)
        at += size
    return columns


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the narrowest type that holds them."""
    if column.dtype.kind != "i" or not column.size:
        return column
    least, most = column.min(), column.max()
    for kind in INTEGERS:
        limits = np.iinfo(kind)
        if limits.min <= least and most <= limits.max:
            return column.astype(kind)
    return column


def _encode_column(column: DictColumn[Any], usual: Any) -> Any:
    """Return a column as it is packed; `None` if all values are the default."""
    column = column.few()
    if column.values == [usual]:
        return None
    return [column.values, column.codes.tolist() if len(column.values) > 1 else []]


def _decode_column(
    columns: Mapping[str, Any], name: str, usual: Any, count: int
) -> DictColumn[Any]:
    if name not in columns:
        return DictColumn.same(usual, count)
    values, codes = columns[name]
    if len(values) == 1:
        return DictColumn.same(values[0], count)
    return DictColumn(values, np.array(codes, np.int32))


def pack_requests(rows: RowTable) -> bytes:
    """Pack the request part of a block's rows."""
    return pack(
        {
            "number": rows.number,
            "result": rows.result if (rows.result >= 0).any() else None,
            "id": rows.id,
            "name": None if rows.name == rows.id else rows.name,
            "source": _encode_column(rows.source, None),
            "hdu": _encode_column(rows.hdu, None),
            **_boxes(rows),
            "planes": _encode_column(rows.planes, None),
            "sky": rows.sky if rows.in_sky.any() else None,
            "granule": _encode_column(rows.granule, None),
        }
    )


def _boxes(rows: RowTable) -> dict[str, Any]:
    has_box = rows.has_box
    return {"box": rows.box, "placed": None if has_box.all() else has_box}


def pack_outcomes(rows: RowTable) -> bytes | None:
    """Pack the result part of a block's rows; `None` if all wait."""
    if (rows.status == WAITING).all():
        return None
    return pack(
        {
            "status": rows.status,
            "reason": _encode_column(rows.reason, ""),
            "bytes": rows.bytes,
            "version": _encode_column(rows.version, ""),
            "sha256": rows.sha256 if rows.sha256.any() else None,
            # The boxes of some sky positions are known only after cutting.
            **(_boxes(rows) if rows.in_sky.any() else {}),
        }
    )


def unpack_rows(block: int, request: bytes, became: bytes | None) -> RowTable:
    """Return the rows of a block."""
    columns = unpack(request)
    number = columns["number"].astype(np.int64)
    count = len(number)
    outcome = {} if became is None else unpack(became)
    boxes = outcome if "box" in outcome else columns
    planes = _decode_column(columns, "planes", None, count)
    granule = _decode_column(columns, "granule", None, count)
    digest = outcome.get("sha256")
    size = outcome.get("bytes")
    return RowTable(
        number=number,
        position=np.arange(count) + block * BLOCK_ROWS,
        result=columns["result"].astype(np.int64) if "result" in columns else np.full(count, -1),
        id=columns["id"],
        name=columns.get("name", columns["id"]),
        source=_decode_column(columns, "source", None, count),
        hdu=_decode_column(columns, "hdu", None, count),
        box=boxes["box"].astype(np.int64),
        has_box=boxes.get("placed", np.ones(count, bool)),
        planes=DictColumn([each and tuple(each) for each in planes.values], planes.codes),
        sky=columns["sky"] if "sky" in columns else np.full((count, 3), np.nan),
        status=outcome["status"] if outcome else np.full(count, WAITING, np.uint8),
        reason=_decode_column(outcome, "reason", "", count),
        bytes=np.zeros(count, np.int64) if size is None else size.astype(np.int64),
        version=_decode_column(outcome, "version", "", count),
        sha256=np.zeros((count, DIGEST_BYTES), np.uint8) if digest is None else digest,
        granule=DictColumn([each and RowGranule(*each) for each in granule.values], granule.codes),
    )


def statuses_of(rows: RowTable) -> int:
    """Return the statuses of rows, one bit each."""
    return statuses_bits(np.unique(rows.status).tolist())


def statuses_bits(codes: Iterable[int]) -> int:
    """Return one bit for each status."""
    return sum(1 << code for code in set(codes))


def pack_places(position: NDArray[np.int64]) -> bytes:
    """Pack the positions of the rows with a block's numbers."""
    return pack({"position": position})


def unpack_places(content: bytes) -> NDArray[np.int64]:
    """Unpack these positions."""
    places: NDArray[np.int64] = unpack(content)["position"].astype(np.int64)
    return places


def pack_names(names: Sequence[str], blocks: int) -> list[bytes]:
    """Return, for each block, the index of the names that hash to it: marks and positions.

    `names` are in order of position.
    """
    marks = np.array([mark_of(name) for name in names], np.int64)
    order = np.lexsort((marks, marks % blocks))
    ends = np.searchsorted((marks % blocks)[order], np.arange(blocks + 1))
    indexes = []
    for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        at = order[first:end]
        indexes.append(pack({"mark": marks[at].astype("<u4"), "position": at}))
    return indexes


def mark_of(name: str) -> int:
    """Return a hash of a name; few names of a job share it."""
    return zlib.crc32(name.encode())


def positions_by_name(content: bytes, name: str) -> list[int]:
    """Return positions of rows that may have a name."""
    columns = unpack(content)
    mark = mark_of(name)
    first, end = (np.searchsorted(columns["mark"], mark, side) for side in ("left", "right"))
    candidates: list[int] = columns["position"][first:end].tolist()
    return candidates
