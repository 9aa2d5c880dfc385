"""The table of queries that users run as jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.jobs import Phase
from swathe.catalog.tables.base import Base, Id


class QueryTable(Base):
    """A query.

    `context` is what it needs of the request that made it. It may run for `duration_s`; `bytes` is
    the size of its answer, of the type `media_type`. `tries` counts how often it was begun.
    """

    __tablename__ = "queries"
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
    parameters: Mapped[list[list[str]]] = mapped_column(JSON)
    context: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    expires_at: Mapped[datetime]
    duration_s: Mapped[int]
    failure: Mapped[str | None] = mapped_column(Text)
    bytes: Mapped[int] = mapped_column(BigInteger)
    media_type: Mapped[str | None] = mapped_column(String(100))
    lease_until: Mapped[datetime | None]
    tries: Mapped[int]
    changes: Mapped[int] = mapped_column(BigInteger)
