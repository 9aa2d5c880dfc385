"""How predictions came out."""

from __future__ import annotations

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.settings import root_url
from swathe.catalog.tables import OutcomeRow
from swathe.catalog.values import Outcome, count, finite, plain_text

OUTCOMES_KEPT = 10_000
LONGEST_SUMMARY = 1_000


class Predictions(Database):
    """The record that tells how far predictions can be trusted."""

    def add_outcome(self, outcome: Outcome) -> None:
        """Note what became of a prediction; the last OUTCOMES_KEPT are kept.

        Raises:
            ValueError: where its time has no zone, or a number is negative or not finite.
            StoreSettingsError: where its root is no store's URL, or holds credentials.
        """
        row = OutcomeRow(
            at=outcome.at,
            host=plain_text(outcome.host, 255),
            summary=plain_text(outcome.summary, LONGEST_SUMMARY),
            targets=count(outcome.targets),
            root=root_url(outcome.root) if outcome.root else "",
            predicted_s=finite(outcome.predicted_s),
            low_s=finite(outcome.low_s),
            high_s=finite(outcome.high_s),
            actual_s=finite(outcome.actual_s),
            predicted_bytes=count(outcome.predicted_bytes),
            actual_bytes=count(outcome.actual_bytes),
            predicted_requests=count(outcome.predicted_requests),
            actual_requests=count(outcome.actual_requests),
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
        """Give the last outcomes noted, the latest first."""
        query = select(OutcomeRow).order_by(OutcomeRow.id.desc()).limit(max(0, limit))
        with self._reading() as session:
            return [_outcome(row) for row in session.scalars(query)]


def _outcome(row: OutcomeRow) -> Outcome:
    return Outcome(
        at=row.at,
        host=row.host,
        summary=row.summary,
        targets=row.targets,
        root=row.root,
        predicted_s=row.predicted_s,
        low_s=row.low_s,
        high_s=row.high_s,
        actual_s=row.actual_s,
        predicted_bytes=row.predicted_bytes,
        actual_bytes=row.actual_bytes,
        predicted_requests=row.predicted_requests,
        actual_requests=row.actual_requests,
    )
