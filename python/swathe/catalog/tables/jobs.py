"""Tables of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.jobs import ChunkState, Phase
from swathe.catalog.tables.base import Base, Id
from swathe.core.row_record import RowStatus


class JobTable(Base):
    """A job.

    The rows are leased by `position`, those of one object together; rows before `cursor` have been
    leased. From `inputs` on, rows are combined results of the rows before. `staging` has the
    progress of staging by store, if some objects are in stores whose objects are staged. A job of
    an algorithm has the number of its `groups` by status; each may write `group_bytes`, and
    `program_at` is when the latest was leased.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index(None, "owner", "phase"),
        Index(None, "phase"),
        Index(None, "expires_at"),
    )
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    id: Mapped[str] = mapped_column(String(22), unique=True)
    owner: Mapped[str] = mapped_column(String(200))
    name: Mapped[str] = mapped_column(Text)
    phase: Mapped[Phase] = mapped_column(String(10))
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    parameters: Mapped[list[list[str]]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    expires_at: Mapped[datetime]
    served_at: Mapped[datetime | None]
    program_at: Mapped[datetime | None]
    rows: Mapped[int]
    inputs: Mapped[int]
    cursor: Mapped[int]
    # Number of rows per status.
    waiting: Mapped[int]
    ok: Mapped[int]
    no_overlap: Mapped[int]
    missing: Mapped[int]
    error: Mapped[int]
    groups: Mapped[dict[RowStatus, int] | None] = mapped_column(JSON(none_as_null=True))
    group_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    bytes: Mapped[int] = mapped_column(BigInteger)
    scratch_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    predicted: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    work_s: Mapped[float]
    bytes_moved: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)
    failure: Mapped[str | None] = mapped_column(Text)
    notes: Mapped[list[str]] = mapped_column(JSON)
    changes: Mapped[int] = mapped_column(BigInteger)
    staging: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class JobBlockTable(Base):
    """A thousand rows of a job by position: requests and results.

    `swathe.catalog.jobs.encoding` describes the format. `statuses` has one bit for each status that
    occurs. `places` and `names` find rows: those with the numbers from a thousand times `number`
    on, and those whose names hash to this block.
    """

    __tablename__ = "job_blocks"
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    statuses: Mapped[int]
    places: Mapped[bytes]
    names: Mapped[bytes]
    asked: Mapped[bytes]
    became: Mapped[bytes | None]


class JobChunkTable(Base):
    """Rows `first` to `last` by position that are leased, were returned, or wait for tape.

    `deaths` is the number of runners that died while they had them.
    """

    __tablename__ = "job_chunks"
    __table_args__ = (Index(None, "state"),)
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last: Mapped[int]
    state: Mapped[ChunkState] = mapped_column(String(10))
    runner: Mapped[str | None] = mapped_column(Text)
    lease_until: Mapped[datetime | None]
    deaths: Mapped[int] = mapped_column(default=0, server_default="0")


class DeletedJobTable(Base):
    """A deleted job: until its results are removed, they count for its owner.

    After the removal it stays recorded for a while: a worker may still write results of it.
    """

    __tablename__ = "deleted_jobs"
    __table_args__ = (Index(None, "owner"),)
    id: Mapped[str] = mapped_column(String(22), primary_key=True)
    owner: Mapped[str] = mapped_column(String(200))
    bytes: Mapped[int] = mapped_column(BigInteger)
    deleted_at: Mapped[datetime]
    removed: Mapped[bool]


class JobCallbackRow(Base):
    """URLs that hear of a job; `in_progress` until it was sent to, the row until the end."""

    __tablename__ = "job_callbacks"
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    success: Mapped[str] = mapped_column(Text)
    in_progress: Mapped[str | None] = mapped_column(Text)
    failure: Mapped[str | None] = mapped_column(Text)
    tries: Mapped[int]
    due_at: Mapped[datetime] = mapped_column(index=True)
