"""Sizes, rates, durations and moments as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from swathe.core.format import (
    GIB,
    KIB,
    MIB,
    count_text,
    forecast_text,
    harmless_text,
    moment_text,
    number_text,
    rate_text,
    seconds_text,
    size_text,
)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (KIB - 1, "0.999 KiB"),
        (KIB, "1 KiB"),
        (3 * MIB // 2, "1.5 MiB"),
        (9 * GIB, "9 GiB"),
    ],
)
def test_sizes_are_told_in_the_largest_unit_they_reach(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_digits_are_those_asked_for() -> None:
    assert size_text(4 * GIB, ".1f") == "4.0 GiB"
    assert size_text(512, ".1f") == "512 B"


def test_rates_have_decimal_units() -> None:
    rates = [rate_text(rate) for rate in (0, 999, 1500, 1.17e8, 9.996e8, 1.25e10)]
    assert rates == ["0 B/s", "999 B/s", "1.5 kB/s", "117 MB/s", "1 GB/s", "12.5 GB/s"]


def test_numbers_have_three_digits_or_all_before_the_point() -> None:
    numbers = [number_text(number) for number in (0.01234, 1.5, 99.94, 123.4, 12_345)]
    assert numbers == ["0.0123", "1.5", "99.9", "123", "12,345"]


def test_predicted_times_below_the_noise_have_no_digits() -> None:
    assert forecast_text(0.0999) == "under 0.1 s"
    assert forecast_text(0.1) == "100 ms"
    assert seconds_text(7265) == "2 h 1 min"


def test_moments_are_in_utc() -> None:
    at = datetime(2026, 11, 21, 15, 4, 9, tzinfo=timezone(timedelta(hours=2)))
    assert moment_text(at) == "2026-11-21 13:04:09 UTC"
    assert moment_text(datetime(2026, 1, 2, tzinfo=UTC), "%Y-%m-%d") == "2026-01-02 UTC"


def test_terminals_are_not_sent_control_characters() -> None:
    text = "a\x1b[31m\nb\u202e\x9b\r\udcff é"
    assert harmless_text(text) == "a\\x1b[31m\nb\\u202e\\x9b\\r\\udcff é"
    assert harmless_text("a\nb", controls="") == "a\\nb"


def test_a_count_has_its_noun_in_the_right_number() -> None:
    texts = [count_text(number, "image") for number in (0, 1, 2, 1200)]
    assert texts == ["0 images", "1 image", "2 images", "1,200 images"]
