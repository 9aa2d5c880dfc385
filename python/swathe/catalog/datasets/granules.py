"""The images of datasets: stored batch by batch, and searched by position, time and band."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import and_, case, delete, false, insert, or_, select, text, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number, note_change, store_number
from swathe.catalog.datasets.object_changes import log_changes
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.datasets import (
    ALL_CELLS,
    LEVELS,
    EarthFootprint,
    Footprint,
    Granule,
    Match,
    Replica,
)
from swathe.catalog.tables import (
    DatasetRow,
    EarthFootprintRow,
    FootprintRow,
    GranuleRow,
    ReplicaRow,
    StoreRow,
)

T = TypeVar("T")

LONGEST_NOTE = 1_000
LONGEST_WORD = 100
MOST_SPANS = 100
"""Datasets of a statement that have a time of their own."""
AT_ONCE = 500
"""Paths or numbers per statement: databases limit the number of parameters."""


@dataclass(frozen=True)
class GranuleQuery:
    """Criteria of a search; `None` means any.

    Attributes:
        ranges: HEALPix cells of order 29 that the footprint must touch, `(first, last)`.
        is_on_earth: the cells are of the Earth, else of the sky.
        is_hdu: only images of FITS match.
        dataset: name of the dataset.
        time: MJD, UTC, from and to; the exposure must overlap it.
        band: name of the filter, or shortest and longest wavelength in metres.
        limit: largest number of results.
    """

    ranges: Sequence[tuple[int, int]] | None = None
    dataset: str | None = None
    time: tuple[float, float] | None = None
    band: str | tuple[float, float] | None = None
    limit: int | None = None
    is_on_earth: bool = False
    is_hdu: bool = False


class Granules(Database):
    """Images of datasets."""

    def put_objects(
        self, dataset: str, store: str, entries: Iterable[tuple[Replica, Sequence[Granule] | None]]
    ) -> None:
        """Store the scanned contents of a store's objects, replacing earlier records.

        If an object's images are `None`, its known images stay. Copies in other stores of an object
        that has changed become stale. Changes of objects in the first store are logged.

        Raises:
            NoSuchDatasetError, NoSuchStoreError: If there is no such dataset or store.
        """
        objects = list(entries)
        now = datetime.now(UTC)
        with self._writing() as session:
            number, place = dataset_number(session, dataset), store_number(session, store)
            images = [granule for _, granules in objects for granule in granules or ()]
            longest_d = max((_exposure_d(image) for image in images), default=0.0)
            is_longer = DatasetRow.longest_d < longest_d
            longest = case((is_longer, longest_d), else_=DatasetRow.longest_d)
            note_change(session, number, longest_d=longest)
            read = [replica.object_path for replica, granules in objects if granules is not None]
            _forget(
                session,
                number,
                place,
                [replica.object_path for replica, _ in objects],
                read,
            )
            for part in _parts(read):
                session.execute(
                    update(ReplicaRow)
                    .where(
                        ReplicaRow.dataset_id == number,
                        ReplicaRow.store_id != place,
                        ReplicaRow.object_path.in_(part),
                        ReplicaRow.state == "ok",
                    )
                    .values(state="stale", seen_at=now)
                )
            connection = session.connection()
            replicas = [_replica_values(each, number, place, now) for each, _ in objects]
            if replicas:
                connection.execute(insert(ReplicaRow), replicas)
            if images:
                _insert_granules(session, number, images, now)
            if place == session.scalar(select(DatasetRow.store_id).where(DatasetRow.id == number)):
                versions = {
                    each.object_path: each.version if each.state == "ok" else None
                    for each, _ in objects
                    if each.state != "failed"  # it may be readable the next time
                }
                log_changes(session, dataset, versions)

    def find_granules(self, granule_query: GranuleQuery) -> list[Match]:
        """Return the matching granules that have a readable copy, by file.

        The position is compared by HEALPix cells only: the answer contains all granules that touch
        it, and some others.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        matches = list(self.each_granule(granule_query))
        return sorted(matches, key=lambda match: (match.file, match.granule.hdu))

    def each_granule(self, granule_query: GranuleQuery) -> Iterator[Match]:
        """Yield the matching granules one by one, in catalogue order.

        If the caller stops, the rest is not read.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        for _, match in self.numbered_granules(granule_query):
            yield match

    def numbered_granules(self, granule_query: GranuleQuery) -> Iterator[tuple[int, Match]]:
        """Yield the matching granules as `each_granule` does, with their numbers.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._reading() as session:
            query = _query(session, granule_query)
            parts: Iterable[Any] = (query,)
            if granule_query.ranges is not None:
                ids = touching(session, granule_query)
                parts = (query.where(GranuleRow.id.in_(part)) for part in _parts(ids))
            yield from _matches(session, parts, granule_query.limit)

    def has_more_near(self, granule_query: GranuleQuery, most: int) -> bool:
        """Check whether more than `most` granules touch the cells of a search, of any dataset.

        The other criteria are ignored, so that it takes milliseconds.
        """
        if not granule_query.ranges:
            return False
        with self._reading() as session:
            some = f"{_touching_one(session, granule_query)} LIMIT {most + 1}"
            return len(session.scalars(text(some)).all()) > most

    def granule(self, dataset: str, path: str, hdu: int) -> Match | None:
        """Return the image of an HDU; `path` is its object in the dataset's first store.

        `None` if there is none, or no readable copy.
        """
        conditions = (
            DatasetRow.name == dataset,
            GranuleRow.path == path,
            GranuleRow.hdu == hdu,
            GranuleRow.array.is_(None),
        )
        with self._reading() as session:
            matches = list(_matches(session, [COPIES.where(*conditions)], 1))
        return matches[0][1] if matches else None

    def granules_at(
        self, cells: Sequence[int], granule_query: GranuleQuery, check: Callable[[int], None]
    ) -> tuple[dict[int, Match], list[tuple[int, int]]]:
        """Return the granules that may cover each of many positions, given as cells of order 29.

        `ranges` and `limit` of `granule_query` are ignored. `check` is called with the number of
        pairs so far.

        Returns:
            The granules by number; and pairs of position index and granule number.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        pairs: list[tuple[int, int]] = []
        matches: dict[int, Match] = {}
        with self._reading() as session:
            query = _query(session, granule_query)
            earlier_numbers: set[int] = set()
            for at in range(0, len(cells), AT_ONCE):
                here = enumerate(cells[at : at + AT_ONCE], start=at)
                pairs_here = _touching(session, [(place, cell, cell) for place, cell in here])
                new = sorted({granule for _, granule in pairs_here} - earlier_numbers)
                earlier_numbers.update(new)
                parts = (query.where(GranuleRow.id.in_(ids)) for ids in _parts(new))
                matches |= dict(_matches(session, parts, None))
                pairs += [pair for pair in pairs_here if pair[1] in matches]
                check(len(pairs))
        return matches, pairs


def _insert_granules(
    session: Session, dataset: int, images: Sequence[Granule], now: datetime
) -> None:
    """Insert granules and the cells of their places."""
    connection = session.connection()
    new_ids = connection.scalars(
        insert(GranuleRow).returning(GranuleRow.id, sort_by_parameter_order=True),
        [_granule_values(granule, dataset, now) for granule in images],
    )
    numbers = list(new_ids)
    for table, places in (
        (FootprintRow, [granule.footprint for granule in images]),
        (EarthFootprintRow, [granule.place for granule in images]),
    ):
        ranges = [
            {"level": level_of(first, last), "first": first, "last": last, "granule_id": of}
            for of, place in zip(numbers, places, strict=True)
            if place is not None
            for first, last in place.ranges
        ]
        if ranges:
            connection.execute(insert(table), ranges)


def _query(session: Session, granule_query: GranuleQuery) -> Any:
    """Return the query for matching granules at any position, with one readable copy each."""
    query = COPIES
    if granule_query.dataset is not None:
        query = query.where(GranuleRow.dataset_id == dataset_number(session, granule_query.dataset))
    return _with_limits(query, granule_query)


def _matches(
    session: Session, parts: Iterable[Any], limit: int | None
) -> Iterator[tuple[int, Match]]:
    """Yield granules with their numbers and their first copy; copies are adjacent in `parts`."""
    count, last = 0, None
    for part in parts:
        # A caller that stops early leaves rows unread, and servers keep them.
        with session.connection().execute(part, execution_options=STREAM_OPTIONS) as rows:
            for number, *row, dataset, calib_level, store, path in rows:
                if number == last:
                    continue
                if count == limit:
                    return
                count, last = count + 1, number
                yield number, Match(dataset, calib_level, f"{store}:{path}", granule_of(*row))


def _exposure_d(granule: Granule) -> float:
    """Return how long the exposure of an image was, in days; 0 if it is not known."""
    if granule.t_min is None or granule.t_max is None:
        return 0.0
    return granule.t_max - granule.t_min


def overlapping(session: Session, datasets: Sequence[int] | None, time: tuple[float, float]) -> Any:
    """Return the condition that an exposure of one of these datasets, or of any, overlaps a time.

    An index finds them: none began earlier than the longest exposure of its dataset before.
    """
    start, end = time
    query = select(DatasetRow.id, DatasetRow.longest_d)
    longest = {of: days for of, days in session.execute(query)}  # noqa: C416 - rows are no pairs
    numbers = longest if datasets is None else set(datasets) & set(longest)
    spans = [(of, start - longest[of]) for of in sorted(numbers)]
    if len(spans) > MOST_SPANS:
        earliest = min(first for _, first in spans)
        is_near: Any = GranuleRow.t_min.between(earliest, end)
    else:
        is_near = or_(
            false(),
            *(
                # A sum, so that the index of times is used and not that of datasets.
                and_(GranuleRow.dataset_id + 0 == of, GranuleRow.t_min.between(first, end))
                for of, first in spans
            ),
        )
    return and_(is_near, GranuleRow.t_max >= start)


def level_of(first: int, last: int) -> int:
    """Return the smallest level that fits a range."""
    return next(level for level in LEVELS if last - first < 4**level)


TOUCHING = """
    WITH asked (place, first, last) AS (VALUES {asked}), levels (level, reach) AS (VALUES {levels})
    SELECT DISTINCT asked.place, footprints.granule_id
    FROM asked CROSS JOIN levels JOIN footprints
    ON footprints.level = levels.level
    AND footprints.first BETWEEN asked.first - levels.reach AND asked.last
    AND footprints.last >= asked.first
    ORDER BY 1, 2
