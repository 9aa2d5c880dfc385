"""One row of a list of targets as a plain value."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

from swathe.core.errors import NoOverlapError, NotFoundError, SwatheError

RowStatus = Literal["waiting", "ok", "no-overlap", "missing", "error"]

Fault: TypeAlias = tuple[RowStatus, str]
"""Status of a row that cannot be cut, and the reason."""
STATUSES: tuple[RowStatus, ...] = get_args(RowStatus)
END_STATUSES = STATUSES[1:]
"""Statuses of rows that do not wait."""
WITHOUT_RESULT = STATUSES[2:]
"""Statuses of rows that have ended without a result."""


def fault_of(error: SwatheError) -> Fault:
    """Return the status and reason of a row that an error affects."""
    if isinstance(error, NoOverlapError):
        return "no-overlap", str(error)
    return "missing" if isinstance(error, NotFoundError) else "error", str(error)


class RowGranule(NamedTuple):
    """What a list of targets says of a granule.

    Attributes:
        start: first time, ISO 8601 in UTC; empty if unknown.
        end: last time.
        role: `group`, or `before` or `after` for a neighbour in time.
        version: version that the granule must have; empty: any.
    """

    start: str = ""
    end: str = ""
    role: str = "group"
    version: str = ""


OTHER_SIDE = -1
"""In place of a plane, which has a number from 0."""


def plane_spans(planes: tuple[int, ...] | None) -> list[tuple[int, int]]:
    """Return ranges of planes on NAXIS3 and the axes after it, from those of a `RowRecord`."""
    pairs = [] if planes is None else zip(planes[::2], planes[1::2], strict=True)
    return [(first, last) for first, last in pairs if first != OTHER_SIDE]


def other_side(planes: tuple[int, ...] | None) -> int:
    """Return how many columns the planes of a `RowRecord` add from the begin of rows."""
    return planes[-1] if planes and planes[-2] == OTHER_SIDE else 0


class RowRecord(NamedTuple):
    """A region of an image, and its result: a tuple, because a job has 100,000.

    Attributes:
        number: position in the user's list, from 0.
        position: position in the order of work, rows of one object together.
        result: number of the combined result that the row belongs to.
        name: file name, without suffix.
        hdu: number, name, or `NAME,VERSION`.
        box: x0, y0, width, height; `None` if not known yet or not possible.
        planes: for cubes, first and last on NAXIS3, then on the following axes; axes not listed are
            complete. At their end `(OTHER_SIDE, count)` says that the box goes over the edge of a
            global grid: it has the first `count` columns, too, after the last ones.
        sky: requested right ascension, declination and size, degrees (ICRS).
        version: version of the object it was cut from.
        granule: what the list says of a granule that is read whole; `None` if nothing.
    """

    number: int
    position: int
    result: int | None
    id: str
    name: str
    source: str
    hdu: str | None
    box: tuple[int, int, int, int] | None
    planes: tuple[int, ...] | None
    sky: tuple[float, float, float] | None
    status: RowStatus = "waiting"
    reason: str = ""
    bytes: int = 0
    version: str = ""
    sha256: str = ""
    granule: RowGranule | None = None
