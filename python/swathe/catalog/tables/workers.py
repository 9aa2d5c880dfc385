"""Tables of pools of workers, and of workers that are reserved."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.tables.base import Base, Id


class ReservationTable(Base):
    """A reservation of workers."""

    __tablename__ = "reservations"
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    workers: Mapped[int]


class PoolTable(Base):
    """A pool of workers, by its portal's latest report.

    `held` counts the cached objects of each worker.
    """

    __tablename__ = "pools"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    address: Mapped[str] = mapped_column(Text)
    told_at: Mapped[datetime]
    workers: Mapped[int]
    held: Mapped[int]
    bytes: Mapped[int] = mapped_column(BigInteger)


class WorkerReplicaTable(Base):
    """Cached bytes of an object on a worker."""

    __tablename__ = "worker_replicas"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    pool: Mapped[str] = mapped_column(ForeignKey("pools.id", ondelete="CASCADE"), index=True)
    worker: Mapped[str] = mapped_column(Text)
    object: Mapped[str] = mapped_column(Text)
    bytes: Mapped[int] = mapped_column(BigInteger)
