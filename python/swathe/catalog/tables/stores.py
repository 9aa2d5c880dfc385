"""Tables of stores: striped ones that are repaired, near ones and their copies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.caches import NearState
from swathe.catalog.records.stripes import WorkKind
from swathe.catalog.tables.base import Base, Id


class StoreRow(Base):
    """A store."""

    __tablename__ = "stores"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    url: Mapped[str] = mapped_column(Text)
    tier: Mapped[str] = mapped_column(String(10))
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    added_at: Mapped[datetime]


class StripeWorkTable(Base):
    """A repair or rebalance of a striped store that runs, or was stopped."""

    __tablename__ = "stripe_work"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"), index=True)
    kind: Mapped[WorkKind] = mapped_column(String(10))
    place: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int] = mapped_column(BigInteger)
    began_at: Mapped[datetime]
    told_at: Mapped[datetime]
    objects: Mapped[int] = mapped_column(BigInteger)
    done: Mapped[int] = mapped_column(BigInteger)
    failed: Mapped[int] = mapped_column(BigInteger)
    written_bytes: Mapped[int | None] = mapped_column(BigInteger)
    total_bytes: Mapped[int | None] = mapped_column(BigInteger)
    done_bytes: Mapped[int | None] = mapped_column(BigInteger)
    bytes_per_s: Mapped[float | None]
    is_stopped: Mapped[bool]


class NearObjectRow(Base):
    """A near copy of an object of a store of kind `cache:`."""

    __tablename__ = "near_objects"
    __table_args__ = (UniqueConstraint("store_id", "token"), Index(None, "store_id", "path"))
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"))
    path: Mapped[str] = mapped_column(Text)
    token: Mapped[str] = mapped_column(String(40))
    state: Mapped[NearState] = mapped_column(String(10))
    bytes: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[str] = mapped_column(Text)
    near_version: Mapped[str | None] = mapped_column(Text)
    owner: Mapped[str | None] = mapped_column(String(200))
    lease_at: Mapped[datetime | None]
    used_at: Mapped[datetime]
    uses: Mapped[int] = mapped_column(BigInteger)
    fetch_s: Mapped[float | None]
    checked_at: Mapped[datetime | None]


class NearPinRow(Base):
    """Somebody needs a near copy until a time: a user, or a process that reads it."""

    __tablename__ = "near_pins"
    object_id: Mapped[int] = mapped_column(
        ForeignKey("near_objects.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    owner: Mapped[str] = mapped_column(String(200), primary_key=True)
    expires_at: Mapped[datetime]


class CacheCountRow(Base):
    """How often a store of kind `cache:` found a near copy."""

    __tablename__ = "cache_counts"
    store_id: Mapped[int] = mapped_column(
        ForeignKey("stores.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    hits: Mapped[int] = mapped_column(BigInteger)
    misses: Mapped[int] = mapped_column(BigInteger)
    fetched_bytes: Mapped[int] = mapped_column(BigInteger)
    evictions: Mapped[int] = mapped_column(BigInteger)
