"""Times and sizes of options: with a unit, or without."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from swathe.cli.units import size_option, time_option


def time_of(text: str, **limits: Any) -> float:
    seconds: float = time_option("--for", help="Length.", **limits).parser(text)
    return seconds


def size_of(text: str, **limits: Any) -> int:
    size: int = size_option("--size", help="Size.", **limits).parser(text)
    return size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90s", 90.0), ("0.5s", 0.5), ("250ms", 0.25), ("2 h", 7200.0)),
        *(
            ("30min", 1800.0),
            ("30m", 1800.0),
            ("7d", 604800.0),
            ("1.5e3s", 1500.0),
            ("1e+06s", 1e6),
        ),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert time_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "90", "0", "-5", "2 weeks", "nan", "inf", "1h30m", "h", "2H"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(typer.BadParameter) as error:
        time_of(text)
    form = "expected a time with its unit, as 90s, 30min, 2h or 7d"
    assert error.value.message == f"{form}, found {text!r}"


def test_times_have_limits() -> None:
    assert time_of("1min", least_s=60, most_s=60) == 60
    for text in ("59s", "61s", "9e99s"):
        with pytest.raises(typer.BadParameter, match="expected 60 to 60 seconds"):
            time_of(text, least_s=60, most_s=60)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("1000", 1000), ("1kB", 1000), ("600KB", 600_000)),
        *(("1.5MB", 1_500_000), ("2GB", 2 * 10**9)),
        *(("1KiB", 1024), ("64MiB", 1 << 26), ("1 GiB", 1 << 30), ("1TiB", 1 << 40)),
        *(("1TB", 10**12), ("12B", 12)),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "1 pint", "1mb", "nan", "1GB2"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected bytes, or a size as 500MB, 10GB or 1G"):
        size_of(text)


def test_sizes_have_limits() -> None:
    for text in ("1B", "9e99"):
        with pytest.raises(typer.BadParameter, match=r"expected 1,000 to 4,611,[0-9,]* bytes, "):
            size_of(text, least_bytes=1000)
