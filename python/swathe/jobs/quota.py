"""Quota of a user: what is allowed, and what remains."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from swathe.core.errors import LimitError
from swathe.core.format import size_text

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.catalog.records.jobs import RemovalBacklog, UserUsage
    from swathe.jobs.types import Limits

SOON_S = 60
"""Suggested retry time for a limit that is soon lifted."""
LATER_S = 3600
REMOVAL_S = 5
"""Suggested retry time while deleted results are removed."""


class Quota:
    """Remaining quota of a user."""

    def __init__(self, limits: Limits) -> None:
        """Take the limits."""
        self._limits = limits

    def check(self, usage: UserUsage, waiting: int = 0) -> None:
        """Check whether a user with this usage may submit another job with `waiting` rows.

        Raises:
            LimitError: If a limit would be exceeded.
        """
        limits = self._limits
        if usage.jobs >= limits.jobs:
            raise LimitError(
                f"you have {usage.jobs} jobs that have not ended; {limits.jobs} are allowed", SOON_S
            )
        if usage.rows + waiting > limits.rows_waiting:
            raise LimitError(
                f"your jobs would have {usage.rows + waiting:,} rows waiting; "
                f"{limits.rows_waiting:,} are allowed",
                SOON_S,
            )
        if (text := self._excess_text(usage)) is not None:
            raise LimitError(text, LATER_S)
        most = self._most_bytes(usage)
        if usage.stored_bytes >= most:
            raise LimitError(
                f"your results take {size_text(usage.stored_bytes)}, with "
                f"{size_text(usage.deleted_bytes)} of deleted jobs; {size_text(most)} are allowed: "
                "wait until these are removed",
                REMOVAL_S,
            )

    def check_again(self, usage: UserUsage) -> None:
        """Check whether a user may start a pending job.

        Raises:
            LimitError: If a limit is exceeded.
        """
        # The pending job itself is included in the count.
        self.check(replace(usage, jobs=usage.jobs - 1))

    def check_room(self, usage: UserUsage, least_bytes: int) -> None:
        """Check that results of at least this size are allowed.

        Raises:
            LimitError: If they are not.
        """
        most = self._most_bytes(usage)
        if usage.stored_bytes + least_bytes > most:
            deleted_text = (
                f", with {size_text(usage.deleted_bytes)} of deleted jobs that are not removed yet"
            )
            raise LimitError(
                f"the results would take at least {size_text(least_bytes)}, yours take "
                f"{size_text(usage.stored_bytes)}{deleted_text if usage.deleted_bytes else ''}; "
                f"{size_text(most)} are allowed",
                LATER_S if least_bytes <= most else None,
            )

    def removal_lag(self, backlog: RemovalBacklog) -> str:
        """Return why no job may run while so much waits for removal; empty if jobs may run."""
        most = self._limits.removal_bytes
        if backlog.bytes <= most:
            return ""
        return (
            f"the results of {backlog.jobs:,} deleted jobs are not removed yet; they take "
            f"{size_text(backlog.bytes)}, {size_text(most)} are allowed"
        )

    def too_much(self, usage: UserUsage) -> str | None:
        """Return why a job of a user with this usage must end; `None` if it need not.

        Results of deleted jobs end no job: they will be removed.
        """
        text = self._excess_text(usage)
        return None if text is None else f"{text}, and resume the job"

    def expiry(self, created_at: datetime, expires_at: datetime | None) -> datetime:
        """Return the expiry time of a job, within the limits."""
        latest = created_at + timedelta(seconds=self._limits.longest_s)
        if expires_at is None:
            return min(created_at + timedelta(seconds=self._limits.default_s), latest)
        return min(expires_at, latest)

    def _most_bytes(self, usage: UserUsage) -> int:
        return self._limits.share_of(usage.owner).result_bytes

    def _excess_text(self, usage: UserUsage) -> str | None:
        """Return the message if a user's results exceed the limit, else `None`."""
        most = self._most_bytes(usage)
        if usage.bytes < most:
            return None
        size = size_text(usage.bytes)
        return f"your results take {size}; {size_text(most)} are allowed: delete some"
