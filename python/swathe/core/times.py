"""Instants as modified Julian dates and as text of RFC 3339."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from swathe.core.errors import DatasetError
from swathe.core.value_errors import short_text

MJD_EPOCH = datetime(1858, 11, 17, tzinfo=UTC)
_DAY = timedelta(days=1)
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,30})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def mjd_of(moment: datetime) -> float:
    """Return the modified Julian date, UTC, of a time with a time zone."""
    return (moment - MJD_EPOCH) / _DAY


def utc_of(mjd: float) -> datetime:
    """Return the time of a modified Julian date, UTC, to the millisecond.

    Raises:
        OverflowError: If it is not between the years 1 and 9999.
    """
    at = MJD_EPOCH + timedelta(days=mjd)
    return at.replace(microsecond=0) + timedelta(milliseconds=round(at.microsecond / 1000))


def read_moment(text: str) -> datetime:
    """Read a time with its time zone, as `2005-05-01T12:00:00Z` (RFC 3339).

    Raises:
        DatasetError: If it has another form, or is no time.
    """
    match = _RFC_3339.fullmatch(text[:100])
    if match is not None:
        # Python reads at most six digits after the point.
        fraction = (match[1] or "")[:7]
        with suppress(ValueError):  # such as a month 13
            return datetime.fromisoformat(f"{text[:10]}T{text[11:19]}{fraction}{match[2].upper()}")
    raise DatasetError(
        f"datetime: expected a time as 2005-05-01T12:00:00Z, found {short_text(text)}"
    )
