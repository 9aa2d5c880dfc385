"""Any history of granules and crashes leads to the runs and the feed that an oracle says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from swathe.catalog import Catalog
from swathe.catalog.records.subscriptions import Event, RunResult
from swathe.datasets.earth_search import boxes_that_touch
from swathe.subscriptions.service import Subscriptions
from tests.support.catalogs import new_catalog
from tests.support.property_examples import examples
from tests.support.subscriptions import (
    DAY,
    idle_service,
    new_dataset,
    put,
    request,
    runs_of,
    withdraw,
)

PATHS = ("a0", "b0", "a1", "b1", "far")
"""Granules of two days, and one elsewhere. Version 3 of a granule is of the other day."""
DAYS = ("2005-05-01", "2005-05-02")
BOX = (0.0, 40.0, 20.0, 60.0)
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(PATHS), st.sampled_from("123")),
    st.tuples(st.just("withdraw"), st.sampled_from(PATHS)),
    st.tuples(st.just("end"), st.sampled_from(["ok", "error"])),
    st.tuples(st.sampled_from(["pause", "resume"])),
    st.tuples(st.sampled_from(["match", "catch up", "fire", "fire"])),
    st.tuples(st.just("all")),
    st.tuples(st.just("all")),
)
CRASHES = st.one_of(st.none(), st.none(), st.integers(0, 40))
"""Number of the statement in a step before which the process dies; `None`: it does not."""
ALL = ("match",) * 3 + ("catch up",) * 3 + ("fire",)
"""Steps after which nothing is to be done, if the subscription is active."""
HISTORIES: tuple[str, ...] = (
    "put a0 1, all, put b0 1, all, withdraw b0, all, put b0 1",  # comes back
    "put a0 1, all, end error, put a0 2, all, put a0 1",  # to a run that failed
    "put a0 1, put b0 1, all, put b0 3, all, put b0 1",  # moves to the other day, and back
)
NEVER = 1 << 30
LIMIT = 2


Content: TypeAlias = frozenset[tuple[str, str]]
"""Granules of a group, with their versions."""


class Crash(BaseException):
    """The process dies."""


@contextmanager
def crash_before(catalog: Catalog, statement: int) -> Iterator[list[Crash]]:
    """Die before a statement of the database; what was not committed is lost."""
    count = 0
    crashes: list[Crash] = []

    def before(*_: Any) -> None:
        nonlocal count
        count += 1
        if count - 1 == statement:
            raise Crash

    sqlalchemy.event.listen(catalog._engine, "before_cursor_execute", before)
    try:
        yield crashes
    except Crash as crash:
        crashes.append(crash)
    finally:
        sqlalchemy.event.remove(catalog._engine, "before_cursor_execute", before)


class Oracle:
    """What must run, and which granules leave a group, by the log of changes alone."""

    def __init__(self, by_day: bool) -> None:
        self.by_day = by_day
        self.log: dict[str, tuple[int, str | None]] = {}
        self.last = self.cursor = 0
        self.behind: int | None = None
        self.is_active = True
        self.present: dict[str, str] = {}
        self.runs: set[tuple[str, Content]] = set()
        self.withdrawn: list[tuple[str, str, str]] = []

    def change(self, path: str, version: str | None) -> None:
        self.last += 1
        self.log[path] = (self.last, version)

    def match(self) -> None:
        for number, path, version in self._after(self.cursor, self.last) or [(self.last, "", None)]:
            if path and self.is_active and self.behind is None:
                self._see(path, version)
            self.cursor = number

    def catch_up(self) -> None:
        if not self.is_active or self.behind is None:
            return
        changes = self._after(self.behind, self.cursor)
        for _, path, version in changes:
            self._see(path, version)
        self.behind = changes[-1][0] if len(changes) == LIMIT else None

    def fire(self) -> None:
        if self.is_active:
            self.runs |= set(self.groups().items())

    def groups(self) -> dict[str, Content]:
        groups: dict[str, set[tuple[str, str]]] = {}
        for path, version in self.present.items():
            groups.setdefault(self._group(path, version), set()).add((path, version))
        return {name: frozenset(each) for name, each in groups.items()}

    def _group(self, path: str, version: str) -> str:
        return DAYS[day_of(path, version)] if self.by_day else path

    def _after(self, start: int, end: int) -> list[tuple[int, str, str | None]]:
        changes = [(number, path, of) for path, (number, of) in self.log.items()]
        return sorted(each for each in changes if start < each[0] <= end)[:LIMIT]

    def _see(self, path: str, version: str | None) -> None:
        before = self.present.pop(path, None)
        if version is not None and path != "far":
            self.present[path] = version
        if before is None:
            return
        group = self._group(path, before)
        if path not in self.present or self._group(path, self.present[path]) != group:
            self.withdrawn.append((path, before, group))


def day_of(path: str, version: str) -> int:
    """Return the day of a granule, from 0."""
    return (path[1] == "1") ^ (version == "3")


def do(step: tuple[str, ...], catalog: Catalog, service: Subscriptions, subscription: str) -> None:
    """Do a step."""
    match step:
        case ("put", path, version):
            day = DAY + day_of(path, version)
            put(catalog, path, version, day, (100.0, 0.0) if path == "far" else (10.0, 50.0))
        case ("withdraw", path):
            withdraw(catalog, path)
        case ("end", "ok" | "error" as status):
            results = {name: RunResult(status, "bad", "a.nc") for name in (*PATHS, *DAYS)}
            for job in catalog.jobs_of_runs():
                catalog.finish_runs(job, results, "")
        case ("pause",):
            catalog.pause_subscription(subscription)
        case ("resume",):
            catalog.resume_subscription(subscription)
        case ("match",):
            catalog.match_changes(boxes_that_touch, LIMIT)
        case ("catch up",):
            catalog.catch_up(boxes_that_touch, LIMIT)
        case ("fire",):
            while service.fire():
                pass
        case ("all",):
            for one in ALL:
                do((one,), catalog, service, subscription)


def follow(step: tuple[str, ...], oracle: Oracle) -> None:
    """Do a step in the oracle."""
    match step:
        case ("put", path, version):
            oracle.change(path, version)
        case ("withdraw", path):
            if path in oracle.log:
                oracle.change(path, None)
        case ("pause",):
            if oracle.is_active:
                oracle.is_active = False
                oracle.behind = oracle.cursor if oracle.behind is None else oracle.behind
        case ("resume",):
            oracle.is_active = True
        case ("match",):
            oracle.match()
        case ("catch up",):
            oracle.catch_up()
        case ("fire",):
            oracle.fire()
        case ("all",):
            for one in ALL:
                follow((one,), oracle)


def read_feed(events: Sequence[Event]) -> dict[str, Content | None]:
    """Return the granules of the version that holds for each group, as a reader of the feed does.

    `None`: none holds. An event that says nothing new, or the wrong outcome, is an error.
    """
    contents: dict[tuple[str, int], Content] = {}
    has_failed: set[tuple[str, int]] = set()
    current: dict[str, Content | None] = {}
    for each in events:
        group, version = each.content.get("group", ""), each.content.get("version", 0)
        if each.kind == "granule.withdrawn":
            current[group] = None
        elif each.kind == "run.failed":
            has_failed.add((group, version))
        elif each.kind != "run.done":
            granules = each.content["granules"]
            content = frozenset((one["granule"], one["object_version"]) for one in granules)
            assert contents.setdefault((group, version), content) == content
            assert current.get(group) != content
            assert (each.kind == "result.missing") == ((group, version) in has_failed)
            current[group] = content
    return current


def written(history: str) -> list[tuple[tuple[str, ...], int | None]]:
    """Return the steps of a history without crashes."""
    return [(tuple(step.split()), None) for step in history.split(", ")]


@example(written(HISTORIES[0]), True)
@example(written(HISTORIES[1]), False)
@example(written(HISTORIES[2]), True)
@given(st.lists(st.tuples(STEPS, CRASHES), min_size=8, max_size=40), st.booleans())
@settings(max_examples=examples(80), deadline=None, phases=[Phase.explicit, Phase.generate])
def test_runs_and_feed_are_those_of_the_oracle(
    history: list[tuple[tuple[str, ...], int | None]], by_day: bool
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Catalog.open(new_catalog(Path(folder) / "c.sqlite")) as catalog,
    ):
        new_dataset(catalog)
        service, _ = idle_service(catalog)
        group = "day" if by_day else "each"
        subscription = service.add(request(bbox=BOX, group=group), "ann").id
        oracle = Oracle(by_day)
        end = [(("resume",), None), *[((step,), None) for step in ["match", "catch up"] * 6]]
        for step, crash in [*history, *end, (("fire",), None)]:
            with crash_before(catalog, NEVER if crash is None else crash) as crashes:
                do(step, catalog, service, subscription)
            if crashes:  # the next process does it
                service, _ = idle_service(catalog)
                do(step, catalog, service, subscription)
            follow(step, oracle)
        runs = runs_of(catalog, subscription)
        names = [(name, frozenset(members)) for name, _, members in runs]
        assert len(set(names)) == len(names)
        assert set(names) == oracle.runs
        events = catalog.subscription_events(subscription, 0, 10_000)
        parts = ("granule", "object_version", "group")
        assert oracle.withdrawn == [
            tuple(each.content[name] for name in parts)
            for each in events
            if each.kind == "granule.withdrawn"
        ]
        current = read_feed(events)
        groups = oracle.groups()
        assert {name: of for name, of in current.items() if of is not None} == groups
        jobs = {each.content["job"] for each in events if each.kind == "run.submitted"}
        assert {job.id for job in catalog.jobs()} == jobs
        assert [each.number for each in events] == list(range(1, len(events) + 1))
        for name in {name for name, _, _ in runs}:
            versions = [version for of, version, _ in runs if of == name]
            assert versions == list(range(1, len(versions) + 1))
