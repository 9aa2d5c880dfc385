"""The copies of images that a search gives, as plain rows: for tables of many."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.datasets.granules import STREAMED, Wanted, touching

PART = 1_000
"""Granules whose copies are given at a time, where they are given by parts."""


class GranuleCopy(NamedTuple):
    """An image, and where one of its copies can be read. See `Granule` and `Footprint`.

    `outline` and `shape` are JSON as it is kept: to read many at once takes a tenth of the time.
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


COPIES = """
    SELECT granules.id, stores.name, stores.id = datasets.store_id,
    stores.name || ':' || replicas.path, granules.hdu, datasets.name, granules.name,
    granules.t_min, granules.t_max, granules.band, granules.em_min, granules.em_max,
    granules.s_ra, granules.s_dec, granules.s_fov, granules.s_pixel_scale,
    CAST(granules.outline AS TEXT), granules.wcs, CAST(granules.shape AS TEXT), granules.size,
    granules.version
    FROM granules CROSS JOIN datasets CROSS JOIN replicas CROSS JOIN stores
    WHERE datasets.id = granules.dataset_id AND replicas.dataset_id = granules.dataset_id
    AND replicas.object_path = granules.path AND replicas.state = 'ok'
    AND stores.id = replicas.store_id{more} AND granules.id {among}
"""
"""As text: SQLAlchemy would read the JSON row by row, which takes longer than the search. SQLite
takes the tables of a CROSS JOIN in their order; PostgreSQL finds its own."""
AMONG = {
    "sqlite": "IN (SELECT value FROM json_each('[' || :ids || ']'))",
    "postgresql": "= ANY(CAST('{' || :ids || '}' AS BIGINT[]))",
}
"""As a parameter: statements with a thousand numbers in them take long to read, each anew, and
SQLite's module keeps 128."""
NUMBERS = "SELECT granules.id FROM granules WHERE TRUE{more}"


class Copies(Database):
    """What a search gives, before it is compared with the place in the sky."""

    def granule_copies(self, wanted: Wanted) -> list[GranuleCopy]:
        """Give all that `copies_by_parts` gives.

        Raises:
            NoSuchDatasetError: where there is no such dataset.
        """
        return list(chain.from_iterable(self.copies_by_parts(wanted)))

    def copies_by_parts(self, wanted: Wanted) -> Generator[list[GranuleCopy], None, None]:
        """Give the copies to read of granules that are as wanted, of up to PART of them at a time.

        They are in the order of granules, all copies of one together. A place is only compared by
        HEALPix cells: all that touch it are given, and some beside. `limit` is not kept to, but
        where there is one, whoever has enough stops, and what comes after is not looked for.

        Raises:
            NoSuchDatasetError: where there is no such dataset.
        """
        with self._reading() as session:
            more, given = _conditions(session, wanted)
            if wanted.ranges is not None:
                yield from _parts(session, sorted(touching(session, wanted.ranges)), more, given)
                return
            query = NUMBERS.format(more=more)
            if wanted.limit is None:
                # SQLite would read all granules in order rather than some by an index.
                numbers = sorted(session.scalars(text(query), given))
                yield from _parts(session, numbers, more, given)
                return
            run = session.connection().execute
            ordered = text(f"{query} ORDER BY granules.id")
            # Who has enough leaves rows behind, and servers keep them.
            with run(ordered, given, execution_options=STREAMED) as found:
                yield from _parts(session, found.scalars(), more, given)


def _conditions(session: Session, wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """Give what is asked of granules beside their place, and its parameters."""
    more = ""
    given: dict[str, Any] = {}
    if wanted.dataset is not None:
        given["dataset"] = dataset_number(session, wanted.dataset)
        more += " AND granules.dataset_id = :dataset"
    if wanted.time is not None:
        given["start"], given["end"] = wanted.time
        more += " AND granules.t_min <= :end AND granules.t_max >= :start"
    if isinstance(wanted.band, str):
        given["band"] = wanted.band
        more += " AND granules.band = :band"
    elif wanted.band is not None:
        given["shortest"], given["longest"] = wanted.band
        more += " AND granules.em_min <= :longest AND granules.em_max >= :shortest"
    return more, given


def _parts(
    session: Session, numbers: Iterable[int], more: str, given: dict[str, Any]
) -> Iterator[list[GranuleCopy]]:
    """Give the copies of granules that are given by number, in order."""
    query = text(COPIES.format(more=more, among=AMONG[session.get_bind().dialect.name]))
    left = iter(numbers)
    while ids := ",".join(map(str, islice(left, PART))):
        found = session.execute(query, {**given, "ids": ids})
        yield sorted(map(GranuleCopy._make, found), key=attrgetter("id"))
