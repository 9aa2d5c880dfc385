"""Changes of objects matched with subscriptions: which groups have changed, and when they run.

All of a step is one transaction: the changes that were matched, and what follows from them. So a
process may die at any time, and several may do this at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.conditions import condition_of
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.datasets.object_changes import ALL, locked_counter
from swathe.catalog.datasets.objects import EARLY, LATE
from swathe.catalog.records.subscriptions import Grouping
from swathe.catalog.subscriptions.events import add_event
from swathe.catalog.tables import (
    ChangeCounterRow,
    GranuleRow,
    ObjectChangeRow,
    SubscriptionGranuleRow,
    SubscriptionGroupRow,
    SubscriptionTable,
)
from swathe.core.grouping import GroupBy, group_name
from swathe.core.times import utc_of

AreaTest: TypeAlias = Callable[[Sequence[Sequence[float]], Sequence[Sequence[float]]], list[bool]]
"""Which boxes `(west, south, east, north)` touch an array, by its outlines."""
AT_ONCE = 500
"""Values per statement."""
NO_GROUP = ""
"""Group of an object without the time or orbit that its group needs: it never runs."""


class _Array(NamedTuple):
    """What is compared of an array or image of an object."""

    id: int
    t_min: float | None
    t_max: float | None
    lon: float | None
    lat: float | None
    fov: float | None
    outlines: list[list[float]] | None
    orbit: int | None


class _Candidate(NamedTuple):
    """A subscription that an object may match."""

    number: int
    search: dict[str, Any]
    grouping: dict[str, Any]


@dataclass
class _Object:
    """An object that has changed, with its arrays; none if it is withdrawn."""

    dataset: str
    path: str
    version: str | None
    arrays: list[_Array]


class Matching(Database):
    """Changes of objects matched with subscriptions."""

    def has_changes(self) -> bool:
        """Check whether there are changes that were not matched yet."""
        table = ChangeCounterRow
        behind = select(SubscriptionTable.number).where(
            SubscriptionTable.state == "active", SubscriptionTable.behind_from.is_not(None)
        )
        with self._reading() as session:
            if session.scalar(select(table.id).where(table.last > table.cursor)) is not None:
                return True
            return session.scalar(behind.limit(1)) is not None

    def match_changes(self, touches: AreaTest, limit: int = 200) -> int:
        """Match the next changes with all active subscriptions; return their number.

        Args:
            touches: exact test of a box of longitude and latitude.
            limit: largest number of changes.
        """
        change = ObjectChangeRow
        with self._writing() as session:
            counter = locked_counter(session)
            query = select(change).where(change.number > counter.cursor)
            rows = session.scalars(query.order_by(change.number).limit(limit)).all()
            if not rows:
                counter.cursor = counter.last  # the others changed again, or are gone
                return 0
            for row in rows:
                _match(session, row, touches, None)
            counter.cursor = rows[-1].number
            return len(rows)

    def catch_up(self, touches: AreaTest, limit: int = 200) -> int:
        """Match what an active subscription has not seen; return the number of changes.

        One that has seen all follows the log again. The arguments are those of `match_changes`.
        """
        table, change = SubscriptionTable, ObjectChangeRow
        query = select(table).where(table.state == "active", table.behind_from.is_not(None))
        with self._writing() as session:
            cursor = locked_counter(session).cursor
            row = session.scalars(query.order_by(table.number).limit(1).with_for_update()).first()
            if row is None:
                return 0
            some = select(change).where(
                change.dataset == row.dataset,
                change.number > row.behind_from,
                change.number <= cursor,
            )
            changes = session.scalars(some.order_by(change.number).limit(limit)).all()
            for each in changes:
                _match(session, each, touches, row.number)
            row.behind_from = changes[-1].number if len(changes) == limit else None
            return len(changes) or 1


def _match(session: Session, change: ObjectChangeRow, touches: AreaTest, only: int | None) -> None:
    """Apply a change to all subscriptions that follow the log, or to one."""
    if change.path == ALL:
        _withdraw_all(session, change, only)
        return
    arrays = [] if change.version is None else _arrays(session, change.dataset, change.path)
    subject = _Object(change.dataset, change.path, change.version, arrays)
    candidates = _candidates(session, subject, change.number, only)
    groups = _Exact(session, subject, touches).groups(candidates)
    _apply(session, subject, groups, only)


def _arrays(session: Session, dataset: str, path: str) -> list[_Array]:
    """Return what is compared of the arrays and images of an object."""
    columns = [getattr(GranuleRow, name) for name in _Array._fields]
    number = dataset_number(session, dataset)
    query = select(*columns).where(GranuleRow.dataset_id == number, GranuleRow.path == path)
    return [_Array(*row) for row in session.execute(query)]


def _candidates(
    session: Session, subject: _Object, number: int, only: int | None
) -> list[_Candidate]:
    """Return the subscriptions whose bounds an array of an object may touch."""
    table = SubscriptionTable
    places = {(each.t_min, each.t_max, each.lon, each.lat, each.fov) for each in subject.arrays}
    if not places:
        return []
    query = select(table.number, table.search, table.grouping).where(
        table.dataset == subject.dataset,
        table.state == "active",
        table.behind_from.is_(None) if only is None else table.number == only,
        table.since < number,
        or_(*(_may_touch(*each) for each in places)),
    )
    return [_Candidate(*row) for row in session.execute(query)]


def _may_touch(
    t_min: float | None,
    t_max: float | None,
    lon: float | None,
    lat: float | None,
    fov: float | None,
) -> Any:
    """Return the condition that the bounds of a subscription touch a circle at a time."""
    table = SubscriptionTable
    if t_min is None or t_max is None:
        conditions = [table.t_min <= EARLY, table.t_max >= LATE]
    else:
        conditions = [table.t_min <= t_max, table.t_max >= t_min]
    if lon is None or lat is None or fov is None:
        conditions.append(table.half_lon >= 360)
        return and_(*conditions)
    radius = fov / 2
    conditions += [table.south <= lat + radius, table.north >= lat - radius]
    if abs(lat) + radius < 90:
        # The widest meridians that a circle touches.
        ratio = math.sin(math.radians(radius)) / math.cos(math.radians(lat))
        half = math.degrees(math.asin(min(1.0, ratio)))
        distance = func.abs(table.lon - lon)
        reach = table.half_lon + half
        conditions.append(or_(distance <= reach, 360 - distance <= reach))
    return and_(*conditions)


class _Exact:
    """Exact comparison of an object with the searches of subscriptions."""

    def __init__(self, session: Session, subject: _Object, touches: AreaTest) -> None:
        self._session, self._object, self._touches = session, subject, touches
        self._areas: dict[tuple[float, ...], list[bool]] = {}
        self._conditions: dict[str, list[bool]] = {}

    def groups(self, candidates: Iterable[_Candidate]) -> dict[int, tuple[str, _Candidate, Any]]:
        """Return group, subscription and time of each match, by number of the subscription."""
        candidates = list(candidates)
        self._compare_areas({tuple(each.search.get("bbox", ())) for each in candidates} - {()})
        matches: dict[int, tuple[str, _Candidate, Any]] = {}
        for each in candidates:
            array = next(
                (
                    one
                    for one, fits in zip(self._object.arrays, self._fits(each), strict=True)
                    if fits
                ),
                None,
            )
            if array is not None:
                name = _group_of(each.grouping["by"], self._object.path, array)
                matches[each.number] = (name, each, array.t_min)
        return matches

    def _fits(self, candidate: _Candidate) -> list[bool]:
        """Return which arrays match a search."""
        search = candidate.search
        fits = [True] * len(self._object.arrays)
        if (time := search.get("time")) is not None:
            start, end = time
            fits = [_overlaps(each, start, end) for each in self._object.arrays]
        if (bbox := search.get("bbox")) is not None:
            fits = _both(fits, self._areas[tuple(bbox)])
        if (condition := search.get("condition")) is not None:
            fits = _both(fits, self._meets(condition))
        return fits

    def _compare_areas(self, areas: set[tuple[float, ...]]) -> None:
        """Set which arrays touch each area; arrays of a file often have the same place."""
        boxes = sorted(areas)
        results: dict[str, list[bool]] = {}
        columns = []
        for each in self._object.arrays:
            place = json.dumps(each.outlines)
            if place not in results:
                results[place] = self._touches(boxes, each.outlines or [])
            columns.append(results[place])
        self._areas = dict(zip(boxes, map(list, zip(*columns, strict=True)), strict=True))

    def _meets(self, condition: dict[str, Any]) -> list[bool]:
        text = json.dumps(condition, sort_keys=True)
        if text not in self._conditions:
            ids = [each.id for each in self._object.arrays]
            query = select(GranuleRow.id).where(GranuleRow.id.in_(ids), condition_of(condition))
            numbers = set(self._session.scalars(query))
            self._conditions[text] = [each in numbers for each in ids]
        return self._conditions[text]


def _overlaps(array: _Array, start: float | None, end: float | None) -> bool:
    if array.t_min is None or array.t_max is None:
        return False
    return (end is None or array.t_min <= end) and (start is None or array.t_max >= start)


def _both(one: list[bool], other: list[bool]) -> list[bool]:
    return [a and b for a, b in zip(one, other, strict=True)]


def _group_of(by: GroupBy, path: str, array: _Array) -> str:
    start = utc_of(array.t_min) if by == "day" and array.t_min is not None else None
    return group_name(by, path, start, array.orbit) or NO_GROUP


def _apply(
    session: Session,
    subject: _Object,
    groups: dict[int, tuple[str, _Candidate, Any]],
    only: int | None,
) -> None:
    """Enter an object into the groups that it matches, and take it out of others."""
    granule = SubscriptionGranuleRow
    table = SubscriptionTable
    query = (
        select(granule.subscription, granule.version, granule.group_name, table.grouping)
        .join(table, table.number == granule.subscription)
        .where(
            granule.path == subject.path,
            table.dataset == subject.dataset,
            table.state == "active",
            table.behind_from.is_(None) if only is None else table.number == only,
        )
    )
    groupings: dict[int, dict[str, Any]] = {}
    before: dict[int, tuple[str, str]] = {}
    for number, version, group, grouping in session.execute(query):
        before[number] = (version, group)
        groupings[number] = grouping
    after = {number: (subject.version, name) for number, (name, _, _) in groups.items()}
    groupings |= {number: each.grouping for number, (_, each, _) in groups.items()}
    changes = {
        number for number in before.keys() | after if before.get(number) != after.get(number)
    }
    if not changes:
        return
    for part in _parts(sorted(changes & before.keys())):
        session.execute(
            delete(granule).where(granule.path == subject.path, granule.subscription.in_(part))
        )
    rows = [
        {
            "subscription": number,
            "path": subject.path,
            "version": subject.version,
            "group_name": groups[number][0],
            "t_min": groups[number][2],
        }
        for number in sorted(changes & groups.keys())
    ]
    if rows:
        session.connection().execute(insert(granule), rows)
    by_group: dict[str, set[int]] = {}
    for number in changes:
        for of in (before, after):
            if number in of and of[number][1] != NO_GROUP:
                by_group.setdefault(of[number][1], set()).add(number)
    # A group that it leaves for another one has lost it, too. First the subscriptions, then their
    # groups: who submits a job locks them in this order.
    left = {
        number: of
        for number, of in before.items()
        if number not in after or of[1] not in (NO_GROUP, after[number][1])
    }
    _report_withdrawal(session, subject.path, left)
    for name, numbers in by_group.items():
        _change_groups(session, name, {each: Grouping(**groupings[each]) for each in numbers})


def _change_groups(session: Session, name: str, groupings: dict[int, Grouping]) -> None:
    """Note that groups of this name have changed, and set when they run."""
    group, granule = SubscriptionGroupRow, SubscriptionGranuleRow
    now = datetime.now(UTC)
    for part in _parts(sorted(groupings)):
        here = (group.name == name, group.subscription.in_(part))
        present = set(session.scalars(select(group.subscription).where(*here)))
        session.execute(update(group).where(*here).values(changes=group.changes + 1))
        new = [
            {"subscription": each, "name": name, "changes": 1, "versions": 0}
            for each in part
            if each not in present
        ]
        if new:
            session.connection().execute(insert(group), new)
        counts = dict(
            session.execute(
                select(granule.subscription, func.count())
                .where(granule.group_name == name, granule.subscription.in_(part))
                .group_by(granule.subscription)
            ).all()
        )
        due: dict[datetime | None, list[int]] = {}
        for number in part:
            grouping, count = groupings[number], counts.get(number, 0)
            at: datetime | None = now + timedelta(seconds=grouping.wait_s)
            if count < grouping.least:
                at = None
            elif count >= grouping.most:
                at = now
            due.setdefault(at, []).append(number)
        for at, numbers in due.items():
            session.execute(
                update(group)
                .where(group.name == name, group.subscription.in_(numbers))
                .values(due_at=at)
            )


def _report_withdrawal(session: Session, path: str, before: dict[int, tuple[str, str]]) -> None:
    """Add an event to each subscription in whose group, by its number, an object no longer is."""
    groups = SubscriptionGroupRow
    query = select(SubscriptionTable).where(SubscriptionTable.number.in_(sorted(before)))
    for row in session.scalars(query.with_for_update()) if before else ():
        version, group = before[row.number]
        content = {"granule": path, "object_version": version, "group": group}
        add_event(session, row, "granule.withdrawn", content)
        session.execute(
            update(groups)
            .where(groups.subscription == row.number, groups.name == group)
            .values(current_version=None)
        )


def _withdraw_all(session: Session, change: ObjectChangeRow, only: int | None) -> None:
    """Withdraw the objects of a dataset that was removed, and stop its subscriptions."""
    table = SubscriptionTable
    query = select(table).where(table.dataset == change.dataset, table.since < change.number)
    query = query.where(table.behind_from.is_(None) if only is None else table.number == only)
    granule, group = SubscriptionGranuleRow, SubscriptionGroupRow
    for row in session.scalars(query.with_for_update()).all():
        session.execute(delete(granule).where(granule.subscription == row.number))
        session.execute(
            update(group)
            .where(group.subscription == row.number)
            .values(due_at=None, changes=group.changes + 1)
        )
        if row.state == "active":
            row.state, row.behind_from = "failed", change.number
            row.reason = f"the dataset {change.dataset} was removed"
            add_event(session, row, "subscription.failed", {"reason": row.reason})


def _parts(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    for at in range(0, len(numbers), AT_ONCE):
        yield numbers[at : at + AT_ONCE]
