"""The form for new jobs."""

from __future__ import annotations

import pytest

from swathe.portal.pages.submission import FIELDS, options_of


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2005-09-21", "2005-09-21T23:59:59.999"),
        ("59000.1234", "59000.1234"),
        ("2005-09-21T04:30", "2005-09-21T04:30"),
        ("59000", "59000"),
    ],
)
def test_all_of_the_last_day_is_meant(given: str, meant: str) -> None:
    fields = {**FIELDS, "time_from": "2005-09-01", "time_to": given}
    assert options_of(fields)["time"] == ["2005-09-01", meant]
