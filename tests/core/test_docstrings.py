"""Docstrings in Google style: the first paragraph, and the attributes."""

from __future__ import annotations

from swathe.core.docstrings import attributes_of, summary_of


class Lamp:
    """A lamp that
    shines.

    Attributes:
        power_w: power,
            watts.
        is_on: whether it shines.
    """


class Bare:
    """A class without attributes."""


def test_attributes_are_joined_over_lines() -> None:
    assert summary_of(Lamp) == "A lamp that shines."
    assert attributes_of(Lamp) == {"power_w": "power, watts.", "is_on": "whether it shines."}


def test_classes_without_attributes_have_none() -> None:
    assert summary_of(Bare) == "A class without attributes."
    assert attributes_of(Bare) == {}
