"""Batches whose workers die: what is to blame is found, and the rest is done."""

from __future__ import annotations

import math

import pytest

from swathe.catalog.records.jobs import ChunkResult
from swathe.workers.dask.in_flight import DEATHS, MOST_DEATHS, PendingBatch
from tests.workers.test_pool import batch, never


def lead(rows: int, guilty: set[int]) -> tuple[ChunkResult, int]:
    """What becomes of a batch, some rows of which kill each worker; and how many died."""
    first = PendingBatch(7, batch(["images:0.fits"], rows), b"", never)
    flights, deaths, done, firsts = [first], 0, None, []
    while flights:
        flight = flights.pop()
        assert flight.number == 7
        numbers = {row.number for row in flight.batch.rows}
        firsts.append(flight.batch.first)
        if numbers & guilty:
            deaths += 1
            flight.add_death()
            verdict = flight.verdict()
            flight.reset()
            if verdict is None:
                flights.append(flight)
                continue
            if isinstance(verdict, list):
                assert {row.number for part in verdict for row in part.batch.rows} == numbers
                # At the same time none may work in the place of another.
                places = [each.batch.first for each in (*flights, *verdict)]
                assert len(set(places)) == len(places)
                flights += verdict
                continue
            ended = verdict
        else:
            rows_done = [row._replace(status="ok") for row in flight.batch.rows]
            ended = ChunkResult(
                rows_done, 1.0, 10, 1, ["a note"], from_peers=(1, 2), from_cache=(3, 4)
            )
        done = ended if flight.division is None else flight.division.add(ended)
        assert (done is None) == bool(flights)
    assert done is not None
    return done, deaths


@pytest.mark.more
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 100, 5000])
def test_the_row_that_kills_is_the_only_error(rows: int) -> None:
    for guilty in {0, rows // 3, rows - 1}:
        done, deaths = lead(rows, {guilty})
        assert done.complete
        assert sorted(row.number for row in done.rows) == list(range(rows))
        assert [row.number for row in done.rows if row.status == "error"] == [guilty]
        assert deaths <= DEATHS + math.ceil(math.log2(rows))
        reason = next(row.reason for row in done.rows if row.number == guilty)
        assert f"{deaths} workers died" in reason


def test_what_costs_too_much_is_given_up() -> None:
    done, deaths = lead(1000, set(range(1000)))
    assert len(done.rows) == 1000
    assert {row.status for row in done.rows} == {"error"}
    # Each of those that are on their way dies once more, or twice.
    assert deaths <= MOST_DEATHS + 2 * math.ceil(math.log2(1000))


def test_what_was_lost_without_blame_is_tried_again() -> None:
    flight = PendingBatch(0, batch(["images:0.fits"], 10), b"", never)
    for _ in range(100):
        assert flight.verdict() is None
    flight.add_death()
    assert flight.verdict() is None


def test_parts_are_counted_together() -> None:
    done, _ = lead(4, {2})
    assert (done.bytes_moved, done.requests, done.work_s) == (20, 2, 2.0)
    assert (done.from_peers, done.from_cache) == ((2, 4), (6, 8))
    assert done.notes == ["a note"] * 2
    flight = PendingBatch(0, batch(["images:0.fits"], 2), b"", never)
    flight.add_death()
    flight.add_death()
    halves = flight.verdict()
    assert isinstance(halves, list)
    whole = halves[0].division
    assert whole is not None
    assert halves[1].division is whole
    assert whole.add(ChunkResult([], complete=False, failure="why")) is None
    assert whole.add(ChunkResult([])) == ChunkResult([], complete=False, failure="why", notes=[])
