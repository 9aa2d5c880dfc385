"""Runs whose clock is hours ahead or behind, and jumps while they write."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog, this_host

DAY = timedelta(days=1)


class Clock(datetime):
    """The time of day of a machine whose clock is so much ahead; other clocks do not jump."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Return the time."""
        return datetime.now(tz) + cls.ahead


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    for module in ("swathe.runs.writing.run_head", "swathe.catalog.runs"):
        monkeypatch.setattr(f"{module}.datetime", Clock)
    monkeypatch.setattr(Clock, "ahead", timedelta(0))
    with Catalog.open() as catalog:
        for name in ("disk", "spare"):
            (tmp_path / name).mkdir()
            catalog.add_store(name, str(tmp_path / name), "local")


def write(before: timedelta, after: timedelta) -> None:
    """Write a run with a clock that jumps in mid-run."""
    Clock.ahead = before
    with swathe.run("app", iterations=9) as run:
        array = run.array("a", (100,), "f4", location=["disk", "spare"])
        last = run.array("last", (10,), "f4", mode="overwrite", location="disk")
        for iteration in range(10):
            if iteration == 5:
                Clock.ahead = after
            array.write(iteration, np.full(100, iteration, "f4"))
            last.write(iteration, np.full(10, iteration, "f4"))


@pytest.mark.parametrize(("before", "after"), [(0 * DAY, DAY), (DAY, -DAY)])
def test_a_clock_that_jumps_moves_and_loses_no_dump(before: timedelta, after: timedelta) -> None:
    write(before, after)
    stored = swathe.open_run("app")
    assert list(stored["a"]) == list(range(10)) and list(stored["last"]) == [8, 9]
    for iteration, dump in stored["a"].items():
        assert np.all(dump[...] == iteration)
    assert np.all(stored["last"][9][...] == 9)
    with Catalog.open() as catalog:
        array, _ = catalog.run_arrays(stored.record.id)
        dumps = catalog.dumps(array.id)
    assert {dump.store for dump in dumps} == {"disk"}
    # How long a dump took is no matter of the time of day.
    assert all(0 <= dump.seconds < 60 for dump in dumps), dumps


def test_the_newest_run_is_the_one_that_was_begun_last() -> None:
    write(DAY, DAY)
    write(-DAY, -DAY)
    assert [run.label for run in swathe.runs.list()] == ["app@2", "app@1"]
    assert swathe.open_run("app").record.label == "app@2"
    with Catalog.open() as catalog:
        # Predictions learn from the last dumps.
        recent = catalog.recent_dumps("disk", this_host(), 50)
    runs = [dump.run_id for dump in recent]
    assert runs == sorted(runs)
    assert runs[-1] == swathe.open_run("app").record.id
