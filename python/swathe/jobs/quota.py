"""What a user may have, and what of it is left."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from swathe.core.errors import LimitError
from swathe.core.format import size_text

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.catalog.records.jobs import UserUsage
    from swathe.jobs.types import Limits

SOON_S = 60
"""When to try again where a limit will not hold for long."""
LATER_S = 3600


class Allowance:
    """What the limits leave to a user who has something already."""

    def __init__(self, limits: Limits) -> None:
        """Take the limits."""
        self._limits = limits

    def check(self, held: UserUsage, waiting: int = 0) -> None:
        """See whether a user who has so much may have a job more, with so many rows to do.

        Raises:
            LimitError: saying what is too much.
        """
        limits = self._limits
        if held.jobs >= limits.jobs:
            raise LimitError(
                f"you have {held.jobs} jobs that have not ended; {limits.jobs} are allowed", SOON_S
            )
        if held.rows + waiting > limits.rows_waiting:
            raise LimitError(
                f"your jobs would have {held.rows + waiting:,} rows waiting; "
                f"{limits.rows_waiting:,} are allowed",
                SOON_S,
            )
        if (told := self._results(held)) is not None:
            raise LimitError(told, LATER_S)

    def check_again(self, held: UserUsage) -> None:
        """See whether a user may let a job run that is pending.

        Raises:
            LimitError: saying what is too much.
        """
        # It counts among them.
        self.check(replace(held, jobs=held.jobs - 1))

    def check_room(self, held: UserUsage, least_bytes: int) -> None:
        """Check that results that take so much at least may be made.

        Raises:
            LimitError: where they may not.
        """
        most = self._limits.result_bytes
        if held.bytes + least_bytes > most:
            raise LimitError(
                f"the results would take at least {size_text(least_bytes)}, yours take "
                f"{size_text(held.bytes)}; {size_text(most)} are allowed",
                LATER_S if least_bytes <= most else None,
            )

    def too_much(self, held: UserUsage) -> str | None:
        """Say why a job of a user who has so much is ended, if it is."""
        told = self._results(held)
        return None if told is None else f"{told}, and resume the job"

    def expiry(self, created_at: datetime, wanted: datetime | None) -> datetime:
        """Give when a job expires, within what is allowed."""
        latest = created_at + timedelta(seconds=self._limits.longest_s)
        if wanted is None:
            return min(created_at + timedelta(seconds=self._limits.default_s), latest)
        return min(wanted, latest)

    def _results(self, held: UserUsage) -> str | None:
        """Say that the results of a user take too much, if they do."""
        most = self._limits.result_bytes
        if held.bytes < most:
            return None
        taken = size_text(held.bytes)
        return f"your results take {taken}; {size_text(most)} are allowed: delete some"
