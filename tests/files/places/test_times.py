"""Regions by time, and calendars, equal those of cftime."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swathe
from swathe.core.errors import FormatError, NoOverlapError, RegionError
from swathe.files.array import Array
from swathe.files.array_file import ArrayFile
from swathe.files.places.calendars import (
    CALENDARS,
    DAY,
    SECOND,
    Moment,
    TimeUnits,
    date_of,
    day_number,
    nanoseconds_of,
)
from swathe.files.places.times import region_of_time
from tests.conftest import DATA

cftime = pytest.importorskip("cftime")
xarray = pytest.importorskip("xarray")
h5py = pytest.importorskip("h5py")


def array_of(path: Path, name: str) -> Array:
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    return file[name]


def series(path: Path, values: Any, units: str, **attrs: Any) -> Array:
    """Return an array (time, x) of a NetCDF file."""
    xarray.Dataset(
        {"t2": (("time", "x"), np.zeros((len(values), 3), "f4"))},
        coords={"time": ("time", np.asarray(values), {"units": units, **attrs})},
    ).to_netcdf(path)
    return array_of(path, "t2")


@pytest.mark.parametrize("calendar", CALENDARS)
@settings(deadline=None)
@given(days=st.integers(0, 900_000))
def test_day_number_equals_cftime(calendar: str, days: int) -> None:
    units = "days since 0001-01-01"
    day = cftime.num2date(days, units, calendar, has_year_zero=None)
    first = day_number(calendar, (1, 1, 1))
    assert day_number(calendar, (day.year, day.month, day.day)) - first == days
    assert date_of(calendar, first + days) == (day.year, day.month, day.day)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_days_of_other_years_have_no_date(calendar: str) -> None:
    first, last = day_number(calendar, (1, 1, 1)), day_number(calendar, (9999, 12, 30))
    for number in (first - 1, last + 400):
        with pytest.raises(ValueError, match="expected a year from 1 to 9999"):
            date_of(calendar, number)


@pytest.mark.parametrize(
    ("value", "units", "text"),
    [
        (1.5, "days since 2000-02-28", "2000-02-29T12:00:00"),
        (-1, "seconds since 2000-01-01", "1999-12-31T23:59:59"),
        (0.25, "hours since 1582-10-15", "1582-10-15T00:15:00"),
        (-1, "days since 1582-10-15", "1582-10-04T00:00:00"),
        (20000 + 1 / 3, "days since 1970-01-01", "2024-10-04T08:00:00"),
        (0.9999, "seconds since 1999-12-31T23:59:59", "2000-01-01T00:00:00"),
    ],
)
def test_time_as_text(value: float, units: str, text: str) -> None:
    assert TimeUnits.of(units, "standard").text_of(value) == text


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, 1e9])
def test_number_that_is_no_time_has_no_text(value: float) -> None:
    with pytest.raises(ValueError, match="expected a "):
        TimeUnits.of("days since 2000-01-01", "standard").text_of(value)


@given(
    st.sampled_from(["days", "hours", "minutes", "seconds", "milliseconds"]),
    st.datetimes(datetime(1600, 1, 1), datetime(2200, 1, 1)),
)
def test_value_equals_cftime(unit: str, time: datetime) -> None:
    units = f"{unit} since 1900-01-01 12:00"
    value = TimeUnits.of(units, "standard").value_of(
        nanoseconds_of(Moment.of(time.isoformat()), "standard")
    )
    assert value == pytest.approx(cftime.date2num(time, units, "standard"), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2000-01-02", DAY),
        ("2000-1-2 6", DAY + 21_600 * SECOND),
        ("2000-01-02T06:30Z", DAY + 23_400 * SECOND),
        ("2000-01-02 06:30:05.25 UTC", DAY + 23_405 * SECOND + SECOND // 4),
        ("2000-01-02T00:00:00+02:00", DAY - 7200 * SECOND),
        ("2000-01-02 00:00 -1:30", DAY + 5400 * SECOND),
        ("2000-01-02T00:00:00.123456789", DAY + 123_456_789),
    ],
)
def test_moment(text: str, nanoseconds: int) -> None:
    begin = nanoseconds_of(Moment.of("2000-01-01"), "standard")
    assert nanoseconds_of(Moment.of(text), "standard") - begin == nanoseconds


@pytest.mark.parametrize(
    ("calendar", "text"),
    [
        ("standard", "1582-10-10"),
        ("standard", "2001-02-29"),
        ("standard", "0000-01-01"),
        ("proleptic_gregorian", "1900-02-29"),
        ("noleap", "2000-02-29"),
        ("360_day", "2000-01-31"),
        ("julian", "2000-13-01"),
        ("julian", "2000-00-01"),
        ("tai", "2000-01-01"),
    ],
)
def test_days_that_a_calendar_lacks_raise(calendar: str, text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        nanoseconds_of(Moment.of(text), calendar)


@pytest.mark.parametrize(
    "text",
    ["", "2000", "2000-01", "now", "2000-01-01T24:00", "2000-01-01T00:00:60", "\u0661-1-1"],
)
def test_texts_that_are_no_times_raise(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Moment.of(text)


HOURS = np.arange(0, 240, 6.0)


@pytest.fixture(scope="module")
def hourly(tmp_path_factory: pytest.TempPathFactory) -> Array:
    """Every 6 hours from 1 to 10 May 2005."""
    path = tmp_path_factory.mktemp("times") / "a.nc"
    return series(path, HOURS, "hours since 2005-05-01 00:00:00")


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2005-05-02", "2005-05-03", (4, 12)),
        ("2005-05-02", "2005-05-03T00:00", (4, 9)),
        (date(2005, 5, 2), date(2005, 5, 2), (4, 8)),
        (np.datetime64("2005-05-02"), np.datetime64("2005-05-02T06:00:00"), (4, 6)),
        (datetime(2005, 5, 2), datetime(2005, 5, 2), (4, 5)),
        (datetime(2005, 5, 2, 2, tzinfo=timezone(timedelta(hours=2))), "2005-05-02T05:59Z", (4, 5)),
        (datetime(2005, 5, 2, tzinfo=UTC), "2005-05-02T06:00-01:00", (4, 6)),
        ("1990-01-01", "2200-01-01", (0, 40)),
    ],
)
def test_range(hourly: Array, first: Any, last: Any, expected: tuple[int, int]) -> None:
    assert region_of_time(hourly, (first, last)) == {0: expected}


@pytest.mark.parametrize(
    "times", [("2005-05-11", "2006-01-01"), ("2005-05-01T01:00", "2005-05-01T05:00")]
)
def test_range_without_a_time_raises(hourly: Array, times: tuple[str, str]) -> None:
    with pytest.raises(
        NoOverlapError, match=r"expected times from .*; its times are from"
    ) as error:
        region_of_time(hourly, times)
    assert str(error.value).endswith("from 2005-05-01T00:00:00 to 2005-05-10T18:00:00")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("2005-05-01", r"expected \(from, to\)"),
        (("2005-05-01",), r"expected \(from, to\)"),
        (None, r"expected \(from, to\)"),
        (("2005-05-01", 7), "expected a text, a date or a datetime, found 7"),
        (("2005-05-01", "later"), "expected a time such as"),
        (("2005-05-02", "2005-05-01"), "expected from before to"),
        (("2005-02-29", "2005-05-01"), "expected a day of the calendar"),
        ((np.datetime64("NaT"), "2005-05-01"), "expected a time such as"),
    ],
)
def test_invalid_range_raises(hourly: Array, times: Any, message: str) -> None:
    with pytest.raises(RegionError, match=message):
        region_of_time(hourly, times)


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "julian", "proleptic_gregorian"])
def test_range_in_a_calendar_equals_xarray(tmp_path: Path, calendar: str) -> None:
    array = series(
        tmp_path / "a.nc", np.arange(0, 4000, 0.5), "days since 1999-01-01", calendar=calendar
    )
    coder = xarray.coders.CFDatetimeCoder(use_cftime=True)
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=coder, engine="netcdf4") as dataset:
        expected = dataset.t2.sel(time=slice("2000-02-27", "2003-03-01"))
        (ends,) = region_of_time(array, ("2000-02-27", "2003-03-01")).values()
        assert dataset.t2[slice(*ends)].identical(expected)
    if calendar == "360_day":
        assert region_of_time(array, ("2000-02-30", "2000-02-30")) == {0: (838, 840)}


def test_values_without_a_time_are_outside(tmp_path: Path) -> None:
    array = series(tmp_path / "a.nc", [np.nan, 1, 2, np.nan, 4], "days since 2000-01-01")
    assert region_of_time(array, ("1900-01-01", "2100-01-01")) == {0: (1, 5)}
    with pytest.raises(NoOverlapError, match="from 2000-01-02T00:00:00 to 2000-01-05T00:00:00"):
        region_of_time(array, ("1900-01-01", "1901-01-01"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.nan, "found none; it has no time"), (1e30, "its times are numbers from 1e.30 to 1e.30")],
)
def test_array_without_a_sound_time(tmp_path: Path, value: float, text: str) -> None:
    array = series(tmp_path / "a.nc", [value, value], "days since 2000-01-01")
    with pytest.raises(NoOverlapError, match=text):
        region_of_time(array, ("1900-01-01", "1901-01-01"))


@pytest.mark.parametrize(
    ("units", "calendar", "message"),
    [
        ("months since 2000-01-01", "standard", "expected a unit of"),
        ("days since the flood", "standard", "expected a time such as"),
        ("days since 2000-01-01", "tai", "expected a calendar of"),
    ],
)
def test_unknown_units_raise(tmp_path: Path, units: str, calendar: str, message: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["time"] = np.arange(3.0)
        file["time"].make_scale()
        file["time"].attrs.update({"units": units, "calendar": calendar})
        file["t2"] = np.zeros(3)
        file["t2"].dims[0].attach_scale(file["time"])
    with pytest.raises(FormatError, match=message):
        region_of_time(array_of(tmp_path / "a.h5", "t2"), ("2000-01-01", "2001-01-01"))


def test_one_time_for_all_elements(tmp_path: Path) -> None:
    xarray.Dataset(
        {"t2": ("x", np.zeros(3))}, coords={"time": ((), 5, {"units": "days since 2000-01-01"})}
    ).to_netcdf(tmp_path / "a.nc")
    array = array_of(tmp_path / "a.nc", "t2")
    assert region_of_time(array, ("2000-01-06", "2000-01-06")) == {}
    with pytest.raises(NoOverlapError):
        region_of_time(array, ("2000-01-07", "2000-01-08"))


def test_array_without_time_raises(tmp_path: Path) -> None:
    xarray.Dataset({"t2": ("x", np.zeros(3))}).to_netcdf(tmp_path / "a.nc")
    with pytest.raises(RegionError, match="expected a time coordinate"):
        region_of_time(array_of(tmp_path / "a.nc", "t2"), ("2000-01-07", "2000-01-08"))


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")
@pytest.mark.parametrize(
    ("name", "path", "time"),
    [
        ("formats/air.nc", "air", "time"),
        ("swath/ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc", "wind_dir", "time"),
        (
            "swath/TEMPO_NO2_L2_V03_20240601T211614Z_S012G02_subsetted.nc4",
            "product/vertical_column_stratosphere",
            "geolocation/time",
        ),
    ],
)
def test_real_file_equals_cftime(name: str, path: str, time: str) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(DATA / name) as file:
        variable = file[time]
        times = cftime.num2pydate(variable[...], variable.units)
    first, last = np.sort(times.compressed())[[times.size // 3, times.size // 2]]
    mask = np.ma.filled((times >= first) & (times <= last), False)
    region = region_of_time(
        array_of(DATA / name, path),
        (first - timedelta(milliseconds=1), last + timedelta(milliseconds=1)),
    )
    assert list(region.values()) == [
        (int(places.min()), int(places.max()) + 1) for places in mask.nonzero()
    ]
