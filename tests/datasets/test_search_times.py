"""Times of searches: what their ends mean."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from astropy.time import Time

from swathe.core.errors import DatasetError, SubscriptionError
from swathe.datasets.search_times import read_open_times, read_times, read_until

DAY = 53497.0  # 2005-05-07
LAST = math.nextafter(DAY + 1, 0)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2005-05-07", LAST),
        ("2005-5-7", LAST),
        ("2005:127", LAST),
        ("2005-05-07T00:00", DAY),
        ("2005-05-07T06:00:00", DAY + 0.25),
        ("53497", DAY),
        (53497, DAY),
        (Time("2005-05-07"), DAY),
    ],
)
def test_a_last_day_counts_as_a_whole(given: Any, meant: float) -> None:
    assert read_times(("2005-05-01", given)) == pytest.approx((DAY - 6, meant), abs=1e-11)
    open_times = read_open_times((None, given))
    assert open_times is not None
    assert open_times[0] is None and open_times[1] == pytest.approx(meant, abs=1e-11)


def test_a_first_day_begins_at_its_midnight() -> None:
    assert read_times(("2005-05-07", "2005-05-07")) == pytest.approx((DAY, LAST), abs=1e-11)
    assert read_open_times(("2005-05-07", None)) == (DAY, None)
    with pytest.raises(DatasetError, match="start before the end"):
        read_times(("2005-05-08", "2005-05-07"))
    with pytest.raises(DatasetError, match=r"found '2005-05-32'$"):
        read_times(("2005-05-01", "2005-05-32"))


def test_a_subscription_ends_with_its_last_day() -> None:
    for text in ("2027-01-01", "20270101", "2026-W53-5"):
        assert read_until(text) == datetime(2027, 1, 1, 23, 59, 59, 999_999, UTC)
    assert read_until("2027-01-01T12:00") == datetime(2027, 1, 1, 12, tzinfo=UTC)
    assert read_until("2027-01-01T12:00+02:00") == datetime(
        2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))
    )
    with pytest.raises(SubscriptionError, match="until: expected a time as"):
        read_until("soon")
    with pytest.raises(SubscriptionError, match="until: expected a time as"):
        read_until("9999-12-31T23:59:59-12:00")


def test_a_last_day_has_its_leap_second() -> None:
    times = read_times(("2016-12-31", "2016-12-31"))
    assert times is not None
    assert times[0] < Time("2016-12-31T23:59:60.999", scale="utc").mjd <= times[1] < 57754
