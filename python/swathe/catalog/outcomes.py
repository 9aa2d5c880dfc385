"""Outcomes of predictions."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.outcome_log import OutcomeLog, valid_fields
from swathe.catalog.records.measurements import Outcome
from swathe.catalog.tables import OutcomeRow

MOST_OUTCOMES = 10_000


class OutcomeRecords(Database):
    """Record of predictions and outcomes, which shows how reliable predictions are."""

    def add_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of a prediction; the last OUTCOMES_KEPT are kept.

        Raises:
            ValueError: If its time has no zone, or a number is negative or not finite.
            StoreSettingsError: If its root is not the URL of a store, or contains credentials.
        """
        self._add([outcome], is_new=True)

    def outcomes(self, limit: int = 100) -> list[Outcome]:
        """Return the latest outcomes, newest first."""
        self.enter_outcomes()
        query = select(OutcomeRow).order_by(OutcomeRow.id.desc()).limit(max(0, limit))
        with self._reading() as session:
            return [_outcome(row) for row in session.scalars(query)]

    def enter_outcomes(self) -> None:
        """Record the outcomes that wait in the log beside the database."""
        database = self._engine.url.database
        if not self._on_sqlite or database is None:
            return
        with OutcomeLog(database).draining() as outcomes:
            if outcomes:
                self._add(outcomes, is_new=False)

    def _add(self, outcomes: list[Outcome], *, is_new: bool) -> None:
        """Record outcomes; unless they are new, those that are recorded already are left out."""
        rows = [OutcomeRow(**valid_fields(outcome)) for outcome in outcomes]
        newest = select(OutcomeRow.id).order_by(OutcomeRow.id.desc())
        oldest = newest.offset(MOST_OUTCOMES).limit(1).scalar_subquery()
        with self._writing() as session:
            if not is_new:
                first = min(outcome.at for outcome in outcomes)
                recent = select(OutcomeRow).where(OutcomeRow.at >= first)
                earlier = {_outcome(row) for row in session.scalars(recent)}
                rows = [
                    row for row, each in zip(rows, outcomes, strict=True) if each not in earlier
                ]
            session.add_all(rows)
            session.flush()
            session.execute(
                delete(OutcomeRow).where(OutcomeRow.id <= oldest),
                execution_options={"synchronize_session": False},
            )


def _outcome(row: OutcomeRow) -> Outcome:
    return Outcome(**{field.name: getattr(row, field.name) for field in fields(Outcome)})