"""
"""The product of levels and ranges is large, so the database forms it. Plain text: SQLAlchemy would
compile a statement with VALUES again for each search, which takes longer than the search."""
TOUCHING_IN_POSTGRESQL = """
    WITH asked (place, first, last) AS (VALUES {asked}), levels (level, reach) AS (VALUES {levels})
    SELECT DISTINCT asked.place, found.granule_id
    FROM asked CROSS JOIN levels CROSS JOIN LATERAL (
        SELECT footprints.granule_id FROM footprints
        WHERE footprints.level = levels.level
        AND footprints.first BETWEEN asked.first - levels.reach AND asked.last
        AND footprints.last >= asked.first
        OFFSET 0
    ) AS found
    ORDER BY 1, 2
"""
"""PostgreSQL cannot know how few rows there are, and would scan the whole table: `OFFSET 0` makes
it use the index for each."""
TOUCHING_ONE = """
    WITH asked (first, last) AS (VALUES {asked}), windows (level, first, last) AS (VALUES {windows})
    SELECT DISTINCT near.granule_id
    FROM windows CROSS JOIN {footprints}
    WHERE EXISTS (SELECT 1 FROM asked WHERE near.last >= asked.first AND near.first <= asked.last)
"""
NEAR = {
    "sqlite": """{table} AS near ON near.level = windows.level
    AND near.first BETWEEN windows.first AND windows.last""",
    "postgresql": """LATERAL (
        SELECT granule_id, first, last FROM {table}
        WHERE {table}.level = windows.level
        AND {table}.first BETWEEN windows.first AND windows.last
        OFFSET 0
    ) AS near""",
}
"""For one place. The starts of long ranges that may touch a cell are many, and much the same for
all of its cells: each is looked at once."""


def touching(session: Session, granule_query: GranuleQuery) -> list[int]:
    """Return the granules whose footprints touch the cells of a search, in order."""
    if not granule_query.ranges:
        return []
    return list(session.scalars(text(f"{_touching_one(session, granule_query)} ORDER BY 1")))


def _touching_one(session: Session, granule_query: GranuleQuery) -> str:
    """Return the statement that selects the granules which touch the cells of a search."""
    table = EarthFootprintRow if granule_query.is_on_earth else FootprintRow
    ranges = granule_query.ranges or ()
    cells = ", ".join(f"({int(first)}, {int(last)})" for first, last in ranges)
    windows = ", ".join(f"({level}, {first}, {last})" for level, first, last in _windows(ranges))
    near = NEAR[session.get_bind().dialect.name].format(table=table.__tablename__)
    return TOUCHING_ONE.format(asked=cells, windows=windows, footprints=near)


def _windows(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield level, and first and last start of the ranges of this level that may touch others."""
    for level in LEVELS:
        reach = min(4**level, ALL_CELLS) - 1
        low = high = None
        for first, last in sorted((int(first) - reach, int(last)) for first, last in ranges):
            if high is not None and low is not None and first > high + 1:
                yield level, low, high
                low = high = None
            low = first if low is None else low
            high = last if high is None else max(high, last)
        if low is not None and high is not None:
            yield level, low, high


