"""The images of datasets: put in batch by batch, and found by place, time and band."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number, note_change, store_number
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.datasets import ALL_CELLS, LEVELS, Footprint, Granule, Match, Replica
from swathe.catalog.tables import DatasetRow, FootprintRow, GranuleRow, ReplicaRow, StoreRow

T = TypeVar("T")

LONGEST_NOTE = 1_000
LONGEST_WORD = 100
AT_ONCE = 500
"""Paths or numbers in one statement: databases take only so many parameters."""


@dataclass(frozen=True)
class Wanted:
    """What granules must be to be found; `None` asks for nothing.

    Attributes:
        ranges: HEALPix cells of order 29 that the footprint must touch, `(first, last)`.
        dataset: name of the dataset.
        time: MJD, UTC, from and to: some of it must be within.
        band: name of the filter, or shortest and longest wavelength in metres.
        limit: give no more than so many.
    """

    ranges: Sequence[tuple[int, int]] | None = None
    dataset: str | None = None
    time: tuple[float, float] | None = None
    band: str | tuple[float, float] | None = None
    limit: int | None = None


class Granules(Database):
    """Images of datasets."""

    def put_objects(
        self, dataset: str, store: str, found: Iterable[tuple[Replica, Sequence[Granule] | None]]
    ) -> None:
        """Keep what objects of a store were found to hold, in place of what was known of them.

        `None` for the images: those that are known stay. Copies in other stores of what is another
        object now are stale.

        Raises:
            NoSuchDatasetError, NoSuchStoreError: where there is none of that name.
        """
        given = list(found)
        now = datetime.now(UTC)
        with self._writing() as session:
            number, place = dataset_number(session, dataset), store_number(session, store)
            note_change(session, number)
            read = [replica.object_path for replica, granules in given if granules is not None]
            _forget(
                session,
                number,
                place,
                [replica.object_path for replica, _ in given],
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
            replicas = [_replica_values(each, number, place, now) for each, _ in given]
            if replicas:
                connection.execute(insert(ReplicaRow), replicas)
            images = [granule for _, granules in given for granule in granules or ()]
            if not images:
                return
            added = connection.scalars(
                insert(GranuleRow).returning(GranuleRow.id, sort_by_parameter_order=True),
                [_granule_values(granule, number, now) for granule in images],
            )
            ranges = [
                {"level": level_of(first, last), "first": first, "last": last, "granule_id": of}
                for of, granule in zip(added, images, strict=True)
                if granule.footprint is not None
                for first, last in granule.footprint.ranges
            ]
            if ranges:
                connection.execute(insert(FootprintRow), ranges)

    def find_granules(self, wanted: Wanted) -> list[Match]:
        """Give the granules that are as wanted and have a copy to read, in order of their files.

        A place is only compared by HEALPix cells: all that touch it are given, and some beside.

        Raises:
            NoSuchDatasetError: where there is no such dataset.
        """
        found = list(self.each_granule(wanted))
        return sorted(found, key=lambda match: (match.file, match.granule.hdu))

    def each_granule(self, wanted: Wanted) -> Iterator[Match]:
        """Give the granules that are as wanted one by one, in the order they were catalogued.

        Whoever has enough stops: what comes after is not read.

        Raises:
            NoSuchDatasetError: where there is no such dataset.
        """
        with self._reading() as session:
            query = _query(session, wanted)
            parts: Iterable[Any] = (query,)
            if wanted.ranges is not None:
                ids = touching(session, wanted.ranges)
                parts = (query.where(GranuleRow.id.in_(part)) for part in _parts(ids))
            for _, match in _matches(session, parts, wanted.limit):
                yield match

    def granule(self, dataset: str, path: str, hdu: int) -> Match | None:
        """Give the granule that an HDU of an object is, `path` in the first store of the dataset.

        `None` where there is none, or no copy of it to read.
        """
        named = (DatasetRow.name == dataset, GranuleRow.path == path, GranuleRow.hdu == hdu)
        with self._reading() as session:
            found = list(_matches(session, [COPIES.where(*named)], 1))
        return found[0][1] if found else None

    def granules_at(
        self, cells: Sequence[int], wanted: Wanted, check: Callable[[int], None]
    ) -> tuple[dict[int, Match], list[tuple[int, int]]]:
        """Give the granules that may show each of many places, given as cells of order 29.

        Of `wanted`, ranges and limit do not count. `check` is called with how many pairs there are
        so far.

        Returns:
            The granules by number; and pairs, which place and the number of a granule.

        Raises:
            NoSuchDatasetError: where there is no such dataset.
        """
        pairs: list[tuple[int, int]] = []
        matches: dict[int, Match] = {}
        with self._reading() as session:
            query = _query(session, wanted)
            known: set[int] = set()
            for at in range(0, len(cells), AT_ONCE):
                here = enumerate(cells[at : at + AT_ONCE], start=at)
                found = _touching(session, [(place, cell, cell) for place, cell in here])
                new = sorted({granule for _, granule in found} - known)
                known.update(new)
                parts = (query.where(GranuleRow.id.in_(ids)) for ids in _parts(new))
                matches |= dict(_matches(session, parts, None))
                pairs += [pair for pair in found if pair[1] in matches]
                check(len(pairs))
        return matches, pairs


def _query(session: Session, wanted: Wanted) -> Any:
    """Ask for granules that are as wanted, wherever they are, and a copy to read of each."""
    query = COPIES
    if wanted.dataset is not None:
        query = query.where(GranuleRow.dataset_id == dataset_number(session, wanted.dataset))
    return _with_limits(query, wanted)


def _matches(
    session: Session, parts: Iterable[Any], limit: int | None
) -> Iterator[tuple[int, Match]]:
    """Give granules with their numbers; of each its first copy, which follows it in the answer."""
    given, last = 0, None
    for part in parts:
        # Who has enough leaves rows behind, and servers keep them.
        with session.connection().execute(part, execution_options=STREAMED) as found:
            for number, *row, dataset, calib_level, store, path in found:
                if number == last:
                    continue
                if given == limit:
                    return
                given, last = given + 1, number
                yield number, Match(dataset, calib_level, f"{store}:{path}", granule_of(*row))


def level_of(first: int, last: int) -> int:
    """Give the least level of which a range can be."""
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
"""Levels times ranges are many, so the database multiplies them. As text, because SQLAlchemy makes
a statement with VALUES anew for each search, which takes longer than the search."""
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
"""It cannot know how few there are, and would rather read the whole table: `OFFSET 0` makes it look
into the index for each."""


def touching(session: Session, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Give the granules whose footprints touch these cells."""
    found = _touching(session, [(0, first, last) for first, last in ranges])
    return [granule for _, granule in found]


