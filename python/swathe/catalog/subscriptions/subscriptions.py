"""Subscriptions of users: added, listed, paused, resumed and removed."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import claim_dataset, dataset_number
from swathe.catalog.datasets.object_changes import locked_counter
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.datasets import OutputDataset
from swathe.catalog.records.subscriptions import NewSubscription, Subscription
from swathe.catalog.subscriptions.events import add_event
from swathe.catalog.subscriptions.mail import claim_address, lock_address, resume_mail
from swathe.catalog.subscriptions.plain_values import FIELDS, to_subscription
from swathe.catalog.tables import SubscriptionTable, TokenRow
from swathe.core.errors import LimitError, NoSuchSubscriptionError, SubscriptionError

LONGEST_REASON = 1000
NO_TOKEN = "its user has no valid token that may submit jobs; resume it with a new one"


class SubscriptionRecords(Database):
    """Subscriptions of users."""

    def add_subscription(
        self, new: NewSubscription, most: int, into: OutputDataset | None = None
    ) -> Subscription:
        """Add a subscription. It matches what is committed from now on, and nothing before.

        Args:
            new: the subscription.
            most: most subscriptions that its user may have, ended ones too.
            into: dataset that its jobs fill.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
            DatasetError: If the name of the dataset that its jobs fill is taken.
            SubscriptionError: If outputs would come to its own dataset, directly or over others.
            LimitError: If the user has too many, or too many addresses that are not confirmed.
        """
        values = {
            FIELDS[name]: getattr(new, name)
            for name in ("id", "owner", "algorithm", "collection", "search", "job_options")
        }
        with self._writing() as session:
            last = locked_counter(session).last
            dataset_number(session, new.collection)
            if into is not None:
                _check_chain(session, new.collection, into.name)
                claim_dataset(session, into)
            mine = select(func.count()).where(SubscriptionTable.owner == new.owner)
            if (session.scalar(mine) or 0) >= most:
                raise LimitError(f"you have {most} subscriptions, as many as are allowed")
            row = SubscriptionTable(
                **values,
                **asdict(new.bounds),
                state="active",
                reason="",
                grouping=asdict(new.grouping),
                created_at=datetime.now(UTC),
                until=new.until,
                since=0 if new.takes_present else last,
                behind_from=0 if new.takes_present else None,
                events=0,
                secret=new.secret,
                webhook=new.webhook,
                webhook_fault="",
                webhook_event=0,
                webhook_tries=0,
                webhook_due_at=None,
                mail=new.mail,
                mail_fault=claim_address(session, new.owner, new.mail) if new.mail else "",
                mail_event=0,
                mail_tries=0,
                mail_due_at=None,
                mqtt_event=0,
            )
            session.add(row)
            session.flush()
            return to_subscription(row)

    def subscription(self, subscription_id: str) -> Subscription:
        """Return a subscription.

        Raises:
            NoSuchSubscriptionError: If there is none; the same for all methods that take an id.
        """
        with self._reading() as session:
            return to_subscription(find_subscription(session, subscription_id))

    def subscription_secret(self, subscription_id: str) -> str:
        """Return the key of the signatures of a subscription, base64."""
        with self._reading() as session:
            return find_subscription(session, subscription_id).secret

    def subscriptions(self, owner: str | None = None, last: int = 1000) -> list[Subscription]:
        """Return subscriptions, newest first, of a user or of all."""
        query = select(SubscriptionTable).order_by(SubscriptionTable.number.desc()).limit(last)
        if owner is not None:
            query = query.where(SubscriptionTable.owner == owner)
        with self._reading() as session:
            return [to_subscription(row) for row in session.scalars(query)]

    def pause_subscription(self, subscription_id: str) -> Subscription:
        """Pause a subscription. What changes meanwhile matches when it is resumed.

        Raises:
            SubscriptionError: If it has ended.
        """
        with self._writing() as session:
            cursor = locked_counter(session).cursor
            row = find_subscription(session, subscription_id, lock=True)
            _check_state(row)
            if row.state == "active":
                row.state, row.behind_from = "paused", _last_change_of(row, cursor)
            return to_subscription(row)

    def pause_without_tokens(self) -> int:
        """Pause subscriptions of users who have no valid token to submit jobs; return their number.

        What changes meanwhile matches when they are resumed.
        """
        table = SubscriptionTable
        owners = select(table.owner).where(table.state == "active").distinct()
        tokens = select(TokenRow.user, TokenRow.scopes).where(
            TokenRow.user.in_(owners),
            TokenRow.revoked_at.is_(None),
            or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > datetime.now(UTC)),
        )
        with self._reading() as session:
            submitters = {
                user
                for user, scopes in session.execute(tokens)
                if not {"submit", "admin"}.isdisjoint(scopes)
            }
            others = sorted(set(session.scalars(owners)) - submitters)
        if not others:
            return 0
        with self._writing() as session:
            cursor = locked_counter(session).cursor
            rows: list[SubscriptionTable] = []
            for owner in others:
                query = select(table).where(table.owner == owner, table.state == "active")
                rows += session.scalars(query.with_for_update())
            for row in rows:
                row.state, row.behind_from = "paused", _last_change_of(row, cursor)
                row.reason = NO_TOKEN
                add_event(session, row, "subscription.paused", {"reason": row.reason})
            return len(rows)

    def resume_subscription(self, subscription_id: str) -> Subscription:
        """Resume a subscription that is paused or failed; deliver to its webhook and mail again.

        Raises:
            SubscriptionError: If it has ended.
        """
        with self._writing() as session:
            lock_address(session, subscription_id)
            row = find_subscription(session, subscription_id, lock=True)
            _check_state(row)
            row.state, row.reason = "active", ""
            row.webhook_fault, row.webhook_tries = "", 0
            row.webhook_due_at = datetime.now(UTC) if row.webhook else None
            resume_mail(session, row)
            return to_subscription(row)

    def fail_subscription(self, subscription_id: str, reason: str) -> None:
        """Stop a subscription until it is resumed; one that is not active is unchanged."""
        with self._writing() as session:
            cursor = locked_counter(session).cursor
            row = find_subscription(session, subscription_id, lock=True)
            if row.state == "active":
                row.state, row.behind_from = "failed", _last_change_of(row, cursor)
                row.reason = plain_text(reason, LONGEST_REASON)
                add_event(session, row, "subscription.failed", {"reason": row.reason})

    def end_subscriptions(self) -> int:
        """End those whose time is over; return their number. What has matched still runs."""
        now = datetime.now(UTC)
        query = select(SubscriptionTable).where(
            SubscriptionTable.until <= now, SubscriptionTable.state == "active"
        )
        with self._writing() as session:
            rows = session.scalars(query.with_for_update()).all()
            for row in rows:
                row.state = "ended"
                add_event(session, row, "subscription.ended", {})
            return len(rows)

    def remove_subscription(self, subscription_id: str) -> None:
        """Remove a subscription with its feed and its ledger. Its jobs stay."""
        with self._writing() as session:
            row = find_subscription(session, subscription_id, lock=True)
            session.execute(delete(SubscriptionTable).where(SubscriptionTable.number == row.number))


def find_subscription(
    session: Session, subscription_id: str, lock: bool = False
) -> SubscriptionTable:
    """Return a subscription for reading, or with `lock` for changes.

    Raises:
        NoSuchSubscriptionError: If there is none.
    """
    text = plain_text(subscription_id, 50)
    query = select(SubscriptionTable).where(SubscriptionTable.id == text)
    row = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NoSuchSubscriptionError(f"there is no subscription {subscription_id[:50]!r}")
    return row


def _last_change_of(row: SubscriptionTable, cursor: int) -> int:
    """Return the last change that a subscription has seen."""
    return cursor if row.behind_from is None else row.behind_from


def _check_state(row: SubscriptionTable) -> None:
    if row.state == "ended":
        raise SubscriptionError(
            f"subscription {row.id}: expected one that has not ended, found it ended; add a new one"
        )


def _check_chain(session: Session, dataset: str, into: str) -> None:
    """Check that outputs in a dataset do not come to another, over all subscriptions.

    Those that are paused or have failed count too, as they may be resumed. The caller has the
    counter locked, so no other subscription is added meanwhile.

    Raises:
        SubscriptionError: If they do.
    """
    table = SubscriptionTable
    query = select(table.dataset, table.job_options).where(table.state != "ended")
    next_of: dict[str, set[str]] = {}
    for source, options in session.execute(query):
        if name := options.get("register_as"):
            next_of.setdefault(source, set()).add(name)
    datasets, waiting = {into}, [into]
    while waiting:
        new = next_of.get(waiting.pop(), set()) - datasets
        datasets |= new
        waiting += new
    if dataset in datasets:
        way = "" if into == dataset else f" over the subscriptions of {into}"
        raise SubscriptionError(
            f"register_as: expected a dataset whose granules do not come to {dataset}, found "
            f"{into}: its outputs would come there{way}, and the subscription run without end"
        )
