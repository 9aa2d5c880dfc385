"""Regions of arrays by time."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from swathe.core.errors import FormatError, NoOverlapError, RegionError
from swathe.files.places.calendars import DAY, Moment, TimeUnits, nanoseconds_of
from swathe.files.places.coordinates import axes_of, find, index_box, scopes_of, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array


def region_of_time(
    array: Array, times: Sequence[Any], advice: str = ""
) -> dict[int, tuple[int, int]]:
    """Return the smallest part of an array that has all times of a range.

    Args:
        array: an array with a time coordinate of CF, of any number of axes.
        times: `(from, to)`: texts such as `2005-05-01` or `2005-05-01T12:00:00Z`, dates, datetimes,
            or `numpy.datetime64`. Both ends belong to the range; a date alone means the whole
            day. They are in the calendar of the array and in UTC, without leap seconds.
        advice: what else gives a region, for the error of an array without times.

    Returns:
        `(start, stop)` by the number of the axis; other axes stay whole. It is empty if the array
        has one time for all elements.

    Raises:
        FormatError: If the coordinate cannot be read, or its units are not known.
        LimitError: If it is too large.
        NoOverlapError: If no time lies in the range.
        RegionError: If the range is invalid, or the array has no time, or several.
    """
    what = f"{array.url}, array {array.path}"
    first, last = _moments(times)
    coordinate = time_of(array, advice)
    attrs = coordinate.attrs
    try:
        units = TimeUnits.of(str(attrs.get("units", "")), str(attrs.get("calendar", "standard")))
    except ValueError as error:
        raise FormatError(
            f"{array.url}, time {coordinate.path}: units or calendar: {error}"
        ) from None
    try:
        start = units.value_of(nanoseconds_of(first, units.calendar))
        end = units.value_of(nanoseconds_of(last, units.calendar) + DAY * last.is_date)
    except ValueError as error:
        raise RegionError(f"time, calendar {units.calendar}: {error}") from None
    if start > end or (last.is_date and start == end):
        raise RegionError(f"time: expected from before to, found {times[0]} and {times[1]}")

    least, largest = math.inf, -math.inf

    def mask_of_values(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        nonlocal least, largest
        least = min(least, values.min(initial=math.inf, where=values == values))
        largest = max(largest, values.max(initial=-math.inf, where=values == values))
        before_end = values < end if last.is_date else values <= end
        return (values >= start) & before_end

    axes = axes_of(coordinate, array) or ()
    ends: list[tuple[int, int]] | None
    if not coordinate.ndim:
        ends = [] if mask_of_values(values_of(coordinate)).all() else None
    else:
        ends = index_box(
            coordinate.shape,
            lambda start, stop: mask_of_values(values_of(coordinate, start, stop)),
        )
    if ends is None:
        raise NoOverlapError(
            f"{what}: expected times from {times[0]} to {times[1]}, found none; "
            f"{_span(units, least, largest)}"
        )
    return dict(zip(axes, ends, strict=True))


def _span(units: TimeUnits, least: float, largest: float) -> str:
    """Return which times an array has, for an error."""
    if least > largest:
        return "it has no time"
    try:
        return f"its times are from {units.text_of(least)} to {units.text_of(largest)}"
    except ValueError:
        return f"its times are numbers from {least:g} to {largest:g}"


def time_of(array: Array, advice: str = "") -> Array:
    """Return the time coordinate of an array; the one on most axes, if there are several.

    An error that there is none ends in the advice.

    Raises:
        RegionError: If there is none.
    """

    def fits(other: Array) -> bool:
        if "since" not in str(other.attrs.get("units", "")):
            return False
        return other.ndim == 0 or axes_of(other, array) is not None

    for others in scopes_of(array):
        times = find(array, "time", others, fits)
        if times:
            return max(times, key=lambda each: each.ndim)
    raise RegionError(
        f"{array.url}, array {array.path}: expected a time coordinate (units such as "
        f"'days since 2000-01-01'), found none{advice and '; '}{advice}"
    )


def _moments(times: Any) -> tuple[Moment, Moment]:
    form = "time: expected (from, to), such as ('2005-05-01', '2005-05-07')"
    if isinstance(times, str):
        raise RegionError(f"{form}, found {times!r:.100}")
    try:
        first, last = times
    except (TypeError, ValueError):
        raise RegionError(f"{form}, found {times!r:.100}") from None
    return _moment(first), _moment(last)


def _moment(value: Any) -> Moment:
    """Parse one end of a range."""
    import numpy as np

    if isinstance(value, datetime):
        text = (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    elif isinstance(value, date | np.datetime64):
        text = str(value)
    elif isinstance(value, str):
        text = value
    else:
        raise RegionError(f"time: expected a text, a date or a datetime, found {value!r:.100}")
    try:
        return Moment.of(text)
    except ValueError as error:
        raise RegionError(f"time: {error}") from None
