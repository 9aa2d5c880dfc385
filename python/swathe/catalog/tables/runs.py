"""Tables of the runs of applications."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.runs import RunState
from swathe.catalog.tables.base import Base, Id


class RunRow(Base):
    """A run of an application; one that was removed stays if it has the highest number."""

    __tablename__ = "runs"
    __table_args__ = (UniqueConstraint("name", "number"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    number: Mapped[int] = mapped_column(BigInteger)
    folder: Mapped[str] = mapped_column(String(150))
    host: Mapped[str] = mapped_column(String(255))
    process_space: Mapped[str | None] = mapped_column(Text)
    pid: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str | None] = mapped_column(Text)
    iterations: Mapped[int] = mapped_column(BigInteger)
    ranks: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[RunState] = mapped_column(String(10))
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class RunArrayRow(Base):
    """An array of a run, with its settings."""

    __tablename__ = "run_arrays"
    __table_args__ = (UniqueConstraint("run_id", "name"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    stores: Mapped[list[str]] = mapped_column(JSON)


class RunDumpRow(Base):
    """An array of a run at one iteration."""

    __tablename__ = "run_dumps"
    array_id: Mapped[int] = mapped_column(
        ForeignKey("run_arrays.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    iteration: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(BigInteger)
    store: Mapped[str] = mapped_column(String(100))
    bytes: Mapped[int] = mapped_column(BigInteger)
    seconds: Mapped[float]
    at: Mapped[datetime]
    target: Mapped[str | None] = mapped_column(String(100))


class RunFailoverRow(Base):
    """A store that an array of a run has left."""

    __tablename__ = "run_failovers"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    array_id: Mapped[int] = mapped_column(
        ForeignKey("run_arrays.id", ondelete="CASCADE"), index=True
    )
    store: Mapped[str] = mapped_column(String(100))
    next_stores: Mapped[list[str]] = mapped_column(JSON)
    iteration: Mapped[int] = mapped_column(BigInteger)
    reason: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