def _touching(
    session: Session, cell_ranges: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int]]:
    """Return pairs of a position and a granule whose footprint touches the position's cells."""
    if not cell_ranges:
        return []
    cells = ", ".join(f"({place}, {int(first)}, {int(last)})" for place, first, last in cell_ranges)
    levels = ", ".join(f"({level}, {min(4**level, ALL_CELLS) - 1})" for level in LEVELS)
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    statement = TOUCHING if on_sqlite else TOUCHING_IN_POSTGRESQL
    rows = session.execute(text(statement.format(asked=cells, levels=levels)))
    return [(place, granule) for place, granule in rows]


def _with_limits(query: Any, granule_query: GranuleQuery) -> Any:
    if granule_query.is_hdu:
        query = query.where(GranuleRow.array.is_(None))
    if granule_query.time is not None:
        start, end = granule_query.time
        query = query.where(GranuleRow.t_min <= end, GranuleRow.t_max >= start)
    if isinstance(granule_query.band, str):
        query = query.where(GranuleRow.band == granule_query.band)
    elif granule_query.band is not None:
        shortest, longest = granule_query.band
        query = query.where(GranuleRow.em_min <= longest, GranuleRow.em_max >= shortest)
    return query


def _forget(
    session: Session, dataset: int, store: int, replicas: Sequence[str], granules: Sequence[str]
) -> None:
    for part in _parts(granules):
        session.execute(
            delete(GranuleRow).where(GranuleRow.dataset_id == dataset, GranuleRow.path.in_(part))
        )
    for part in _parts(replicas):
        session.execute(
            delete(ReplicaRow).where(
                ReplicaRow.dataset_id == dataset,
                ReplicaRow.store_id == store,
                ReplicaRow.object_path.in_(part),
            )
        )


