"""A query that a user runs as a job, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.catalog.records.jobs import Phase


@dataclass(frozen=True)
class QueryRecord:
    """A query; times are UTC.

    Attributes:
        context: what it needs of the request that made it.
        duration_s: how long it may run, seconds.
        bytes: size of its answer.
        media_type: media type of its answer; `None` before there is one.
        tries: how often it was begun.
        changes: counter of changes.
    """

    id: str
    owner: str
    name: str
    phase: Phase
    parameters: list[tuple[str, str]]
    context: dict[str, Any]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime
    duration_s: int
    failure: str | None = None
    bytes: int = 0
    media_type: str | None = None
    tries: int = 0
    changes: int = 1

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self.failure if self.phase == "ERROR" else None
