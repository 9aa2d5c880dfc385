"""Sizes as people say them."""

from __future__ import annotations

import pytest

from swathe.core.format import GIB, KIB, MIB, size_text


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
