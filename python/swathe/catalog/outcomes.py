"""Outcomes of predictions."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.records.checks import count, finite, plain_text
from swathe.catalog.records.measurements import Outcome
from swathe.catalog.store_settings import root_url
from swathe.catalog.tables import OutcomeRow

OUTCOMES_KEPT = 10_000
LONGEST_SUMMARY = 1_000
# Types in dataclasses are text there.
COUNTS = [field.name for field in fields(Outcome) if field.type == "int"]
SECONDS = [field.name for field in fields(Outcome) if field.type == "float"]


class OutcomeRecords(Database):
    """Record of predictions and outcomes, which shows how reliable predictions are."""

    def add_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of a prediction; the last OUTCOMES_KEPT are kept.

        Raises:
            ValueError: If its time has no zone, or a number is negative or not finite.
            StoreSettingsError: If its root is not the URL of a store, or contains credentials.
        """
        row = OutcomeRow(
            at=outcome.at,
            host=plain_text(outcome.host, 255),
            summary=plain_text(outcome.summary, LONGEST_SUMMARY),
            root=root_url(outcome.root) if outcome.root else "",
            **{name: count(getattr(outcome, name)) for name in COUNTS},
            **{name: finite(getattr(outcome, name)) for name in SECONDS},
        )
        newest = select(OutcomeRow.id).order_by(OutcomeRow.id.desc())
        oldest = newest.offset(OUTCOMES_KEPT).limit(1).scalar_subquery()
        with self._writing() as session:
            session.add(row)
            session.flush()
            session.execute(
                delete(OutcomeRow).where(OutcomeRow.id <= oldest),
                execution_options={"synchronize_session": False},
            )

    def outcomes(self, limit: int = 100) -> list[Outcome]:
        """Return the latest outcomes, newest first."""
        query = select(OutcomeRow).order_by(OutcomeRow.id.desc()).limit(max(0, limit))
        with self._reading() as session:
            return [_outcome(row) for row in session.scalars(query)]


def _outcome(row: OutcomeRow) -> Outcome:
    return Outcome(**{field.name: getattr(row, field.name) for field in fields(Outcome)})
