"""Tables of datasets: granules, replicas, footprints and the log of changes."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.datasets import State
from swathe.catalog.tables.base import Base, Id


class DatasetRow(Base):
    """A dataset, and the store of its first scan.

    No exposure of its images was ever longer than `longest_d`, in days. Jobs of `owner` fill it;
    without one it is the operator's.
    """

    __tablename__ = "datasets"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id"), index=True)
    prefix: Mapped[str] = mapped_column(Text)
    pattern: Mapped[str | None] = mapped_column(Text)
    calib_level: Mapped[int] = mapped_column(SmallInteger, server_default="2")
    changes: Mapped[int] = mapped_column(server_default="0")
    longest_d: Mapped[float] = mapped_column(server_default="0")
    added_at: Mapped[datetime]
    synced_at: Mapped[datetime | None]
    owner: Mapped[str | None] = mapped_column(String(200))


class ReplicaRow(Base):
    """A copy of an object of a dataset in a store: `path` there, `object_path` in the first store.

    `modified` is the time as text in the listing, or its ETag.
    """

    __tablename__ = "replicas"
    __table_args__ = (UniqueConstraint("dataset_id", "object_path", "store_id"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    object_path: Mapped[str] = mapped_column(String(1000))
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id"), index=True)
    path: Mapped[str] = mapped_column(Text)
    size: Mapped[int | None] = mapped_column(BigInteger)
    modified: Mapped[str | None] = mapped_column(String(100))
    version: Mapped[str | None] = mapped_column(Text)
    state: Mapped[State] = mapped_column(String(10))
    reason: Mapped[str | None] = mapped_column(Text)
    seen_at: Mapped[datetime]


class GranuleRow(Base):
    """An image HDU or an array of an object of a dataset, with its time, band and position.

    A position in the sky is in `s_ra` and the columns up to `wcs`, one on the Earth in `lon`,
    `lat`, `fov` and `outlines`. A row never has both. `hdu` is the number of an array, if `array`
    is its path.
    """

    __tablename__ = "granules"
    __table_args__ = (
        UniqueConstraint("dataset_id", "path", "hdu"),
        Index(None, "t_min"),
        Index(None, "em_min"),
    )
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    path: Mapped[str] = mapped_column(String(1000))
    hdu: Mapped[int]
    name: Mapped[str | None] = mapped_column(Text)
    shape: Mapped[list[int]] = mapped_column(JSON)
    t_min: Mapped[float | None]
    t_max: Mapped[float | None]
    band: Mapped[str | None] = mapped_column(String(100))
    em_min: Mapped[float | None]
    em_max: Mapped[float | None]
    s_ra: Mapped[float | None]
    s_dec: Mapped[float | None]
    s_fov: Mapped[float | None]
    s_pixel_scale: Mapped[float | None]
    # None is the database's NULL, not JSON's null.
    outline: Mapped[list[float] | None] = mapped_column(JSON(none_as_null=True))
    wcs: Mapped[str | None] = mapped_column(Text)
    note: Mapped[str | None] = mapped_column(Text)
    facility: Mapped[str | None] = mapped_column(String(100))
    instrument: Mapped[str | None] = mapped_column(String(100))
    target: Mapped[str | None] = mapped_column(String(100))
    pol: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    array: Mapped[str | None] = mapped_column(Text)
    lon: Mapped[float | None]
    lat: Mapped[float | None]
    fov: Mapped[float | None]
    outlines: Mapped[list[list[float]] | None] = mapped_column(JSON(none_as_null=True))
    orbit: Mapped[int | None]
    size: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[str] = mapped_column(Text)
    seen_at: Mapped[datetime]


class CellRange:
    """Columns of a range of HEALPix cells, nested, of order 29, that a granule may touch.

    A range is at most `4 ** level` cells long. So all ranges that touch a position start in a known
    interval of the index, level by level.
    """

    __table_args__ = ({"sqlite_with_rowid": False},)
    level: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    first: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    last: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    granule_id: Mapped[int] = mapped_column(
        ForeignKey("granules.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class FootprintRow(CellRange, Base):
    """A range of cells on the sky."""

    __tablename__ = "footprints"


class EarthFootprintRow(CellRange, Base):
    """A range of cells of longitude and latitude on the Earth."""

    __tablename__ = "earth_footprints"


class ChangeCounterRow(Base):
    """One row: the last number of a change, and the change up to which all were matched.

    Who writes changes locks it first. So numbers are in the order in which changes are committed,
    and no reader of the log can miss one.
    """

    __tablename__ = "change_counters"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last: Mapped[int] = mapped_column(BigInteger)
    cursor: Mapped[int] = mapped_column(BigInteger)


class ObjectChangeRow(Base):
    """The latest change of an object of a dataset: its version, `None` if it is withdrawn.

    An empty path stands for all objects of a dataset that was removed.
    """

    __tablename__ = "object_changes"
    __table_args__ = (UniqueConstraint("dataset", "path"),)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    dataset: Mapped[str] = mapped_column(String(100))
    path: Mapped[str] = mapped_column(String(1000))
    version: Mapped[str | None] = mapped_column(Text)