def _parts(all_of: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(all_of), AT_ONCE):
        yield all_of[at : at + AT_ONCE]


def _replica_values(replica: Replica, dataset: int, store: int, now: datetime) -> dict[str, Any]:
    reason = replica.reason
    return {
        "dataset_id": dataset,
        "object_path": replica.object_path,
        "store_id": store,
        "path": replica.path,
        "size": replica.size,
        "modified": replica.modified,
        "version": replica.version,
        "state": replica.state,
        "reason": None if reason is None else plain_text(reason, LONGEST_NOTE),
        "seen_at": now,
    }


def _granule_values(granule: Granule, dataset: int, now: datetime) -> dict[str, Any]:
    place, earth = granule.footprint, granule.place
    return {
        "dataset_id": dataset,
        "path": granule.path,
        "hdu": granule.hdu,
        "name": None if granule.name is None else plain_text(granule.name, LONGEST_NOTE),
        "shape": list(granule.shape),
        "t_min": granule.t_min,
        "t_max": granule.t_max,
        "band": _word(granule.band),
        "em_min": granule.em_min,
        "em_max": granule.em_max,
        "s_ra": place and place.s_ra,
        "s_dec": place and place.s_dec,
        "s_fov": place and place.s_fov,
        "s_pixel_scale": place and place.s_pixel_scale,
        "outline": place and place.outline,
        "wcs": place and place.wcs,
        "note": None if granule.note is None else plain_text(granule.note, LONGEST_NOTE),
        "facility": _word(granule.facility),
        "instrument": _word(granule.instrument),
        "target": _word(granule.target),
        "pol": list(granule.pol) or None,
        "array": granule.array,
        "lon": earth and earth.lon,
        "lat": earth and earth.lat,
        "fov": earth and earth.fov,
        "outlines": earth and earth.outlines,
        "orbit": granule.orbit,
        "size": granule.size,
        "version": granule.version,
        "seen_at": now,
    }


