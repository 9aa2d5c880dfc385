"""Calendars and units of time of the CF conventions (4.4)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 10**9
DAY = 86_400 * SECOND
UNITS = {
    "nanosecond ns": 1,
    "microsecond microsec us": 10**3,
    "millisecond millisec msec ms": 10**6,
    "second sec s": SECOND,
    "minute min": 60 * SECOND,
    "hour hr h": 3600 * SECOND,
    "day d": DAY,
    "week": 7 * DAY,
}
"""Names of units of time, and their nanoseconds. Months and years have no fixed length."""
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
LAST_YEAR = 9999
"""Last year of times that are written as text."""
MOST_VALUE = 1e18
"""Numbers from which on none is a time, in any unit."""
REFORM = (1582, 10, 15)
"""First Gregorian day of the standard calendar; the day before is 4 October, Julian."""
TIME = re.compile(
    r"(?P<year>-?\d{1,5})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?P<clock>(?:T| +)(?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?)?"
    r" *(?:Z|UTC|GMT|(?P<sign>[+-])(?P<zone_hour>\d{1,2})(?::?(?P<zone_minute>\d{2}))?)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Moment:
    """A time as it is written.

    Attributes:
        date: year, month and day.
        nanoseconds: nanoseconds from the begin of the day, in UTC.
        is_date: the text has no time of day.
    """

    date: tuple[int, int, int]
    nanoseconds: int
    is_date: bool

    @classmethod
    def of(cls, text: str) -> Moment:
        """Parse a time such as `2005-05-01`, `2005-05-01T12:30:00.5Z`, `2005-5-1 12:00 +2:00`.

        A time without a zone is in UTC.

        Raises:
            ValueError: If it is no time.
        """
        match = TIME.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"expected a time such as 2005-05-01T12:00:00Z, found {text!r:.100}")
        part = {name: int(match[name] or 0) for name in ("hour", "minute", "second")}
        for name, most in (("hour", 23), ("minute", 59), ("second", 59)):
            if part[name] > most:
                raise ValueError(f"expected {name} at most {most}, found {text!r:.100}")
        seconds = part["hour"] * 3600 + part["minute"] * 60 + part["second"]
        zone = int(match["zone_hour"] or 0) * 3600 + int(match["zone_minute"] or 0) * 60
        seconds -= -zone if match["sign"] == "-" else zone
        fraction = int((match["fraction"] or "").ljust(9, "0")[:9])
        date = int(match["year"]), int(match["month"]), int(match["day"])
        return cls(date, seconds * SECOND + fraction, match["clock"] is None)


def day_number(calendar: str, date: tuple[int, int, int]) -> int:
    """Return the number of a day in a calendar; only differences have a meaning.

    Args:
        calendar: name of CF.
        date: year, month and day.

    Raises:
        ValueError: If the calendar is unknown, or has no such day.

    References:
        Explanatory Supplement to the Astronomical Almanac, 3rd edition, 15.11 (Julian days).
    """
    name = calendar.strip().lower()
    count = CALENDARS.get(name)
    if count is None:
        raise ValueError(f"expected a calendar of {', '.join(CALENDARS)}, found {calendar!r:.100}")
    return count(date)


def date_of(calendar: str, number: int) -> tuple[int, int, int]:
    """Return the day with a number of `day_number`, of a year from 1 to 9999.

    Raises:
        ValueError: If the calendar is unknown, or the day is of another year.
    """

    def first_of(year: int, month: int) -> int:
        return day_number(calendar, (year, month, 1))

    if not first_of(1, 1) <= number < first_of(LAST_YEAR + 1, 1):
        raise ValueError(f"expected a year from 1 to {LAST_YEAR}, found day {number}")
    year = bisect_right(range(1, LAST_YEAR + 1), number, key=lambda each: first_of(each, 1))
    month = bisect_right(range(1, 13), number, key=lambda each: first_of(year, each))
    day = number - first_of(year, month) + 1
    # The standard calendar has no 5 to 14 October 1582.
    days = [each for each in (day, day + 10) if _is_day(calendar, (year, month, each), number)]
    return year, month, days[0]


def _is_day(calendar: str, date: tuple[int, int, int], number: int) -> bool:
    """Check whether a date is the day with a number."""
    try:
        return day_number(calendar, date) == number
    except ValueError:
        return False


def _check_day(date: tuple[int, int, int], is_leap: bool) -> None:
    year, month, day = date
    length = 0
    if 1 <= month <= 12:
        length = LENGTHS[month - 1] + (month == 2 and is_leap)
    if not 1 <= day <= length:
        raise ValueError(f"expected a day of the calendar, found {year}-{month:02}-{day:02}")


def _julian_day(date: tuple[int, int, int], is_gregorian: bool) -> int:
    year, month, day = date
    is_leap = year % 4 == 0 and (not is_gregorian or year % 100 != 0 or year % 400 == 0)
    _check_day(date, is_leap)
    before_march = (14 - month) // 12
    years = year + 4800 - before_march
    months = month + 12 * before_march - 3
    days = day + (153 * months + 2) // 5 + 365 * years + years // 4
    return days - 32083 if not is_gregorian else days - years // 100 + years // 400 - 32045


def _standard_day(date: tuple[int, int, int]) -> int:
    if date[0] < 1:
        raise ValueError(f"expected a year from 1 in the standard calendar, found {date[0]}")
    if (1582, 10, 4) < date < REFORM:
        raise ValueError(
            f"expected a day of the standard calendar, found {date[0]}-{date[1]:02}-{date[2]:02}, "
            "which the Gregorian reform left out"
        )
    return _julian_day(date, date >= REFORM)


def _equal_year(date: tuple[int, int, int], is_leap: bool) -> int:
    year, month, day = date
    _check_day(date, is_leap)
    return year * (365 + is_leap) + sum(LENGTHS[: month - 1]) + (is_leap and month > 2) + day


def _equal_month(date: tuple[int, int, int]) -> int:
    year, month, day = date
    if not (1 <= month <= 12 and 1 <= day <= 30):
        raise ValueError(f"expected a day of 360_day, found {year}-{month:02}-{day:02}")
    return year * 360 + (month - 1) * 30 + day


CALENDARS: dict[str, Callable[[tuple[int, int, int]], int]] = {
    "standard": _standard_day,
    "gregorian": _standard_day,
    "proleptic_gregorian": partial(_julian_day, is_gregorian=True),
    "julian": partial(_julian_day, is_gregorian=False),
    "noleap": partial(_equal_year, is_leap=False),
    "365_day": partial(_equal_year, is_leap=False),
    "all_leap": partial(_equal_year, is_leap=True),
    "366_day": partial(_equal_year, is_leap=True),
    "360_day": _equal_month,
}


@dataclass(frozen=True)
class TimeUnits:
    """Units of a time coordinate, such as `days since 1850-01-01`.

    Attributes:
        nanoseconds: nanoseconds of a unit.
        reference: nanoseconds of the reference time, as `nanoseconds_of`.
        calendar: name of the calendar.
    """

    nanoseconds: int
    reference: int
    calendar: str

    @classmethod
    def of(cls, units: str, calendar: str) -> TimeUnits:
        """Parse units.

        Raises:
            ValueError: If unit, reference time or calendar is not known.
        """
        unit, _, since = re.sub(r"\s+", " ", units.strip()).partition(" since ")
        name = unit.lower()
        singular = name[:-1] if len(name) > 3 and name.endswith("s") else name
        for names, length in UNITS.items():
            if {name, singular} & set(names.split()):
                return cls(length, nanoseconds_of(Moment.of(since), calendar), calendar)
        raise ValueError(
            f"expected a unit of {', '.join(each.split()[0] for each in UNITS)}, "
            f"found {units!r:.100}"
        )

    def value_of(self, nanoseconds: int) -> float:
        """Return a time of `nanoseconds_of` in these units."""
        return (nanoseconds - self.reference) / self.nanoseconds

    def text_of(self, value: float) -> str:
        """Return a time in these units as text, to the second: `2005-05-01T12:30:00`.

        Raises:
            ValueError: If its year is not from 1 to 9999.
        """
        if not abs(value) < MOST_VALUE:
            raise ValueError(f"expected a time, found {value}")
        seconds = round((round(value * self.nanoseconds) + self.reference) / SECOND)
        number, rest = divmod(seconds, DAY // SECOND)
        year, month, day = date_of(self.calendar, number)
        minutes, second = divmod(rest, 60)
        hour, minute = divmod(minutes, 60)
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


def nanoseconds_of(moment: Moment, calendar: str) -> int:
    """Return nanoseconds in a calendar; only differences have a meaning.

    Leap seconds do not count.

    Raises:
        ValueError: If the calendar is unknown, or has no such day.
    """
    return day_number(calendar, moment.date) * DAY + moment.nanoseconds
