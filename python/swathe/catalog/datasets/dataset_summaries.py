"""Summaries of datasets in a few numbers, and page by page."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import BigInteger, case, func, literal, select

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.datasets.granules import GRANULE_COLUMNS, granule_of
from swathe.catalog.records.datasets import ORDER, Granule, State
from swathe.catalog.tables import DatasetRow, FootprintRow, GranuleRow, ReplicaRow, StoreRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PART_RANGES = 50_000
"""Ranges that are read at once."""
FEW = 20
"""A dataset with less than this part of all images is read image by image."""
NO_SPAN = (None, None, 0, 0, None, None)
PRESENT = (
    select(ReplicaRow.id)
    .where(
        ReplicaRow.dataset_id == GranuleRow.dataset_id,
        ReplicaRow.object_path == GranuleRow.path,
        ReplicaRow.state == "ok",
    )
    .exists()
)
"""Condition: an image has a readable copy."""


@dataclass(frozen=True)
class DatasetSummary:
    """Summary of the readable images of a dataset.

    Attributes:
        bytes: size of its objects, each counted once.
        t_min: start of the first image, MJD, UTC.
        t_max: end of the last image, MJD, UTC.
        bands: number of images per filter, most frequent first.
        images_on_sky: number of images with a sky position.
        arrays_on_earth: number of arrays with a place on the Earth.
        em_min: shortest wavelength, metres.
        em_max: longest wavelength, metres.
    """

    bytes: int = 0
    t_min: float | None = None
    t_max: float | None = None
    bands: dict[str, int] = field(default_factory=dict)
    images_on_sky: int = 0
    arrays_on_earth: int = 0
    em_min: float | None = None
    em_max: float | None = None


@dataclass(frozen=True)
class DatasetProblem:
    """A copy of an object that cannot be read.

    Attributes:
        file: `STORE:path`.
        state: see `State`.
        reason: reason, if known.
    """

    file: str
    state: State
    reason: str | None


class Summaries(Database):
    """Summaries of datasets."""

    def summaries(self) -> dict[str, DatasetSummary]:
        """Return the summary of each dataset."""
        largest_sizes = select(
            ReplicaRow.dataset_id, func.max(ReplicaRow.size).label("size")
        ).where(ReplicaRow.state == "ok")
        objects = largest_sizes.group_by(ReplicaRow.dataset_id, ReplicaRow.object_path).subquery()
        sizes = select(objects.c.dataset_id, func.sum(objects.c.size))
        images = GranuleRow.dataset_id
        spans = select(
            images,
            func.min(GranuleRow.t_min),
            func.max(GranuleRow.t_max),
            func.count(GranuleRow.s_ra),
            func.count(GranuleRow.lon),
            func.min(GranuleRow.em_min),
            func.max(GranuleRow.em_max),
        )
        bands = select(images, GranuleRow.band, func.count())
        with self._reading() as session:
            run: Any = session.execute
            names = dict(run(select(DatasetRow.id, DatasetRow.name)).all())
            size_of = dict(run(sizes.group_by(objects.c.dataset_id)).all())
            span_of = {of: rest for of, *rest in run(spans.where(PRESENT).group_by(images))}
            query = bands.where(GranuleRow.band.is_not(None), PRESENT)
            rows = run(query.group_by(images, GranuleRow.band))
            bands_of: dict[int, dict[str, int]] = {}
            for of, band, count in sorted(rows, key=lambda row: (-row[2], row[1])):
                bands_of.setdefault(of, {})[band] = count
        return {
            name: DatasetSummary(
                bytes=int(size_of.get(of) or 0),
                t_min=span_of.get(of, NO_SPAN)[0],
                t_max=span_of.get(of, NO_SPAN)[1],
                bands=bands_of.get(of, {}),
                images_on_sky=span_of.get(of, NO_SPAN)[2],
                arrays_on_earth=span_of.get(of, NO_SPAN)[3],
                em_min=span_of.get(of, NO_SPAN)[4],
                em_max=span_of.get(of, NO_SPAN)[5],
            )
            for of, name in names.items()
        }

    def granules(self, dataset: str, start: int, limit: int) -> list[Granule]:
        """Return readable images by path, without the ranges of their footprints.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._reading() as session:
            number = dataset_number(session, dataset)
            query = select(*GRANULE_COLUMNS).where(GranuleRow.dataset_id == number, PRESENT)
            query = query.order_by(GranuleRow.path, GranuleRow.hdu).offset(start).limit(limit)
            return [granule_of(*row[1:]) for row in session.connection().execute(query)]

    def troubles(self, dataset: str, start: int, limit: int) -> list[DatasetProblem]:
        """Return copies that are damaged, failed or vanished, by path.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._reading() as session:
            number = dataset_number(session, dataset)
            query = (
                select(StoreRow.name, ReplicaRow.path, ReplicaRow.state, ReplicaRow.reason)
                .join(StoreRow, StoreRow.id == ReplicaRow.store_id)
                .where(ReplicaRow.dataset_id == number, ReplicaRow.state != "ok")
                .order_by(ReplicaRow.object_path, StoreRow.name)
            )
            rows = session.execute(query.offset(start).limit(limit))
            return [
                DatasetProblem(f"{store}:{path}", state, reason)
                for store, path, state, reason in rows
            ]

    def sky_ranges(self, dataset: str) -> Iterator[NDArray[np.int64]]:
        """Yield the cells of the footprints of readable images, in no order.

        They are ranges of HEALPix cells of order 29, first and last, some 50,000 at a time.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._reading() as session:
            is_of_dataset = GranuleRow.dataset_id == dataset_number(session, dataset)
            counts = select(func.count(), func.sum(case((is_of_dataset, 1), else_=0)))
            total, own = session.execute(counts.select_from(GranuleRow)).one()
            # Of a large part of all, a scan in the order of the table is many times faster than to
            # look each up. A sum, so that its index is not used.
            number: Any = FootprintRow.granule_id
            if (own or 0) * FEW > total:
                number = number + 0
            query = select(FootprintRow.first, FootprintRow.last).where(
                number.in_(select(GranuleRow.id).where(is_of_dataset, PRESENT))
            )
            connection = session.connection()
            # The driver's own cursor: to make rows of SQLAlchemy would take most of the time.
            statement = query.compile(connection, compile_kwargs={"literal_binds": True})
            driver: Any = connection.connection.driver_connection
            cursor = driver.cursor() if self._on_sqlite else driver.cursor(name="sky_ranges")
            with closing(cursor):
                cursor.execute(str(statement))
                while part := cursor.fetchmany(PART_RANGES):
                    numbers = np.fromiter(chain.from_iterable(part), np.int64, 2 * len(part))
                    yield numbers.reshape(-1, 2)

    def coverage(self, order: int, dataset: str | None = None) -> list[tuple[int, int, int]]:
        """Return the sky coverage of readable images: number of the image, first and last cell.

        The rows are sorted. Cells are HEALPix, nested, of `order`. No range occurs twice.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        # Integer division is the same in both databases; bit shifts are not.
        size = literal(4 ** (ORDER - order), BigInteger)
        present = select(GranuleRow.id).where(PRESENT)
        first = FootprintRow.first // size
        last = FootprintRow.last // size
        with self._reading() as session:
            if dataset is not None:
                present = present.where(GranuleRow.dataset_id == dataset_number(session, dataset))
            query = select(FootprintRow.granule_id, first, last).distinct()
            query = query.where(FootprintRow.granule_id.in_(present)).order_by(
                FootprintRow.granule_id, first, last
            )
            return [(of, start, end) for of, start, end in session.connection().execute(query)]
