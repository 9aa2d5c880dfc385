"""The read-buffer study on simulated stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from swathe.core.errors import ChangedError, NotFoundError
from swathe.core.format import MIB
from swathe.costs.plots import buffer_figure
from swathe.costs.probing.read_buffer import SIZES, BufferStudy, study_buffer
from tests.support.simulated_stores import SimulatedStore, Timing, place


def simulated(store: SimulatedStore, **options: object) -> BufferStudy:
    return study_buffer(
        place(),
        reader=store,
        clock=lambda: store.clock_s,
        seed=1,
        **options,  # type: ignore[arg-type]
    )


def study(sizes: list[int], seconds: list[list[float]]) -> BufferStudy:
    parts = np.ones(len(sizes))
    return BufferStudy("o", MIB, np.array(sizes), np.array(seconds), parts, [], 1.0, 1, 1, "warm")


def test_the_chosen_size_makes_latency_small() -> None:
    """At 1 ms and 100 MB/s, 2 MiB lose 5 % to latency against nothing lost."""
    found = simulated(SimulatedStore(1e-3, 1e8, 1e8, noise=0.02, object_bytes=256 * MIB))
    assert MIB <= found.choice <= 4 * MIB
    assert found.low <= found.best <= found.high
    assert found.choice == found.low


def test_times_are_those_of_the_whole_object() -> None:
    found = simulated(SimulatedStore(0.01, 1e8, 1e8, object_bytes=64 * MIB))
    requests = 64 * MIB / found.sizes
    assert found.median == pytest.approx(requests * 0.01 + 64 * MIB / 1e8, rel=0.01)
    assert found.parts[0] < 0.1 < found.parts[-1]


def test_budgets_are_kept() -> None:
    store = SimulatedStore(0.05, 1e7, 1e7, object_bytes=1 << 30)
    found = simulated(store, max_time_s=20.0, max_bytes=100 * MIB)
    assert found.took_s <= 20
    assert found.bytes_moved == store.bytes_moved <= 100 * MIB


class ShorterStore(SimulatedStore):
    """Its object was cut short while it is read."""

    def measure(self, *args: Any, **options: Any) -> list[Timing]:
        whole = super().measure(*args, **options)
        return [replace(whole[0], bytes=whole[0].bytes - 1), *whole[1:]]


def test_an_object_that_gives_less_than_it_holds_is_an_error() -> None:
    with pytest.raises(ChangedError, match="bytes came of"):
        simulated(ShorterStore(object_bytes=MIB))


def test_differences_within_the_noise_are_ties() -> None:
    noisy = [[1.2, 1.0, 1.3], [0.9, 1.1, 0.8], [1.1, 0.8, 1.0]]
    assert study([1, 2, 4], noisy).choice == 1
    clear = [[1.2, 1.0, 1.0], [1.2, 1.0, 1.0], [1.2, 1.0, 1.0]]
    assert study([1, 2, 4], clear).choice == 2


def test_the_interval_is_of_one_piece() -> None:
    found = study([1, 2, 4, 8], [[1.0, 1.5, 1.0, 1.01]] * 3)
    assert (found.best, found.low, found.high) == (1, 1, 1)


def test_sizes_there_was_no_time_for_are_left_out() -> None:
    found = study([1, 2, 4], [[1.0, 0.9, np.nan]] * 2)
    assert found.sizes.tolist() == [1, 2]
    assert found.best == 2


def test_the_table_says_it_all() -> None:
    table = simulated(SimulatedStore(object_bytes=32 * MIB)).table()
    assert table.colnames == ["buffer", "median_s", "low", "high", "rate", "part", "within"]
    assert table["buffer"].tolist() == list(SIZES)
    assert str(table["rate"].unit) == "byte / s"
    assert table.meta["choice"] in table["buffer"]


def test_a_small_object_is_read_at_once() -> None:
    assert simulated(SimulatedStore(object_bytes=700)).sizes.tolist() == [700]
    with pytest.raises(NotFoundError, match="is empty"):
        simulated(SimulatedStore(object_bytes=0))


def test_it_is_drawn() -> None:
    drawn = buffer_figure(simulated(SimulatedStore(object_bytes=32 * MIB)), "o")
    assert drawn.axes[0].get_legend() is not None
