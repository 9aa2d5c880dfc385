"""The table of users' tokens."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.tables.base import Base, Id


class TokenRow(Base):
    """A user's token: its hash, never the token itself."""

    __tablename__ = "tokens"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user: Mapped[str] = mapped_column("user_name", String(200), index=True)
    label: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(128), unique=True)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
