"""Targets and rows of jobs as columns.

A job may have 100,000 rows. An object for each row would take as much time as its cut. So
lists of targets are read into a `RowTable`, the catalogue stores it, and the engine takes its
columns. It is also a sequence of `RowRecord`, for code that reads few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from swathe.core.row_record import STATUSES, Fault, RowGranule, RowRecord, RowStatus

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

T = TypeVar("T")
U = TypeVar("U")

CODES = {status: code for code, status in enumerate(STATUSES)}
"""Code of each status in a column."""
DIGEST_BYTES = 32
UNKNOWN_SHAPE = (100, 100)
"""Pixels of a sky target if none of the images of its list was read yet."""
DIGEST_DIGITS = 2 * DIGEST_BYTES


@dataclass(frozen=True, eq=False)
class DictColumn(Generic[T]):
    """A column with few distinct values: the values, and for each row the index of its value."""

    values: list[T]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, column: Iterable[T]) -> Self:
        """Encode a column."""
        numbers: dict[T, int] = {}
        codes = [numbers.setdefault(value, len(numbers)) for value in column]
        return cls(list(numbers), np.array(codes, np.int32))

    @classmethod
    def same(cls, value: T, count: int) -> Self:
        """Return a column with the same value in each row."""
        return cls([value], np.zeros(count, np.int32))

    @classmethod
    def concatenate(cls, parts: Sequence[DictColumn[T]]) -> Self:
        """Concatenate columns."""
        numbers: dict[T, int] = {}
        codes = []
        for part in parts:
            new = [numbers.setdefault(value, len(numbers)) for value in part.values]
            codes.append(np.array(new, np.int32)[part.codes])
        return cls(list(numbers), np.concatenate(codes))

    def map(self, function: Callable[[T], U]) -> DictColumn[U]:
        """Return the results of a function, which is called once for each distinct value."""
        values = DictColumn.of(map(function, self.values))
        return DictColumn(values.values, values.codes[self.codes])

    def put(self, rows: Sequence[int], values: Sequence[T]) -> DictColumn[T]:
        """Return the same column with other values in some rows."""
        both = DictColumn.concatenate([self, DictColumn.of(values)])
        codes, new = np.split(both.codes, [len(self)])
        codes[rows] = new
        return DictColumn(both.values, codes)

    def take(self, rows: Any) -> DictColumn[T]:
        """Return some rows, with no more values than rows."""
        column = DictColumn(self.values, self.codes[rows])
        # Otherwise a few rows of each of many blocks would keep all their values in memory.
        return column.few() if len(column.values) > len(column) else column

    def few(self) -> DictColumn[T]:
        """Return the same column without unused values."""
        distinct, codes = np.unique(self.codes, return_inverse=True)
        return DictColumn([self.values[code] for code in distinct.tolist()], codes.astype(np.int32))

    def __reduce__(self) -> tuple[Any, ...]:
        few = self.few()
        return DictColumn, (few.values, few.codes)

    def list(self, rows: slice = slice(None)) -> list[T]:
        """Return the value of each row, or of some."""
        return [self.values[code] for code in self.codes[rows].tolist()]

    def value(self, row: int) -> T:
        """Return the value of a row."""
        return self.values[int(self.codes[row])]

    def __len__(self) -> int:
        return len(self.codes)


class TextColumn:
    """A column of text that is filled in; equal texts are stored once."""

    def __init__(self, count: int, text: str = "") -> None:
        """Set the number of rows, and the text of all of them."""
        self._codes = np.zeros(count, np.int32)
        self._values = [text]
        self._numbers = {text: 0}

    def __getitem__(self, row: int) -> str:
        return self._values[int(self._codes[row])]

    def __setitem__(self, row: int, text: str) -> None:
        self._codes[row] = self._number(text)

    def put(self, rows: NDArray[np.int64], texts: Sequence[str], codes: NDArray[np.int32]) -> None:
        """Set the texts of some rows; `codes` are positions in `texts`."""
        self._codes[rows] = np.array([self._number(text) for text in texts], np.int32)[codes]

    def list(self, rows: slice = slice(None)) -> list[str]:
        """Return the text of each row, or of some."""
        return [self._values[code] for code in self._codes[rows].tolist()]

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._values))
        if number == len(self._values):
            self._values.append(text)
        return number


@dataclass(eq=False, kw_only=True)
class RowTable(Sequence[RowRecord]):
    """Rows; the columns are those of `RowRecord` unless listed here.

    Attributes:
        result: index of the combined result; -1 if the row belongs to none.
        box: `(n, 4)`; valid if `has_box` is true.
        sky: `(n, 3)`; NaN if there is none, and for a size that is not one angle.
        status: index in STATUSES.
        sha256: `(n, 32)` bytes; zeros if there is none.
        group: name of the combined result of each row, `None` if results are made from one row
            each; jobs store `result` instead.
        band: band of each row's image, if the list has bands; jobs do not store it.
    """

    number: NDArray[np.int64]
    position: NDArray[np.int64]
    result: NDArray[np.int64]
    id: list[str]
    name: list[str]
    source: DictColumn[str]
    hdu: DictColumn[str | None]
    box: NDArray[np.int64]
    has_box: NDArray[np.bool_]
    planes: DictColumn[tuple[int, ...] | None]
    sky: NDArray[np.float64]
    status: NDArray[np.uint8]
    reason: DictColumn[str]
    bytes: NDArray[np.int64]
    version: DictColumn[str]
    sha256: NDArray[np.uint8]
    granule: DictColumn[RowGranule | None]
    group: DictColumn[str] | None = None
    band: DictColumn[str] | None = None

    @classmethod
    def of(cls, rows: Sequence[RowRecord]) -> RowTable:
        """Return rows as columns."""
        if isinstance(rows, RowTable):
            return rows
        names, count = RowRecord._fields, len(rows)
        columns: Any = dict(zip(names, zip(*rows, strict=True), strict=True)) if count else {}
        column = {name: columns.get(name, ()) for name in names}
        nowhere = (np.nan,) * 3
        return cls(
            number=np.array(column["number"], np.int64),
            position=np.array(column["position"], np.int64),
            result=np.array([-1 if each is None else each for each in column["result"]], np.int64),
            id=list(column["id"]),
            name=list(column["name"]),
            source=DictColumn.of(column["source"]),
            hdu=DictColumn.of(column["hdu"]),
            box=np.array([each or (0,) * 4 for each in column["box"]], np.int64).reshape(count, 4),
            has_box=np.array([each is not None for each in column["box"]], bool),
            planes=DictColumn.of(column["planes"]),
            sky=np.array([each or nowhere for each in column["sky"]], float).reshape(count, 3),
            status=np.array([CODES[each] for each in column["status"]], np.uint8),
            reason=DictColumn.of(column["reason"]),
            bytes=np.array(column["bytes"], np.int64),
            version=DictColumn.of(column["version"]),
            sha256=digests(column["sha256"]),
            granule=DictColumn.of(column["granule"]),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[RowTable]) -> RowTable:
        """Concatenate tables."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) < 2:
            return parts[0] if parts else cls.of([])
        columns: dict[str, Any] = {}
        for field in fields(cls):
            of_each: list[Any] = [getattr(part, field.name) for part in parts]
            if isinstance(of_each[0], DictColumn):
                columns[field.name] = DictColumn.concatenate(of_each)
            elif isinstance(of_each[0], list):
                columns[field.name] = list(chain.from_iterable(of_each))
            elif of_each[0] is not None:
                columns[field.name] = np.concatenate(of_each)
        return cls(**columns)

    def take(self, rows: Any) -> RowTable:
        """Return rows by a slice, positions in this table, or a mask."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows, None if len(rows) else np.int64)
            if rows.dtype == bool:
                rows = np.flatnonzero(rows)
            positions = rows.tolist()
        columns: dict[str, Any] = {}
        for field in fields(self):
            column: Any = getattr(self, field.name)
            if isinstance(column, DictColumn):
                columns[field.name] = column.take(rows)
            elif isinstance(column, list) and not isinstance(rows, slice):
                columns[field.name] = [column[row] for row in positions]
            elif isinstance(column, np.ndarray) and is_repeated(column) and len(column):
                count = len(range(*rows.indices(len(column))) if isinstance(rows, slice) else rows)
                columns[field.name] = np.broadcast_to(column[0], (count, *column.shape[1:]))
            elif column is not None:
                columns[field.name] = column[rows]
        return RowTable(**columns)

    def end(
        self,
        status: RowStatus | NDArray[np.uint8],
        reason: str | DictColumn[str] = "",
        *,
        size: NDArray[np.int64] | None = None,
        version: DictColumn[str] | None = None,
        sha256: NDArray[np.uint8] | None = None,
    ) -> RowTable:
        """Return the same rows with their results."""
        count = len(self)
        return replace(
            self,
            status=np.full(count, CODES[status]) if isinstance(status, str) else status,
            reason=DictColumn.same(reason, count) if isinstance(reason, str) else reason,
            bytes=np.zeros(count, np.int64) if size is None else size,
            version=self.version if version is None else version,
            sha256=np.zeros((count, DIGEST_BYTES), np.uint8) if sha256 is None else sha256,
        )

    def with_status(self, changes: Mapping[int, Fault]) -> RowTable:
        """Return the same rows with another status and reason of some, which lose their box."""
        if not changes:
            return self
        rows = list(changes)
        status, has_box = self.status.copy(), self.has_box.copy()
        status[rows] = [CODES[new] for new, _ in changes.values()]
        has_box[rows] = False
        reason = self.reason.put(rows, [text for _, text in changes.values()])
        return replace(self, status=status, has_box=has_box, reason=reason)

    def to_predict(self) -> RowTable:
        """Return the rows that can be cut; those whose image was not read yet get a similar box."""
        rows = self if (sound := self.sound).all() else self.take(sound)
        if rows.has_box.all():
            return rows
        boxes = rows.box[rows.has_box]
        like = np.median(boxes, axis=0) if len(boxes) else np.array([0, 0, *UNKNOWN_SHAPE])
        return replace(rows, box=np.where(rows.has_box[:, None], rows.box, like.astype(np.int64)))

    def faults(self) -> dict[int, Fault]:
        """Return status and reason of the rows that cannot be cut, by index."""
        rows = np.flatnonzero(~self.sound)
        reasons = self.reason.take(rows).list()
        statuses = [STATUSES[code] for code in self.status[rows].tolist()]
        return dict(zip(rows.tolist(), zip(statuses, reasons, strict=True), strict=True))

    @property
    def sound(self) -> NDArray[np.bool_]:
        """Mask of rows that can be cut, or are."""
        return self.has("waiting", "ok")

    @property
    def lacks_box(self) -> NDArray[np.bool_]:
        """Mask of rows given by sky position whose box is not computed yet."""
        return ~self.has_box & self.in_sky & self.sound

    @property
    def in_sky(self) -> NDArray[np.bool_]:
        """Mask of rows given by sky position."""
        return ~np.isnan(self.sky[:, 0])

    def counts(self) -> dict[RowStatus, int]:
        """Return the number of rows per status."""
        per_code = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        return dict(zip(STATUSES, per_code, strict=True))

    def has(self, *statuses: RowStatus) -> NDArray[np.bool_]:
        """Return the mask of rows with one of some statuses."""
        mask: NDArray[np.bool_] = np.isin(self.status, [CODES[status] for status in statuses])
        return mask

    def __len__(self) -> int:
        return len(self.number)

    @overload
    def __getitem__(self, row: int) -> RowRecord: ...
    @overload
    def __getitem__(self, row: slice) -> RowTable: ...
    def __getitem__(self, row: int | slice) -> RowRecord | RowTable:
        if isinstance(row, slice):
            return self.take(row)
        return next(iter(self.take(np.array([row]))))

    def __iter__(self) -> Iterator[RowRecord]:
        boxes: Any = map(tuple, self.box.tolist())
        if not self.has_box.all():
            boxes = [
                box if is_placed else None
                for box, is_placed in zip(boxes, self.has_box, strict=True)
            ]
        in_sky = self.in_sky
        skies: Any = repeat(None, len(self))
        if in_sky.any():
            skies = [
                tuple(sky) if is_in_sky else None
                for sky, is_in_sky in zip(self.sky.tolist(), in_sky.tolist(), strict=True)
            ]
        columns = zip(
            self.number.tolist(),
            self.position.tolist(),
            [None if result < 0 else result for result in self.result.tolist()],
            self.id,
            self.name,
            self.source.list(),
            self.hdu.list(),
            boxes,
            self.planes.list(),
            skies,
            [STATUSES[code] for code in self.status.tolist()],
            self.reason.list(),
            self.bytes.tolist(),
            self.version.list(),
            hexadecimal(self.sha256),
            self.granule.list(),
            strict=True,
        )
        return map(RowRecord._make, columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it can be changed


def is_repeated(column: NDArray[Any]) -> bool:
    """Check whether a column is one value, repeated without memory for each row."""
    return len(column) > 1 and column.strides[0] == 0


def digests(texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return SHA-256 values as bytes, from hexadecimal text; empty text gives zeros."""
    zeros = "0" * DIGEST_DIGITS
    content = bytes.fromhex("".join([text or zeros for text in texts]))
    return np.frombuffer(content, np.uint8).reshape(len(texts), DIGEST_BYTES)


def hexadecimal(sha256: NDArray[np.uint8]) -> list[str]:
    """Return SHA-256 values as hexadecimal text; empty if there is none."""
    text = sha256.tobytes().hex()
    digits = [text[at : at + DIGEST_DIGITS] for at in range(0, len(text), DIGEST_DIGITS)]
    for row in np.flatnonzero(~np.any(sha256, axis=1)).tolist():
        digits[row] = ""
    return digits
