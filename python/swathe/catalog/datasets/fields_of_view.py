"""Numbers of images, for queries, and their fields of view: how far from its centre one reaches."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sqlalchemy import func, select

from swathe.catalog.database import Database
from swathe.catalog.datasets.granules import GranuleQuery, touching
from swathe.catalog.tables import DatasetRow, GranuleRow

Fields = tuple[float, list[int]]
State = tuple[int, int]


class FieldsOfView(Database):
    """Fields of view of all images."""

    _fields_lock = threading.Lock()
    _fields: tuple[State, Fields | None] | None = None

    def fields_of_view(self, narrow_deg: float, most: int) -> Fields | None:
        """Return the largest field of view of narrow images, and the numbers of the wide ones.

        The answer is cached until a dataset changes. A caller always has the same arguments.

        Args:
            narrow_deg: field of view up to which an image is narrow.
            most: largest number of wide images; if there are more, None is returned.
        """
        changes = select(func.count(DatasetRow.id), func.coalesce(func.sum(DatasetRow.changes), 0))
        fov = GranuleRow.s_fov
        with self._reading() as session:
            count, number = session.execute(changes).one()
            state = int(count), int(number)
            with self._fields_lock:
                if self._fields is not None and self._fields[0] == state:
                    return self._fields[1]
            widest = session.scalar(select(func.max(fov)).where(fov <= narrow_deg)) or 0.0
            query = select(GranuleRow.id).where(fov > narrow_deg).limit(most + 1)
            wide = list(session.scalars(query))
        fields = None if len(wide) > most else (float(widest), wide)
        with self._fields_lock:
            self._fields = state, fields
        return fields

    def granule_number(self, dataset: str, path: str, hdu: int) -> int | None:
        """Return the number of the image of an HDU; `None` if there is none."""
        query = (
            select(GranuleRow.id)
            .join(DatasetRow, DatasetRow.id == GranuleRow.dataset_id)
            .where(DatasetRow.name == dataset, GranuleRow.path == path, GranuleRow.hdu == hdu)
            .where(GranuleRow.array.is_(None))
        )
        with self._reading() as session:
            return session.scalar(query)

    def granules_in(self, ranges: Sequence[tuple[int, int]], most: int) -> list[int] | None:
        """Return the numbers of the images that touch HEALPix cells; None if more than `most`."""
        with self._reading() as session:
            numbers = touching(session, GranuleQuery(ranges))
        return None if len(numbers) > most else numbers
