"""Subscriptions: what matches, what runs, and what users are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from swathe.catalog import Catalog
from swathe.catalog.records.subscriptions import RunResult
from swathe.core.errors import (
    CursorError,
    DatasetError,
    LimitError,
    NoSuchAlgorithmError,
    NoSuchDatasetError,
    NoSuchSubscriptionError,
    RegionError,
    SubscriptionError,
    TargetsError,
)
from swathe.subscriptions.service import Subscriptions
from tests.support.subscriptions import (
    DAY,
    IdleJobs,
    idle_service,
    new_dataset,
    put,
    request,
    runs_of,
    withdraw,
    work,
)

SIZES = b"""\
# /// script
# [tool.swathe.algorithm]
# name = "sizes"
# version = "1"
# inputs.granules = {}
# outputs.table = {media_type = "text/csv"}
# ///
def run(granules, table): ...
"""


@pytest.fixture
def idle(catalog: Catalog) -> tuple[Subscriptions, IdleJobs]:
    new_dataset(catalog)
    return idle_service(catalog)


@pytest.fixture
def service(idle: tuple[Subscriptions, IdleJobs]) -> Subscriptions:
    return idle[0]


def kinds(catalog: Catalog, subscription: str) -> list[str]:
    return [each.kind for each in catalog.subscription_events(subscription, 0, 1000)]


def test_what_comes_later_runs_once(catalog: Catalog, service: Subscriptions) -> None:
    put(catalog, "early")
    first = service.add(request(), "ann").id
    put(catalog, "a", "1")
    work(service)
    assert runs_of(catalog, first) == [("a", 1, (("a", "1"),))]
    put(catalog, "a", "1")  # the same version, read again
    withdraw(catalog, "a")
    work(service)
    put(catalog, "a", "1")
    work(service)
    assert [version for _, version, _ in runs_of(catalog, first)] == [1]
    put(catalog, "a", "2")
    work(service)
    put(catalog, "a", "1")
    work(service)
    assert [version for _, version, _ in runs_of(catalog, first)] == [1, 2]
    assert kinds(catalog, first)[-1] == "run.current"
    assert catalog.subscription_events(first, 0, 100)[-1].content["version"] == 1
    late = service.add(request(takes_present=True), "ann").id
    work(service)
    assert {group for group, _, _ in runs_of(catalog, late)} == {"early", "a"}


def test_the_feed_names_the_version_that_holds(catalog: Catalog, service: Subscriptions) -> None:
    put(catalog, "a")
    subscription = service.add(request(group="day", takes_present=True), "ann").id
    work(service)
    put(catalog, "b")
    work(service)
    ok = {"2005-05-01": RunResult("ok", "", "day.nc")}
    submitted = catalog.subscription_events(subscription, 0, 100)
    first, second = (each.content["job"] for each in submitted)
    catalog.finish_runs(first, ok, "")
    catalog.finish_runs(second, {}, "it was cancelled")
    start = catalog.subscription(subscription).events
    withdraw(catalog, "b")
    work(service)
    put(catalog, "b")
    work(service)
    put(catalog, "b", "2", day=DAY + 1)  # its group is another one now
    work(service)
    events = catalog.subscription_events(subscription, start, 100)
    assert [(each.kind, each.content["group"], each.content.get("version")) for each in events] == [
        ("granule.withdrawn", "2005-05-01", None),
        ("run.current", "2005-05-01", 1),
        ("result.missing", "2005-05-01", 2),
        ("granule.withdrawn", "2005-05-01", None),
        ("run.current", "2005-05-01", 1),
        ("run.submitted", "2005-05-02", 1),
    ]
    assert events[2].content["job"] == second


def test_granules_of_an_algorithm_have_their_times(
    catalog: Catalog, idle: tuple[Subscriptions, IdleJobs]
) -> None:
    service, jobs = idle
    catalog.add_algorithm("sizes", "1", SIZES, "ann")
    service.add(request(algorithm="sizes", options={}), "ann")
    put(catalog, "a", day=DAY + 2)
    put(catalog, "b", place=None, day=DAY)
    work(service)
    assert jobs.last_table == {
        "file": ["archive:a", "archive:b"],
        "group": ["a", "b"],
        "object_version": ["1", "1"],
        "start": [repr(DAY + 2), repr(DAY)],
        "end": [repr(DAY + 2 + 0.003), repr(DAY + 0.003)],
    }


MATCHES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"bbox": (0, 40, 20, 60)}, {"place": (10, 50)}, True),
    ({"bbox": (0, 40, 20, 60)}, {"place": (30, 50)}, False),
    ({"bbox": (0, 40, 20, 60)}, {"place": (20.9, 50)}, True),
    ({"bbox": (0, 40, 20, 60)}, {"place": (10, 62)}, False),
    ({"bbox": (0, 40, 20, 60)}, {"place": None}, False),
    ({"bbox": (170, -10, -170, 10)}, {"place": (-175, 0)}, True),
    ({"bbox": (170, -10, -170, 10)}, {"place": (180.5, 0)}, True),
    ({"bbox": (170, -10, -170, 10)}, {"place": (160, 0)}, False),
    ({"bbox": (-5, -10, 5, 10)}, {"place": (359.5, 0)}, True),
    ({"bbox": (-180, -90, 180, 90)}, {"place": (77, 3)}, True),
    ({"bbox": (90, 85, 100, 90)}, {"place": (-80, 88)}, False),
    ({"time": ("2005-05-01", "2005-05-02")}, {"day": DAY}, True),
    ({"time": ("2005-05-02", None)}, {"day": DAY}, False),
    ({"time": (None, "2005-05-02")}, {"day": DAY}, True),
    ({"condition": {"op": "=", "args": [{"property": "platform"}, "Terra"]}}, {}, False),
    (
        {"condition": {"op": "=", "args": [{"property": "platform"}, "Terra"]}},
        {"facility": "Terra"},
        True,
    ),
]


@pytest.mark.parametrize(("search", "granule", "matches"), MATCHES)
def test_searches(
    catalog: Catalog,
    service: Subscriptions,
    search: dict[str, Any],
    granule: dict[str, Any],
    matches: bool,
) -> None:
    subscription = service.add(request(**search), "ann").id
    put(catalog, "a", **granule)
    work(service)
    assert len(runs_of(catalog, subscription)) == matches


def test_a_group_runs_when_complete_or_after_its_wait(
    catalog: Catalog, service: Subscriptions
) -> None:
    subscription = service.add(request(group="day", wait_s=3600), "ann").id
    put(catalog, "b", day=DAY + 0.5)
    put(catalog, "a", day=DAY + 0.1)
    put(catalog, "c", day=DAY + 1)
    work(service)
    assert runs_of(catalog, subscription) == []
    _let_time_pass(catalog)
    work(service)
    runs = runs_of(catalog, subscription)
    assert [(group, version, [path for path, _ in of]) for group, version, of in runs] == [
        ("2005-05-01", 1, ["a", "b"]),
        ("2005-05-02", 1, ["c"]),
    ]
    put(catalog, "late", day=DAY + 0.2)
    withdraw(catalog, "c")
    work(service)
    _let_time_pass(catalog)
    work(service)
    group, version, members = runs_of(catalog, subscription)[-1]
    assert (group, version, len(members), len(runs_of(catalog, subscription))) == (
        "2005-05-01", 2, 3, 3,
    )  # fmt: skip


def _let_time_pass(catalog: Catalog) -> None:
    """Let all groups be due that wait."""
    from sqlalchemy import update

    from swathe.catalog.tables import SubscriptionGroupRow

    with catalog._writing() as session:
        group = SubscriptionGroupRow
        now = datetime.now(UTC)
        session.execute(update(group).where(group.due_at.is_not(None)).values(due_at=now))


def test_orbits_group(catalog: Catalog, service: Subscriptions) -> None:
    subscription = service.add(request(group="orbit"), "ann").id
    for path, orbit in (("a", 7), ("b", 7), ("c", 8), ("d", None)):
        put(catalog, path, orbit=orbit)
    work(service)
    assert [(group, len(of)) for group, _, of in runs_of(catalog, subscription)] == [
        ("7", 2), ("8", 1),
    ]  # fmt: skip


def test_a_pause_loses_nothing(catalog: Catalog, service: Subscriptions) -> None:
    subscription = service.add(request(), "ann").id
    put(catalog, "a")
    catalog.pause_subscription(subscription)
    for path in "bcd":
        put(catalog, path)
    withdraw(catalog, "d")
    work(service)
    assert runs_of(catalog, subscription) == []
    catalog.resume_subscription(subscription)
    work(service)
    assert sorted(group for group, _, _ in runs_of(catalog, subscription)) == ["a", "b", "c"]


def test_a_removed_dataset_stops_it_until_it_is_back(
    catalog: Catalog, service: Subscriptions
) -> None:
    subscription = service.add(request(), "ann").id
    put(catalog, "a")
    work(service)
    catalog.remove_dataset("swaths")
    work(service)
    stopped = catalog.subscription(subscription)
    assert (stopped.state, stopped.reason) == ("failed", "the dataset swaths was removed")
    catalog.add_dataset("swaths", "archive", "", None)
    put(catalog, "a")
    put(catalog, "b")
    catalog.resume_subscription(subscription)
    work(service)
    assert [group for group, _, _ in runs_of(catalog, subscription)] == ["a", "b"]


def test_it_ends(catalog: Catalog, service: Subscriptions) -> None:
    soon = datetime.now(UTC) + timedelta(milliseconds=400)
    subscription = service.add(request(until=soon), "ann").id
    put(catalog, "a")
    work(service)
    while catalog.subscription(subscription).state != "ended":
        service.match()
    put(catalog, "b")
    work(service)
    assert [group for group, _, _ in runs_of(catalog, subscription)] == ["a"]
    assert sorted(kinds(catalog, subscription)) == ["run.submitted", "subscription.ended"]
    for change in (catalog.pause_subscription, catalog.resume_subscription):
        with pytest.raises(SubscriptionError, match="found it ended"):
            change(subscription)


def test_outcomes_of_jobs_are_told(catalog: Catalog, idle: tuple[Subscriptions, IdleJobs]) -> None:
    service, _ = idle
    subscription = service.add(request(), "ann").id
    put(catalog, "a")
    put(catalog, "b")
    work(service)
    (job,) = {each.id for each in catalog.jobs()}
    assert catalog.jobs_of_runs() == [job]
    results = {"a": RunResult("ok", "", "a.nc"), "b": RunResult("error", "bad", "")}
    catalog.finish_runs(job, results, "it was cancelled")
    catalog.finish_runs(job, results, "it was cancelled")
    done, failed = catalog.subscription_events(subscription, 2, 10)
    assert (done.kind, done.content["file"]) == ("run.done", "a.nc")
    assert (failed.kind, failed.content["reason"]) == ("run.failed", "bad")
    put(catalog, "c")
    work(service)
    new = next(each.id for each in catalog.jobs() if each.id != job)
    catalog.delete_job(new)
    assert service.follow()
    assert catalog.subscription_events(subscription, 5, 10)[0].content["reason"] == (
        "its job was deleted"
    )


def test_limits_are_waited_for_and_faults_stop_it(
    catalog: Catalog, idle: tuple[Subscriptions, IdleJobs]
) -> None:
    service, jobs = idle
    subscription = service.add(request(), "ann").id
    put(catalog, "a")
    jobs.fault = LimitError("you have 20 jobs", 60)
    work(service)
    assert catalog.subscription(subscription).state == "active"
    _let_time_pass(catalog)
    jobs.fault = TargetsError("no such column")
    work(service)
    stopped = catalog.subscription(subscription)
    assert (stopped.state, stopped.reason) == ("failed", "no such column")
    jobs.fault = None
    catalog.resume_subscription(subscription)
    work(service)
    assert len(runs_of(catalog, subscription)) == 1


def test_a_resumed_job_corrects_its_failed_runs(catalog: Catalog, service: Subscriptions) -> None:
    subscription = service.add(request(), "ann").id
    put(catalog, "a")
    work(service)
    job = catalog.subscription_events(subscription, 0, 1)[0].content["job"]
    catalog.fail_job(job, lambda _usage: "the disk was full")
    assert service.follow()
    assert not service.follow()
    catalog.resume_job(job, lambda _usage: None)
    assert catalog.jobs_of_runs() == [job]
    catalog.finish_runs(job, {"a": RunResult("ok", "", "a.nc")}, "")
    assert kinds(catalog, subscription) == ["run.submitted", "run.failed", "run.done"]
    contents = [each.content for each in catalog.subscription_events(subscription, 1, 10)]
    assert [(each["group"], each["version"]) for each in contents] == [("a", 1)] * 2
    catalog.fail_job(job, lambda _usage: None)
    assert catalog.jobs_of_runs() == []


def test_subscriptions_of_a_user_without_a_token_pause(catalog: Catalog) -> None:
    new_dataset(catalog)
    _, jobs = idle_service(catalog)
    service = Subscriptions(jobs, needs_token=True)  # type: ignore[arg-type]
    for user in ("ann", "bob"):
        catalog.add_token(user, ["read", "submit"])
    ann, bob = (service.add(request(), user).id for user in ("ann", "bob"))
    catalog.revoke_tokens("ann")
    catalog.add_token("ann", ["read"])
    put(catalog, "a")
    while service.turn():
        pass
    assert (runs_of(catalog, ann), len(runs_of(catalog, bob))) == ([], 1)
    paused = catalog.subscription(ann)
    assert paused.state == "paused"
    assert "no valid token" in paused.reason
    assert kinds(catalog, ann) == ["subscription.paused"]
    catalog.add_token("ann", ["submit"])
    resumed = catalog.resume_subscription(ann)
    assert (resumed.state, resumed.reason) == ("active", "")
    while service.turn():
        pass
    assert len(runs_of(catalog, ann)) == 1  # what came meanwhile


def test_pages_of_the_feed(catalog: Catalog, service: Subscriptions) -> None:
    subscription, other = (service.add(request(), "ann").id for _ in range(2))
    for path in "abc":
        put(catalog, path)
    work(service)
    page = service.feed(subscription, None, 2)
    assert [each.number for each in page.events] == [1, 2]
    rest = service.feed(subscription, page.cursor)
    assert [each.number for each in rest.events] == [3]
    assert service.feed(subscription, rest.cursor).events == []
    assert service.feed(subscription, rest.cursor).cursor == rest.cursor
    forged = [
        service.feed(other, None, 1).cursor,
        *("", "0", "A" * 32, page.cursor[:-1], page.cursor + "=", "é" * 32),
        ("B" if page.cursor[0] == "A" else "A") + page.cursor[1:],
    ]
    for cursor in forged:
        with pytest.raises(CursorError, match="expected the cursor of a page"):
            service.feed(subscription, cursor)
    with pytest.raises(NoSuchSubscriptionError):
        service.feed("x" * 22, None)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"collection": "none"}, NoSuchDatasetError, "no dataset"),
    ({"algorithm": "none"}, NoSuchAlgorithmError, "no algorithm"),
    ({"algorithm": "cut"}, SubscriptionError, "an operation on granules"),
    ({"bbox": (0, 0, 500, 1)}, RegionError, "east from -180 to 360"),
    ({"time": ("2006-01-01", "2005-01-01")}, DatasetError, "the start before the end"),
    ({"condition": {"op": "drop", "args": [1]}}, DatasetError, "filter: expected"),
    (
        {"condition": {"op": "in", "args": [{"property": "platform"}, ["x" * 999] * 99]}},
        SubscriptionError,
        "at most 65,536 characters as JSON, found 99,",
    ),
    ({"group": "week"}, SubscriptionError, "expected one of each, day"),
    ({"wait_s": -1}, SubscriptionError, "wait: expected 0"),
    ({"wait_s": float("nan")}, SubscriptionError, "wait: expected 0"),
    ({"until": datetime(2020, 1, 1, tzinfo=UTC)}, SubscriptionError, "a time to come"),
]


@pytest.mark.parametrize(("fields", "kind", "text"), WRONG)
def test_invalid_requests(
    service: Subscriptions, fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        service.add(request(**fields), "ann")


def test_a_user_has_a_limited_number(catalog: Catalog) -> None:
    new_dataset(catalog)
    _, jobs = idle_service(catalog)
    service = Subscriptions(jobs, most=1)  # type: ignore[arg-type]
    first = service.add(request(), "ann").id
    service.add(request(), "bob")
    with pytest.raises(LimitError, match="you have 1 subscriptions"):
        service.add(request(), "ann")
    catalog.remove_subscription(first)
    service.add(request(), "ann")
