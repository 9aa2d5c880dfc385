"""Objects of datasets with all their granules: searched page by page, in an order that lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.conditions import condition_of
from swathe.catalog.datasets.dataset_summaries import PRESENT
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.datasets.granules import (
    COPIES,
    STREAM_OPTIONS,
    GranuleQuery,
    granule_of,
    overlapping,
)
from swathe.catalog.datasets.granules import touching as granules_touching
from swathe.catalog.records.datasets import Granule
from swathe.catalog.tables import GranuleRow

ObjectOrder = Literal["added", "time", "name"]
"""When an object was catalogued, when its first exposure began, or its path."""
TouchTest = Callable[[Sequence[list[list[float]]]], list[bool]]
"""Which of the outlines of arrays touch the region that is by_region for."""
MOST_OF_TIME = 5000
"""Granules of a time that are looked at before those of a region."""
CANDIDATES, CANDIDATES_OF_REGION = 500, 100
"""Granules that are compared at a time; where outlines are compared, which takes longer."""
NEAR_DEG = 1e-6
"""Rounding of circles around arrays, degrees."""
LATE, EARLY = 1e12, -1e12
"""Stands for the time of an object without one, beyond every MJD: such objects come last."""


class ObjectKey(NamedTuple):
    """Place of an object in the order of a search: the value it is order by, and a granule."""

    value: float | str
    granule: int


@dataclass(frozen=True)
class ObjectQuery:
    """Criteria of a search for objects; `None` means any. One granule must match all of them.

    Attributes:
        datasets: names of datasets.
        paths: paths of objects in the first store of their dataset.
        ranges: HEALPix cells of order 29 on the Earth that a granule must touch, `(first, last)`.
        touches: exact test of the outlines of arrays on the Earth.
        time: MJD, UTC, from and to, either may be infinite; the exposure must overlap it.
        condition: a condition in CQL2, as its JSON form; see `condition_of`.
        order: what the objects are order by.
        is_descending: whether the last comes first.
        after: only objects after this one.
        latitudes: from and to, degrees, of the region that `touches` compares with: arrays whose
            circle is beyond are left out before their outlines are read.
    """

    datasets: Sequence[str] | None = None
    paths: Sequence[str] | None = None
    ranges: Sequence[tuple[int, int]] | None = None
    touches: TouchTest | None = None
    time: tuple[float, float] | None = None
    condition: Mapping[str, Any] | None = None
    order: ObjectOrder = "added"
    is_descending: bool = False
    after: ObjectKey | None = None
    latitudes: tuple[float, float] | None = None


@dataclass(frozen=True)
class DatasetObject:
    """An object of a dataset.

    Attributes:
        key: its place in the order of the search.
        dataset: name of its dataset.
        file: `STORE:path` of a readable copy, in the first store if there is one.
        granules: all its images and arrays.
    """

    key: ObjectKey
    dataset: str
    file: str
    granules: list[Granule]

    @property
    def path(self) -> str:
        """Path in the first store of its dataset."""
        return self.granules[0].path


class _Candidate(NamedTuple):
    key: ObjectKey
    dataset: int
    path: str
    outlines: list[list[float]] | None


class Objects(Database):
    """Objects of datasets."""

    def find_objects(
        self, object_query: ObjectQuery, limit: int, check: Callable[[], None] = lambda: None
    ) -> list[DatasetObject]:
        """Return the first objects that match, in order; each has a readable copy.

        Args:
            object_query: the criteria.
            limit: largest number of objects.
            check: called again and again; it raises an error to end a search that takes long.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
            DatasetError: If the condition is invalid.
        """
        objects: list[DatasetObject] = []
        if limit <= 0:
            return objects
        with self._reading() as session:
            conditions = _conditions(session, object_query)
            candidates = iter(_candidates(session, object_query, conditions))
            count = CANDIDATES if object_query.touches is None else CANDIDATES_OF_REGION
            while len(objects) < limit and (some := list(islice(candidates, count))):
                check()
                firsts = _firsts(session, object_query, conditions, some)
                objects += _objects(session, firsts[: limit - len(objects)])
        return objects

    def count_objects(self, object_query: ObjectQuery, most: int) -> int | None:
        """Return the number of objects that match; `None` if it is not known without reading all.

        That is so for more than `most`, and where outlines must be compared.
        """
        if object_query.ranges is not None or object_query.touches is not None:
            return None
        with self._reading() as session:
            conditions = _conditions(session, object_query)
            some = select(GranuleRow.dataset_id, GranuleRow.path).where(*conditions).distinct()
            count = session.scalar(
                select(func.count()).select_from(some.limit(most + 1).subquery())
            )
        return count if count is not None and count <= most else None


def _conditions(session: Session, object_query: ObjectQuery) -> list[Any]:
    """Return the SQL conditions of a search, but for its region and place in the order."""
    conditions: list[Any] = [PRESENT]
    numbers = None
    if object_query.datasets is not None:
        numbers = [dataset_number(session, name) for name in object_query.datasets]
        conditions.append(GranuleRow.dataset_id.in_(numbers))
    if object_query.paths is not None:
        conditions.append(GranuleRow.path.in_(object_query.paths))
    if (span := _span(object_query)) is not None:
        conditions.append(overlapping(session, numbers, span))
    if object_query.touches is not None:
        conditions.append(GranuleRow.outlines.is_not(None))
    if object_query.latitudes is not None:
        south, north = object_query.latitudes
        radius = GranuleRow.fov / 2 + NEAR_DEG
        conditions += [GranuleRow.lat - radius <= north, GranuleRow.lat + radius >= south]
    if object_query.condition is not None:
        conditions.append(condition_of(object_query.condition))
    return conditions


def _value(object_query: ObjectQuery) -> Any:
    """Return the column by which a search is order."""
    match object_query.order:
        case "time":
            last = EARLY if object_query.is_descending else LATE
            return func.coalesce(GranuleRow.t_min, last)
        case "name":
            return GranuleRow.path
        case "added":
            return GranuleRow.id


def _selection(object_query: ObjectQuery) -> Any:
    columns = [_value(object_query), GranuleRow.id, GranuleRow.dataset_id, GranuleRow.path]
    if object_query.touches is not None:
        columns.append(GranuleRow.outlines)
    return select(*columns)


def _candidate(row: Sequence[Any]) -> _Candidate:
    value, number, dataset, path, *outlines = row
    return _Candidate(ObjectKey(value, number), dataset, path, outlines[0] if outlines else None)


def _candidates(
    session: Session, object_query: ObjectQuery, conditions: list[Any]
) -> Iterable[_Candidate]:
    """Yield granules that may match, in order, after the place where the last page ended."""
    query = _selection(object_query).where(*conditions)
    keys = _keys_of_time(session, object_query, conditions)
    if keys is None and object_query.ranges is None:
        return _stream(session, object_query, query)
    if keys is None:
        region = GranuleQuery(object_query.ranges, is_on_earth=True)
        numbers = granules_touching(session, region)
        keys = [ObjectKey(number, number) for number in numbers]
        if object_query.order != "added":
            # All are needed to order them, but not their outlines.
            columns = _keys(object_query, conditions)
            keys = [
                ObjectKey(*row)
                for part in _parts(numbers)
                for row in session.execute(columns.where(GranuleRow.id.in_(part)))
            ]
    after, is_descending = object_query.after, object_query.is_descending
    if after is not None:
        keys = [key for key in keys if (key < after if is_descending else key > after)]
    return _by_number(session, query, sorted(keys, reverse=is_descending))


def _keys(object_query: ObjectQuery, conditions: list[Any]) -> Any:
    return select(_value(object_query), GranuleRow.id).where(*conditions)


def _keys_of_time(
    session: Session, object_query: ObjectQuery, conditions: list[Any]
) -> list[ObjectKey] | None:
    """Return the granules of a short time, which an index has; None of a long one, or without."""
    if object_query.time is None:
        return None
    rows = session.execute(_keys(object_query, conditions).limit(MOST_OF_TIME + 1)).all()
    return [ObjectKey(*row) for row in rows] if len(rows) <= MOST_OF_TIME else None


def _by_number(session: Session, query: Any, keys: list[ObjectKey]) -> Iterator[_Candidate]:
    """Yield granules in the order of their keys, as far as they match."""
    for part in _parts(keys):
        rows = session.execute(query.where(GranuleRow.id.in_([key.granule for key in part])))
        of = {candidate.key.granule: candidate for candidate in map(_candidate, rows)}
        yield from (of[key.granule] for key in part if key.granule in of)


def _span(object_query: ObjectQuery) -> tuple[float, float] | None:
    """Return the time of a search, MJD, with ends that databases can compare."""
    if object_query.time is None:
        return None
    start, end = (max(min(each, LATE), EARLY) for each in object_query.time)
    return start, end


def _stream(session: Session, object_query: ObjectQuery, query: Any) -> Iterator[_Candidate]:
    after, is_descending = object_query.after, object_query.is_descending
    if object_query.order != "time":
        yield from _in_order(session, query, _value(object_query), after, is_descending)
        return
    # An index has the times, but not what stands for none.
    if after is None or after.value not in (LATE, EARLY):
        with_time = query.where(GranuleRow.t_min.is_not(None))
        yield from _in_order(session, with_time, GranuleRow.t_min, after, is_descending)
        after = None
    without_time = query.where(GranuleRow.t_min.is_(None))
    after = after and ObjectKey(after.granule, after.granule)
    yield from _in_order(session, without_time, GranuleRow.id, after, is_descending)


def _in_order(
    session: Session, query: Any, value: Any, after: ObjectKey | None, is_descending: bool
) -> Iterator[_Candidate]:
    if after is not None:
        place = tuple_(value, GranuleRow.id)
        query = query.where(place < after if is_descending else place > after)
    columns = (value,) if value is GranuleRow.id else (value, GranuleRow.id)
    order = (each.desc() if is_descending else each for each in columns)
    # A caller that stops early leaves rows unread, and servers keep them.
    with session.connection().execute(
        query.order_by(*order), execution_options=STREAM_OPTIONS
    ) as rows:
        yield from map(_candidate, rows)


def _firsts(
    session: Session, object_query: ObjectQuery, conditions: list[Any], some: list[_Candidate]
) -> list[_Candidate]:
    """Return the candidates that are the first matching granule of their object, in order."""
    some = _that_touch(object_query, some)
    by_dataset: dict[int, set[str]] = {}
    for candidate in some:
        by_dataset.setdefault(candidate.dataset, set()).add(candidate.path)
    pick = max if object_query.is_descending else min
    first: dict[tuple[int, str], ObjectKey] = {}
    for dataset, paths in by_dataset.items():
        for part in _parts(sorted(paths)):
            place = (GranuleRow.dataset_id == dataset, GranuleRow.path.in_(part))
            rows = session.execute(_selection(object_query).where(*conditions, *place))
            for each in _that_touch(object_query, list(map(_candidate, rows))):
                of = (each.dataset, each.path)
                first[of] = pick(first.get(of, each.key), each.key)
    return [each for each in some if each.key == first[each.dataset, each.path]]


def _that_touch(object_query: ObjectQuery, some: list[_Candidate]) -> list[_Candidate]:
    if object_query.touches is None:
        return some
    touches = object_query.touches([each.outlines or [] for each in some])
    return [each for each, is_there in zip(some, touches, strict=True) if is_there]


def _objects(session: Session, firsts: list[_Candidate]) -> list[DatasetObject]:
    """Return the objects of candidates, with all their granules and a readable copy of each."""
    of: dict[tuple[int, str], tuple[str, str, list[Granule]]] = {}
    for dataset in {each.dataset for each in firsts}:
        paths = [each.path for each in firsts if each.dataset == dataset]
        for part in _parts(paths):
            query = COPIES.where(GranuleRow.dataset_id == dataset, GranuleRow.path.in_(part))
            last = None
            for number, *row, name, _, store, path in session.execute(query):
                if number == last:  # another copy
                    continue
                last = number
                granule = granule_of(*row)
                of.setdefault((dataset, granule.path), (name, f"{store}:{path}", []))[2].append(
                    granule
                )
    return [
        DatasetObject(each.key, *of[each.dataset, each.path])
        for each in firsts
        if (each.dataset, each.path) in of
    ]


def _parts(all_of: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(all_of), CANDIDATES):
        yield all_of[at : at + CANDIDATES]
