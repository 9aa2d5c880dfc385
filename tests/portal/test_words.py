"""Numbers, times and places as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args, get_type_hints

import pytest

from swathe.portal.config import WorkersSettings
from swathe.portal.pages import words


def plain(text: str) -> str:
    return text.replace(words.THIN, " ").replace(words.MINUS, "-")


@pytest.mark.parametrize(
    ("time_s", "told"),
    [
        (None, words.NOTHING),
        (0, "0 s"),
        (1.3e-6, "1.3 µs"),
        (0.0425, "42.5 ms"),
        (0.99996, "1 s"),
        (1, "1 s"),
        (9.876, "9.88 s"),
        (59.4, "59.4 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (120, "2 min"),
        (3599.7, "1 h"),
        (12_000, "3 h 20 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_seconds(time_s: float | None, told: str) -> None:
    assert plain(words.seconds(time_s)) == told


def test_every_starter_of_workers_has_words() -> None:
    starters = get_args(get_type_hints(WorkersSettings)["grow"])
    assert {each for each in starters if each} == set(words.STARTERS)


def test_numbers_have_units() -> None:
    assert plain(words.size(1536)) == "1.5 KiB"
    assert plain(words.size(1010 * 1024)) == "0.986 MiB"
    assert not any("e+" in words.size(1.07**power) for power in range(1, 600))
    assert plain(words.rate(1.17e8)) == "117 MB/s"
    assert plain(words.percent(0.123)) == "12 %"
    assert plain(words.signed_percent(-0.5)) == "-50 %"
    assert plain(words.signed_percent(3.0)) == "+300 %"
    assert words.plural(1, "image") == "1 image"
    assert words.plural(1200, "copy", "copies") == "1,200 copies"
    assert words.shape((3, 1489, 2048)) == f"2048 {words.TIMES} 1489 {words.TIMES} 3"


def test_angles() -> None:
    assert plain(words.degrees(-1.05)) == "-1.0500°"
    assert words.angle(1.25) == "1.25°"
    assert words.angle(0.2) == f"12{words.MINUTES}"
    assert words.angle(0.396 / 3600) == f"0.396{words.SECONDS}"


def test_times() -> None:
    assert words.instant(datetime(2026, 11, 21, 13, 4, 9, tzinfo=UTC)) == "2026-11-21 13:04 UTC"
    assert words.moment(51813.5) == "2000-09-26 12:00:00"
    assert words.days(51813, 51813.9) == "2000-09-26"
    assert words.days(51813, 51912) == "2000-09-26 to 2001-01-03"
    for beyond in (1e300, -1e9, float("nan"), float("inf")):
        assert words.day(beyond)
        assert words.moment(beyond)