def _touching(session: Session, asked: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Give pairs: a place, and a granule whose footprint touches the cells asked for of it."""
    if not asked:
        return []
    cells = ", ".join(f"({place}, {int(first)}, {int(last)})" for place, first, last in asked)
    levels = ", ".join(f"({level}, {min(4**level, ALL_CELLS) - 1})" for level in LEVELS)
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    statement = TOUCHING if on_sqlite else TOUCHING_IN_POSTGRESQL
    found = session.execute(text(statement.format(asked=cells, levels=levels)))
    return [(place, granule) for place, granule in found]


def _with_limits(query: Any, wanted: Wanted) -> Any:
    if wanted.time is not None:
        start, end = wanted.time
        query = query.where(GranuleRow.t_min <= end, GranuleRow.t_max >= start)
    if isinstance(wanted.band, str):
        query = query.where(GranuleRow.band == wanted.band)
    elif wanted.band is not None:
        shortest, longest = wanted.band
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
    place = granule.footprint
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
        "size": granule.size,
        "version": granule.version,
        "seen_at": now,
    }


def _word(text: str | None) -> str | None:
    return None if text is None else plain_text(text, LONGEST_WORD)


# Rows of plain columns: objects of SQLAlchemy take twice as long.
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
"""Granules and their copies to read, of several the one in the first store first."""
STREAMED = {"yield_per": 500}


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
    s_ra: float | None,
    *place: Any,
) -> Granule:
    """Give an image of the columns in GRANULE_COLUMNS, but for the first."""
    covered = None
    if s_ra is not None:
        s_dec, s_fov, s_pixel_scale, outline, wcs = place
        covered = Footprint(s_ra, s_dec, s_fov, s_pixel_scale, [], outline, wcs)
    told = (t_min, t_max, band, em_min, em_max)
    origin = (facility, instrument, target, tuple(pol or ()))
    return Granule(path, hdu, name, tuple(shape), size, version, *told, covered, note, *origin)