def _word(text: str | None) -> str | None:
    return None if text is None else plain_text(text, LONGEST_WORD)


# Plain column rows: ORM objects take twice as long.
GRANULE_COLUMNS = [
    getattr(GranuleRow, name)
    for name in (
        "id",
        "path",
        "hdu",
        "name",
        "shape",
        "size",
        "version",
        "t_min",
        "t_max",
        "band",
        "em_min",
        "em_max",
        "note",
        "facility",
        "instrument",
        "target",
        "pol",
        "array",
        "lon",
        "lat",
        "fov",
        "outlines",
        "orbit",
        "s_ra",
        "s_dec",
        "s_fov",
        "s_pixel_scale",
        "outline",
        "wcs",
    )
]


COPIES: Any = (
    select(
        *GRANULE_COLUMNS, DatasetRow.name, DatasetRow.calib_level, StoreRow.name, ReplicaRow.path
    )
    .join(DatasetRow, DatasetRow.id == GranuleRow.dataset_id)
    .join(
        ReplicaRow,
        (ReplicaRow.dataset_id == GranuleRow.dataset_id)
        & (ReplicaRow.object_path == GranuleRow.path),
    )
    .join(StoreRow, StoreRow.id == ReplicaRow.store_id)
    .where(ReplicaRow.state == "ok")
    .order_by(GranuleRow.id, ReplicaRow.store_id != DatasetRow.store_id)
)
"""Granules and their readable copies; of several copies, the one in the first store first."""
STREAM_OPTIONS = {"yield_per": 500}


def granule_of(
    path: str,
    hdu: int,
    name: str | None,
    shape: list[int],
    size: int,
    version: str,
    t_min: float | None,
    t_max: float | None,
    band: str | None,
    em_min: float | None,
    em_max: float | None,
    note: str | None,
    facility: str | None,
    instrument: str | None,
    target: str | None,
    pol: list[str] | None,
    array: str | None,
    lon: float | None,
    lat: float | None,
    fov: float | None,
    outlines: list[list[float]] | None,
    orbit: int | None,
    s_ra: float | None,
    *place: Any,
) -> Granule:
    """Return an image from the columns in GRANULE_COLUMNS, except the first."""
    footprint = None
    if s_ra is not None:
        s_dec, s_fov, s_pixel_scale, outline, wcs = place
        footprint = Footprint(s_ra, s_dec, s_fov, s_pixel_scale, [], outline, wcs)
    earth = None
    if lon is not None and lat is not None and fov is not None:
        earth = EarthFootprint(lon, lat, fov, [], outlines or [])
    coverage = (t_min, t_max, band, em_min, em_max)
    origin = (facility, instrument, target)
    return Granule(
        path,
        hdu,
        name,
        tuple(shape),
        size,
        version,
        *coverage,
        footprint,
        note,
        *origin,
        pol=tuple(pol or ()),
        array=array,
        place=earth,
        orbit=orbit,
    )
