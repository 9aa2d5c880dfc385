"""Tables of algorithms, their libraries, their environments and their runs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, BigInteger, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.tables.base import Base, Id


class AlgorithmRow(Base):
    """A version of a user's algorithm; one that was removed keeps its source."""

    __tablename__ = "algorithms"
    __table_args__ = (UniqueConstraint("name", "version"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(63))
    version: Mapped[str] = mapped_column(String(32))
    owner: Mapped[str] = mapped_column(String(200), index=True)
    sha256: Mapped[str] = mapped_column(String(64))
    source: Mapped[bytes] = mapped_column(deferred=True)  # lists do not read it
    bytes: Mapped[int]
    description: Mapped[str] = mapped_column(Text)
    added_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Measurements:
    """Columns of a run of an algorithm on a group of granules."""

    input_bytes: Mapped[int] = mapped_column(BigInteger)
    output_bytes: Mapped[int] = mapped_column(BigInteger)
    wall_s: Mapped[float]
    cpu_s: Mapped[float]
    memory_bytes: Mapped[int] = mapped_column(BigInteger)
    ended_at: Mapped[datetime]


class GroupRunRow(Measurements, Base):
    """The latest run of an algorithm on a group of a job, with its log."""

    __tablename__ = "group_runs"
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    row: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    group_name: Mapped[str] = mapped_column(Text)
    algorithm: Mapped[str] = mapped_column(String(100))
    problem: Mapped[str] = mapped_column(Text)
    log: Mapped[bytes]


class AlgorithmTimingRow(Measurements, Base):
    """A run of a version that succeeded; it outlives its job."""

    __tablename__ = "algorithm_timings"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    algorithm: Mapped[str] = mapped_column(String(100), index=True)


class LibraryRow(Base):
    """A version of a user's library; one that was removed keeps its source."""

    __tablename__ = "libraries"
    __table_args__ = (UniqueConstraint("owner", "name", "version"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    owner: Mapped[str] = mapped_column(String(200))
    name: Mapped[str] = mapped_column(String(63))
    version: Mapped[str] = mapped_column(String(32))
    language: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    source: Mapped[bytes]
    bytes: Mapped[int]
    description: Mapped[str] = mapped_column(Text)
    added_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class EnvironmentRow(Base):
    """An interpreter of Python that the operator made of a lock file."""

    __tablename__ = "environments"
    __table_args__ = (UniqueConstraint("name"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(63))
    python: Mapped[str] = mapped_column(Text)
    python_version: Mapped[str] = mapped_column(String(32))
    lock_sha256: Mapped[str] = mapped_column(String(64))
    folders: Mapped[list[str]] = mapped_column(JSON)
    packages: Mapped[dict[str, str]] = mapped_column(JSON)
    added_at: Mapped[datetime]
