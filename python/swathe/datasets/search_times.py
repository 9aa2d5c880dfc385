"""Times of searches: both ends belong to them, and a last day without a time counts as a whole."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from datetime import time as day_time
from numbers import Real
from typing import Any

from swathe.core.errors import DatasetError, SubscriptionError

DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{4}:\d{1,3}")
"""Days without a time, also as year and day of the year, as astropy reads them."""


def read_times(time: tuple[Any, Any] | None) -> tuple[float, float] | None:
    """Return start and end, as `find` accepts them, as MJD in UTC; a last day counts as a whole.

    Raises:
        DatasetError: If they are invalid.
    """
    if time is None:
        return None
    if not isinstance(time, tuple | list) or len(time) != 2:
        raise DatasetError(f"time: expected a start and an end, found {time!r}")
    start, end = _mjd(time[0]), _mjd(time[1], is_end=True)
    if start > end:
        raise DatasetError(f"time: expected the start before the end, found MJD {start} to {end}")
    return start, end


def read_open_times(time: tuple[Any, Any] | None) -> tuple[float | None, float | None] | None:
    """Return start and end as MJD in UTC, either `None` if it is open; `None` if both are.

    Raises:
        DatasetError: If they are invalid.
    """
    if not isinstance(time, tuple | list) or len(time) != 2:
        return read_times(time)
    if all(each is None for each in time):
        return None
    start, end = time
    times = read_times((end if start is None else start, start if end is None else end))
    assert times is not None
    return (None if start is None else times[0], None if end is None else times[1])


def read_until(text: str) -> datetime:
    """Return a time to come, in UTC if it names no zone; a day alone counts as a whole.

    Raises:
        SubscriptionError: If it is no time.
    """
    try:
        at = _end_of(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise SubscriptionError(
            f"until: expected a time as 2027-01-01 or 2027-01-01T12:00:00Z, found {text!r:.60}"
        ) from None


def _end_of(text: str) -> datetime:
    """Return the last moment of a day, or a moment."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    return datetime.combine(day, day_time.max)


def _mjd(value: Any, *, is_end: bool = False) -> float:
    text = str(value).strip()
    try:
        mjd = float(value if isinstance(value, Real) else text)
    except ValueError:
        from astropy.time import Time

        try:
            moment = value if isinstance(value, Time) else Time(text, scale="utc")
            mjd = float(moment.utc.mjd)
        except Exception as error:  # each format of astropy has its own
            raise DatasetError(
                f"time: expected an MJD, or text as 2005-09-21T04:30:00 (UTC); found {text[:50]!r}"
            ) from error
    except TypeError as error:
        raise DatasetError(f"time: expected an MJD or text, found {text[:50]!r}") from error
    if not math.isfinite(mjd):
        raise DatasetError(f"time: expected a finite MJD, found {mjd}")
    # A day is 1 MJD also where a leap second ends it.
    return math.nextafter(mjd + 1, 0) if is_end and DAY.fullmatch(text) else mjd
