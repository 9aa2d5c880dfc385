"""Queries as jobs in the catalogue: who runs them, and what becomes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from swathe.catalog import Catalog
from swathe.catalog.queries import MOST_TRIES
from swathe.catalog.records.queries import QueryRecord
from swathe.core.errors import JobError, LimitError, NoSuchJobError

NOW = datetime.now(UTC)


def record(name: str, owner: str = "ann", days: float = 1.0) -> QueryRecord:
    return QueryRecord(
        name.ljust(22, "0"),
        owner,
        name,
        "PENDING",
        [("LANG", "ADQL"), ("QUERY", "SELECT é")],
        {"links_url": "http://x", "sees_all": False, "uploads": False},
        NOW,
        None,
        None,
        NOW + timedelta(days=days),
        600,
    )


def add(catalog: Catalog, name: str, *, starts: bool = True, days: float = 1.0) -> str:
    made = catalog.add_query(record(name, days=days), lambda _count: None)
    if starts:
        catalog.start_query(made.id)
    return made.id


def test_a_query_is_kept_as_it_is(catalog: Catalog) -> None:
    made = catalog.add_query(record("a"), lambda _count: None)
    assert catalog.query(made.id) == made
    assert catalog.queries("ann") == [made]
    assert catalog.queries("bob") == []
    assert catalog.queries(phases=["QUEUED"]) == []
    with pytest.raises(NoSuchJobError):
        catalog.query("b")


def test_queries_are_run_in_turn(catalog: Catalog) -> None:
    first, second, _ = add(catalog, "a"), add(catalog, "b"), add(catalog, "c", starts=False)
    leases = [catalog.lease_query(60) for _ in range(3)]
    assert [lease and lease.id for lease in leases] == [first, None, None]  # one of each user
    assert catalog.query_state(first)[0] == "EXECUTING"
    ended = catalog.end_query(first, size=7, media_type="text/csv")
    assert (lease := catalog.lease_query(60)) is not None
    assert lease.id == second
    assert (ended.phase, ended.bytes, ended.media_type, ended.error) == (
        "COMPLETED", 7, "text/csv", None,
    )  # fmt: skip
    assert catalog.usage_of("ann").bytes == 7
    failed = catalog.end_query(second, failure="it is wrong")
    assert (failed.phase, failed.error) == ("ERROR", "it is wrong")


def test_a_query_of_a_dead_portal_is_run_again_but_not_always(catalog: Catalog) -> None:
    query = add(catalog, "a")
    for _ in range(MOST_TRIES):
        lease = catalog.lease_query(-1)
        assert lease is not None
        assert lease.id == query
    assert catalog.lease_query(60) is None
    assert catalog.query(query).phase == "ERROR"
    assert "the portal stopped" in str(catalog.query(query).error)


def test_a_portal_that_ends_counts_no_try(catalog: Catalog) -> None:
    query = add(catalog, "a")
    for _ in range(MOST_TRIES + 2):
        assert catalog.lease_query(60) is not None
        catalog.release_query(query)
        assert catalog.query_state(query)[0] == "QUEUED"


def test_a_cancelled_query_has_no_answer(catalog: Catalog) -> None:
    query = add(catalog, "a")
    catalog.lease_query(60)
    assert catalog.renew_query(query, 60)
    catalog.cancel_query(query)
    assert not catalog.renew_query(query, 60)
    assert catalog.end_query(query, size=5, media_type="text/csv").phase == "ABORTED"
    assert catalog.query(query).bytes == 0


def test_what_may_be_changed(catalog: Catalog) -> None:
    query = add(catalog, "a", starts=False)
    changed = catalog.change_query(query, duration_s=5, parameters=[("QUERY", "other")])
    assert (changed.duration_s, changed.parameters) == (5, [("QUERY", "other")])
    catalog.start_query(query)
    with pytest.raises(JobError, match="expected it not to be started"):
        catalog.change_query(query, duration_s=6)
    later = NOW + timedelta(days=9)
    assert catalog.change_query(query, expires_at=later).expires_at == later


def test_deleted_and_expired_queries(catalog: Catalog) -> None:
    query, old = add(catalog, "a"), add(catalog, "b", days=-1)
    assert catalog.expired_queries() == [old]
    catalog.lease_query(60)
    catalog.end_query(query, size=9, media_type="text/csv")
    catalog.delete_query(query)
    assert catalog.usage_of("ann").deleted_bytes == 9
    assert [each.id for each in catalog.deleted_jobs()] == [query]
    for act in (catalog.delete_query, catalog.query, catalog.end_query):
        with pytest.raises(NoSuchJobError):
            act(query)


def test_queries_at_work_are_counted(catalog: Catalog) -> None:
    add(catalog, "a")
    add(catalog, "b", starts=False)

    def check(count: int) -> None:
        raise LimitError(f"found {count}")

    with pytest.raises(LimitError, match="found 2"):
        catalog.add_query(record("c"), check)
    assert len(catalog.queries()) == 2
