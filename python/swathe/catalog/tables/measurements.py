"""Tables of measured costs, and of predictions with their outcomes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.measurements import Source
from swathe.catalog.tables.base import Base, Id


class LinkRow(Base):
    """A store, by its key, as seen from a host: every measurement belongs to one."""

    __tablename__ = "links"
    __table_args__ = (UniqueConstraint("root", "host"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    root: Mapped[str] = mapped_column(String(2000))
    host: Mapped[str] = mapped_column(String(255))


class ProbeRow(Base):
    """A run of the probe."""

    __tablename__ = "probes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    elapsed_s: Mapped[float]
    bytes_moved: Mapped[int] = mapped_column(BigInteger)


class SampleRow(Base):
    """A measured request, or several that ran together."""

    __tablename__ = "samples"
    __table_args__ = (Index(None, "link_id", "source", "at"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"))
    probe_id: Mapped[int | None] = mapped_column(
        ForeignKey("probes.id", ondelete="SET NULL"), index=True
    )
    source: Mapped[Source] = mapped_column(String(10))
    kind: Mapped[str] = mapped_column(String(50))
    bytes: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int]
    streams: Mapped[int]
    elapsed_s: Mapped[float]
    first_byte_s: Mapped[float | None]
    at: Mapped[datetime]


class ProfileRow(Base):
    """The fitted costs of a link."""

    __tablename__ = "profiles"
    __table_args__ = (Index(None, "link_id", "fitted_at"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"))
    fitted_at: Mapped[datetime]
    costs: Mapped[dict[str, Any]] = mapped_column(JSON)
    spread: Mapped[dict[str, Any]] = mapped_column(JSON)
    notes: Mapped[list[str] | None] = mapped_column(JSON)


class HostRow(Base):
    """A machine that cuts."""

    __tablename__ = "hosts"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    host: Mapped[str] = mapped_column(String(255), unique=True)
    compute: Mapped[dict[str, Any]] = mapped_column(JSON)
    fitted_at: Mapped[datetime]


class OutcomeRow(Base):
    """A prediction and its outcome."""

    __tablename__ = "outcomes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    at: Mapped[datetime]
    host: Mapped[str] = mapped_column(String(255))
    summary: Mapped[str] = mapped_column(Text)
    targets: Mapped[int] = mapped_column(BigInteger)
    root: Mapped[str] = mapped_column(Text)
    predicted_s: Mapped[float]
    low_s: Mapped[float]
    high_s: Mapped[float]
    actual_s: Mapped[float]
    predicted_bytes: Mapped[int] = mapped_column(BigInteger)
    actual_bytes: Mapped[int] = mapped_column(BigInteger)
    predicted_requests: Mapped[int] = mapped_column(BigInteger)
    actual_requests: Mapped[int] = mapped_column(BigInteger)
    model_s: Mapped[float] = mapped_column(server_default="0")
    engine_s: Mapped[float] = mapped_column(server_default="0")
    before_s: Mapped[float] = mapped_column(server_default="0")
    after_s: Mapped[float] = mapped_column(server_default="0")
    output: Mapped[str] = mapped_column(Text, server_default=text("''"))
    write_s: Mapped[float] = mapped_column(server_default="0")
    written_bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")
