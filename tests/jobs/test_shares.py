"""Shares of users: slots, disk and priority of the programs of their orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.catalog.records.jobs import Chunk, ChunkResult, JobRecord, Share
from swathe.core.errors import LimitError
from swathe.jobs import Job, Jobs, Limits, Options

SOURCE = """\
# /// script
# [tool.swathe.algorithm]
# name = "sizes"
# version = "1"
# inputs.granules = {}
# outputs.table = {media_type = "text/csv"}
# resources = {output = "1 MB"}
# ///
def run(granules, table): ...
"""
GROUP_BYTES = 1_000_000


def one(_job: JobRecord, of_results: bool) -> int:
    return 1 if of_results else 5000


class Portal:
    """Orders whose programs are leased and end without a sandbox."""

    def __init__(self, jobs: Jobs, catalog: Catalog, granule: Path, shares: Mapping[str, Share]):
        self.jobs, self.catalog, self.granule, self.shares = jobs, catalog, granule, shares
        granule.write_text("granule")
        catalog.add_algorithm("sizes", "1", SOURCE.encode(), "ann")

    def order(self, user: str, groups: int) -> Job:
        """Submit an order whose granules are read already."""
        table = {"file": [str(self.granule)] * groups, "id": [f"g{n}" for n in range(groups)]}
        options = Options.from_mapping({"operation": "algorithm", "algorithm": "sizes"})
        job = self.jobs.submit(table, options, user)
        chunk = self.catalog.take_chunk("r", 60.0, one, lambda _job, is_group: not is_group)
        assert chunk is not None and chunk.job.id == job.id
        self.end(chunk)
        return job

    def lease(self, runner: str = "r") -> Chunk | None:
        return self.catalog.take_chunk(
            runner, 60.0, one, lambda *_: True, lambda user: self.shares.get(user, Share())
        )

    def end(self, chunk: Chunk, **result: object) -> None:
        rows = self.catalog.chunk_rows(chunk).end("ok")
        self.catalog.finish_chunk(chunk, ChunkResult(rows, **result))  # type: ignore[arg-type]

    def owners(self, most: int = 20) -> list[str]:
        """Lease programs while there are slots; return their users."""
        chunks = iter(self.lease, None)
        return [chunk.job.owner for chunk, _ in zip(chunks, range(most), strict=False)]


def test_a_user_gets_no_more_than_his_slots(jobs: Jobs, catalog: Catalog, tmp_path: Path) -> None:
    portal = Portal(jobs, catalog, tmp_path / "g", {"ann": Share(slots=2)})
    portal.order("ann", 5)
    portal.order("ann", 5)
    assert portal.owners() == ["ann", "ann"]
    portal.order("bob", 3)
    assert portal.owners() == ["bob"] * 3
    assert (catalog.usage_of("ann").slots, catalog.usage_of("bob").slots) == (2, 3)
    assert catalog.usage_of("ann").reserved_bytes == 2 * GROUP_BYTES


def test_a_slot_is_given_back_on_every_end(jobs: Jobs, catalog: Catalog, tmp_path: Path) -> None:
    portal = Portal(jobs, catalog, tmp_path / "g", {"ann": Share(slots=1)})
    stopped = ChunkResult([], complete=False)
    ends: dict[str, Callable[[Chunk], object]] = {
        "ok": portal.end,
        "failed": lambda chunk: portal.end(chunk, failure="no sandbox"),
        "stopped": lambda chunk: catalog.finish_chunk(chunk, stopped),
        "killed": lambda _: catalog.free_chunks(lambda _runner: True),
        "deleted": lambda chunk: jobs.delete(chunk.job.id),
        "cancelled": lambda chunk: jobs.cancel(chunk.job.id),
    }
    for how, end in ends.items():
        portal.order("ann", 2)
        chunk = portal.lease()
        assert chunk is not None and portal.lease() is None, how
        end(chunk)
        if how == "cancelled":
            assert catalog.usage_of("ann").slots == 1  # until its program has ended
            catalog.finish_chunk(chunk, stopped)
        usage = catalog.usage_of("ann")
        assert (usage.slots, usage.reserved_bytes) == (0, 0), how


def test_priority_is_a_share_of_turns_and_nobody_starves(
    jobs: Jobs, catalog: Catalog, tmp_path: Path
) -> None:
    """One place for programs; those of `busy` are also served as cuts meanwhile."""
    shares = {"high": Share(priority=10), "low": Share(priority=1), "busy": Share(priority=1)}
    portal = Portal(jobs, catalog, tmp_path / "g", shares)
    for user in ("high", "low", "busy"):
        portal.order(user, 60)
    turns: Counter[str] = Counter()
    for turn in range(100):
        if turn % 10 == 5:
            portal.order("busy", 1)
        chunk = portal.lease()
        assert chunk is not None
        turns[chunk.job.owner] += 1
        portal.end(chunk)
        if min(turns["low"], turns["busy"]) == 2:
            break
    assert turns["low"] and turns["busy"]
    assert turns["high"] > 2 * max(turns["low"], turns["busy"])


def test_priority_divides_places(jobs: Jobs, catalog: Catalog, tmp_path: Path) -> None:
    shares = {"high": Share(priority=6), "low": Share(priority=2)}
    portal = Portal(jobs, catalog, tmp_path / "g", shares)
    for user in shares:
        portal.order(user, 20)
    assert Counter(portal.owners(8)) == {"high": 6, "low": 2}


def test_disk_is_reserved_for_groups_at_work(jobs: Jobs, catalog: Catalog, tmp_path: Path) -> None:
    """Without room for what a second group may write, they run one at a time."""
    roomy = Share(result_bytes=2 * GROUP_BYTES)
    portal = Portal(jobs, catalog, tmp_path / "g", {"ann": roomy, "bob": Share(result_bytes=9)})
    portal.order("ann", 5)
    portal.order("bob", 5)
    assert Counter(portal.owners()) == {"ann": 2, "bob": 1}


def test_disk_is_reserved_for_all_groups_of_a_lease(
    jobs: Jobs, catalog: Catalog, tmp_path: Path
) -> None:
    """A lease has no more groups than there is disk for, also one that was given back."""
    shares = {"ann": Share(result_bytes=5 * GROUP_BYTES)}
    portal = Portal(jobs, catalog, tmp_path / "g", shares)
    portal.order("ann", 40)

    def lease(rows: int) -> Chunk | None:
        return catalog.take_chunk(
            "r", 60.0, lambda *_: rows, lambda *_: True, lambda user: shares[user]
        )

    def reserved() -> float:
        return catalog.usage_of("ann").reserved_bytes / GROUP_BYTES

    first = lease(3)
    assert first is not None and reserved() == 3
    second = lease(30)
    assert second is not None and second.last - second.first == 1
    assert (reserved(), lease(30)) == (5, None)
    catalog.finish_chunk(first, ChunkResult([], complete=False))
    shares["ann"] = Share(result_bytes=4 * GROUP_BYTES)
    again = lease(30)
    assert again is not None and (again.first, again.last) == (first.first, first.first + 1)
    portal.end(second)
    rest = lease(30)
    assert rest is not None and (rest.first, rest.last) == (first.last, first.last)
    assert reserved() == 3


def test_groups_that_have_run_reserve_nothing_and_take_no_turn(
    jobs: Jobs, catalog: Catalog, tmp_path: Path
) -> None:
    portal = Portal(jobs, catalog, tmp_path / "g", {"ann": Share(result_bytes=39 * GROUP_BYTES)})
    portal.order("ann", 20)

    def lease(groups: int) -> Chunk:
        chunk = catalog.take_chunk(
            *("r", 60.0, lambda *_: groups, lambda *_: True),
            lambda user: portal.shares.get(user, Share()),
        )
        assert chunk is not None
        return chunk

    chunk = lease(20)
    groups = catalog.chunk_rows(chunk)
    done = groups.take([0, 1, 2, 4, 5, 6, 7]).end("ok")
    catalog.finish_chunk(chunk, ChunkResult(done, complete=False))
    for waiting in ([3], list(range(8, 20))):
        chunk = lease(20)
        expected = groups.take(waiting).position
        assert catalog.chunk_rows(chunk).position.tolist() == expected.tolist()
        assert catalog.usage_of("ann").reserved_bytes == len(waiting) * GROUP_BYTES
        portal.end(chunk)
    assert portal.lease() is None
    assert catalog.usage_of("ann").slots == 0


def test_a_share_of_disk_replaces_the_limit_of_all(
    jobs: Jobs, catalog: Catalog, tmp_path: Path
) -> None:
    shares = {"ann": Share(result_bytes=9)}
    with Jobs(catalog, tmp_path / "r", limits=Limits(result_bytes=0, shares=shares)) as bounded:
        portal = Portal(bounded, catalog, tmp_path / "g", shares)
        portal.order("ann", 1)
        with pytest.raises(LimitError, match="0 B are allowed"):
            portal.order("bob", 1)
