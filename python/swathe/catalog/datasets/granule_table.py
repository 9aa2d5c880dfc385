"""Copies of the images that a search returns, as plain rows: for tables of many."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.datasets.granules import STREAM_OPTIONS, GranuleQuery, touching

PART = 1_000
"""Granules per part of the answer."""


class GranuleCopy(NamedTuple):
    """An image, and one readable copy of it. See `Granule` and `Footprint`.

    `outline`, `outlines` and `shape` are JSON text as stored: reading many is ten times faster so.
    """

    id: int
    store: str
    is_first: bool
    file: str
    hdu: int
    dataset: str
    name: str | None
    t_min: float | None
    t_max: float | None
    band: str | None
    em_min: float | None
    em_max: float | None
    s_ra: float | None
    s_dec: float | None
    s_fov: float | None
    s_pixel_scale: float | None
    outline: str | None
    wcs: str | None
    shape: str
    size: int
    version: str
    array: str | None
    outlines: str | None


COPIES = """
    SELECT granules.id, stores.name, stores.id = datasets.store_id,
    stores.name || ':' || replicas.path, granules.hdu, datasets.name, granules.name,
    granules.t_min, granules.t_max, granules.band, granules.em_min, granules.em_max,
    granules.s_ra, granules.s_dec, granules.s_fov, granules.s_pixel_scale,
    CAST(granules.outline AS TEXT), granules.wcs, CAST(granules.shape AS TEXT), granules.size,
    granules.version, granules.array, CAST(granules.outlines AS TEXT)
    FROM granules CROSS JOIN datasets CROSS JOIN replicas CROSS JOIN stores
    WHERE datasets.id = granules.dataset_id AND replicas.dataset_id = granules.dataset_id
    AND replicas.object_path = granules.path AND replicas.state = 'ok'
    AND stores.id = replicas.store_id{more} AND granules.id {among}
"""
"""Plain text: SQLAlchemy would parse the JSON row by row, which takes longer than the search.
SQLite joins the tables of a CROSS JOIN in their order; PostgreSQL finds its own."""
AMONG = {
    "sqlite": "IN (SELECT value FROM json_each('[' || :ids || ']'))",
    "postgresql": "= ANY(CAST('{' || :ids || '}' AS BIGINT[]))",
}
"""As a parameter: statements with a thousand numbers in them are slow to parse, each anew, and
SQLite's module caches 128."""
NUMBERS = "SELECT granules.id FROM granules WHERE TRUE{more}"


class GranuleCopies(Database):
    """Results of a search before the exact comparison with the sky position."""

    def granule_copies(self, granule_query: GranuleQuery) -> list[GranuleCopy]:
        """Return all parts of `copies_by_parts` in one list.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        return list(chain.from_iterable(self.copies_by_parts(granule_query)))

    def copies_by_parts(
        self, granule_query: GranuleQuery
    ) -> Generator[list[GranuleCopy], None, None]:
        """Yield the readable copies of matching granules, up to PART granules at a time.

        They are in the order of granules, all copies of one together. The position is compared by
        HEALPix cells only: the answer contains all granules that touch it, and some others. `limit`
        is not enforced; but with a limit the search continues only while the caller asks for more.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._reading() as session:
            more, parameters = _conditions(session, granule_query)
            if granule_query.ranges is not None:
                yield from _parts(
                    session, sorted(touching(session, granule_query)), more, parameters
                )
                return
            query = NUMBERS.format(more=more)
            if granule_query.limit is None:
                # SQLite would read all granules in order rather than some by an index.
                numbers = sorted(session.scalars(text(query), parameters))
                yield from _parts(session, numbers, more, parameters)
                return
            run = session.connection().execute
            ordered_query = text(f"{query} ORDER BY granules.id")
            # A caller that stops early leaves rows unread, and servers keep them.
            with run(ordered_query, parameters, execution_options=STREAM_OPTIONS) as rows:
                yield from _parts(session, rows.scalars(), more, parameters)


def _conditions(session: Session, granule_query: GranuleQuery) -> tuple[str, dict[str, Any]]:
    """Return the SQL conditions on granules other than position, and their parameters."""
    more = ""
    parameters: dict[str, Any] = {}
    if granule_query.dataset is not None:
        parameters["dataset"] = dataset_number(session, granule_query.dataset)
        more += " AND granules.dataset_id = :dataset"
    if granule_query.is_hdu:
        more += " AND granules.array IS NULL"
    if granule_query.time is not None:
        parameters["start"], parameters["end"] = granule_query.time
        more += " AND granules.t_min <= :end AND granules.t_max >= :start"
    if isinstance(granule_query.band, str):
        parameters["band"] = granule_query.band
        more += " AND granules.band = :band"
    elif granule_query.band is not None:
        parameters["shortest"], parameters["longest"] = granule_query.band
        more += " AND granules.em_min <= :longest AND granules.em_max >= :shortest"
    return more, parameters


def _parts(
    session: Session, numbers: Iterable[int], more: str, conditions: dict[str, Any]
) -> Iterator[list[GranuleCopy]]:
    """Yield the copies of granules given by number, in order."""
    query = text(COPIES.format(more=more, among=AMONG[session.get_bind().dialect.name]))
    remaining = iter(numbers)
    while ids := ",".join(map(str, islice(remaining, PART))):
        rows = session.execute(query, {**conditions, "ids": ids})
        yield sorted(map(GranuleCopy._make, rows), key=attrgetter("id"))
