"""What UWS needs to know of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.catalog.records.jobs import Phase


class UwsJob(Protocol):
    """A job. `staging` says how far its objects on tape are; `predicted` what it will take."""

    @property
    def id(self) -> str:
        """Identifier."""

    @property
    def owner(self) -> str:
        """Name of the user."""

    @property
    def name(self) -> str:
        """Name that the user gave."""

    @property
    def phase(self) -> Phase:
        """Phase."""

    @property
    def parameters(self) -> Sequence[tuple[str, str]]:
        """Parameters as the client sent them."""

    @property
    def created_at(self) -> datetime:
        """Time of submission."""

    @property
    def started_at(self) -> datetime | None:
        """Time of the first work."""

    @property
    def ended_at(self) -> datetime | None:
        """Time of the end."""

    @property
    def expires_at(self) -> datetime:
        """Time of deletion."""

    @property
    def error(self) -> str | None:
        """Why the job failed."""

    @property
    def staging(self) -> Mapping[str, Any] | None:
        """Progress of staging."""

    @property
    def predicted(self) -> Mapping[str, Any] | None:
        """Predicted cost."""
