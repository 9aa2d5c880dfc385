"""Times of staging, from requests that have ended."""

from __future__ import annotations

import pytest

from swathe.catalog.records.staging import StageOutcome
from swathe.stores.staging.stage_costs import StageCosts

MB = 10**6


def outcome(files: int, size: int, media: int, waited_s: float = 0.0) -> StageOutcome:
    """A request of a library: 30 s for a mount, 2 s for a position, 100 MB/s."""
    seconds = 30 * media + 2 * files + size / (100 * MB) + waited_s
    return StageOutcome(files, size, media, 30.0, seconds)


def test_nothing_is_known_of_a_store_without_requests() -> None:
    costs = StageCosts([])
    assert costs.at_most_s(1, 1) is None
    assert costs.parts() is None


def test_the_bound_is_that_of_requests_of_about_this_size() -> None:
    mounted = StageOutcome(4, 400 * MB, 2, 0.1, 0.3)
    costs = StageCosts([outcome(4, 400 * MB, 2), mounted, outcome(90, 9000 * MB, 9, waited_s=900)])
    assert costs.at_most_s(4, 400 * MB, 2) == pytest.approx(72)
    assert costs.at_most_s(1, MB, 1) == pytest.approx(72)
    assert costs.at_most_s(80, 9000 * MB, 9) == pytest.approx(1440)
    costs = StageCosts([outcome(4, 400 * MB, 2), mounted])
    assert costs.at_most_s(4, 400 * MB, 2) == pytest.approx(72)
    assert costs.at_most_s(8, 400 * MB, 2) == pytest.approx(144)
    for files, size, media in [(1, MB, 1), (9, 900 * MB, 3), (100, 10 * MB, 1)]:
        bound = costs.at_most_s(files, size, media)
        assert bound is not None and bound >= outcome(files, size, media).seconds


def test_parts_are_told_apart() -> None:
    cases = [(1, 100, 1), (8, 900, 1), (3, 5000, 3), (20, 40, 2), (5, 700, 4), (9, 9000, 1)]
    parts = StageCosts([outcome(files, mb * MB, media) for files, mb, media in cases]).parts()
    assert parts is not None and parts.bytes_per_s is not None
    assert parts.mount_s == pytest.approx(30)
    assert parts.position_s == pytest.approx(2)
    assert parts.bytes_per_s == pytest.approx(100 * MB)
    assert parts.seconds(3, 300 * MB, 2) == pytest.approx(outcome(3, 300 * MB, 2).seconds)
