"""Tables of objects that are staged from tape."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.staging import StageState
from swathe.catalog.tables.base import Base, Id


class StageRequestRow(Base):
    """A request to a staging service; without a token it was not sent yet."""

    __tablename__ = "stage_requests"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"), index=True)
    token: Mapped[str | None] = mapped_column(Text)
    began_at: Mapped[datetime]


class StageFileRow(Base):
    """An object that was asked for, of the latest request that has it."""

    __tablename__ = "stage_files"
    __table_args__ = (UniqueConstraint("store_id", "path"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"))
    path: Mapped[str] = mapped_column(Text)
    request_id: Mapped[int | None] = mapped_column(
        ForeignKey("stage_requests.id", ondelete="SET NULL"), index=True
    )
    state: Mapped[StageState] = mapped_column(String(10))
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    medium: Mapped[str | None] = mapped_column(Text)
    position: Mapped[int | None] = mapped_column(BigInteger)
    place: Mapped[int | None] = mapped_column(BigInteger)
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    progress_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    reason: Mapped[str | None] = mapped_column(Text)


class StagePinRow(Base):
    """Somebody needs a staged object until a time."""

    __tablename__ = "stage_pins"
    file_id: Mapped[int] = mapped_column(
        ForeignKey("stage_files.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    owner: Mapped[str] = mapped_column(String(100), primary_key=True)
    expires_at: Mapped[datetime]


class StageOutcomeRow(Base):
    """How long a request took that has ended."""

    __tablename__ = "stage_outcomes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    files: Mapped[int] = mapped_column(BigInteger)
    bytes: Mapped[int] = mapped_column(BigInteger)
    media: Mapped[int] = mapped_column(BigInteger)
    first_s: Mapped[float]
    seconds: Mapped[float]
