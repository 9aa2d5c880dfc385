"""Mail about subscriptions: which addresses may get it, and what is to be sent.

A portal sends mail only to an address whose owner has confirmed it, once for each user who names
it. The request to confirm is the only other mail, and a user can cause few of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.due_turns import LOOKS, DueTurns
from swathe.catalog.records.subscriptions import MailAddress, MailDigest
from swathe.catalog.subscriptions.events import add_event, change_hint, events_after, fault_of
from swathe.catalog.subscriptions.plain_values import to_subscription
from swathe.catalog.tables import MailAddressRow, SubscriptionTable
from swathe.core.errors import LimitError, SubscriptionError

MOST_REQUESTS = 5
"""Addresses of a user that nobody has confirmed."""
REQUEST_DAYS = 30
"""Days after which an address that nobody has confirmed does not count any more."""
KEY_BYTES = 24
DIGEST_S = 60.0
"""Least time between two mails of a subscription."""
DIGEST_EVENTS = 50
"""Events that a mail shows."""
LEASE_S = 600.0
"""Time for a mail, after which another process may try it."""
REQUEST_REASON = "its owner has not confirmed it yet, by the link in the mail to it"
STOP_REASON = "its owner has stopped mail; the link in the last mail starts it again"


class SubscriptionMail(Database):
    """Mail about subscriptions."""

    def due_requests(self, limit: int) -> list[MailAddress]:
        """Return addresses that a request to confirm is to be sent to; they are leased."""
        now = datetime.now(UTC)
        row = MailAddressRow
        query = select(row).where(row.due_at <= now).order_by(row.due_at).limit(limit)
        with self._writing() as session:
            rows = session.scalars(query.with_for_update()).all()
            for each in rows:
                each.due_at = now + timedelta(seconds=LEASE_S)
            return [_address(each) for each in rows]

    def record_request(self, request: MailAddress) -> None:
        """Record that a request to confirm was sent."""
        with self._writing() as session:
            row = _find_key(session, request.key)
            if row is not None and row.tries == request.tries:
                row.tries, row.due_at = 0, None

    def record_request_failure(
        self, request: MailAddress, reason: str, retry_at: datetime | None
    ) -> None:
        """Record that a request could not be sent; without a next try no mail is sent."""
        with self._writing() as session:
            row = _find_key(session, request.key)
            if row is None or row.tries != request.tries or row.state != "requested":
                return
            row.tries, row.due_at = request.tries + 1, retry_at
            for each in _subscriptions_to(session, row):
                each.mail_fault = fault_of(reason)
                if retry_at is None:
                    content = {"mail": each.mail, "reason": each.mail_fault}
                    add_event(session, each, "mail.disabled", content)

    def mail_address(self, key: str) -> MailAddress | None:
        """Return the address whose mails have a key in their links; `None` if there is none."""
        with self._reading() as session:
            row = _find_key(session, key)
            return None if row is None else _address(row)

    def confirm_mail(self, key: str) -> None:
        """Record that the owner of an address wants mail of a user's subscriptions."""
        with self._writing() as session:
            row = _find_key(session, key)
            if row is None or row.state == "confirmed":
                return
            row.state, row.tries, row.due_at = "confirmed", 0, None
            for each in _subscriptions_to(session, row):
                _start(each)

    def stop_mail(self, key: str) -> None:
        """Record that the owner of an address wants no mail of a user's subscriptions."""
        with self._writing() as session:
            row = _find_key(session, key)
            if row is None or row.state == "stopped":
                return
            row.state, row.due_at = "stopped", None
            for each in _subscriptions_to(session, row):
                each.mail_fault, each.mail_due_at = STOP_REASON, None
                content = {"mail": each.mail, "reason": STOP_REASON}
                add_event(session, each, "mail.disabled", content)

    def due_digests(self, limit: int, of_a_user: int) -> list[MailDigest]:
        """Return what is to be mailed, earliest first; it is leased for LEASE_S.

        Args:
            limit: largest number of mails.
            of_a_user: largest number of those of one user.
        """
        now = datetime.now(UTC)
        table, address = SubscriptionTable, MailAddressRow
        query = (
            select(table, address.key)
            .join(address, (address.owner == table.owner) & (address.address == table.mail))
            .where(table.mail_due_at <= now, address.state == "confirmed")
            .order_by(table.mail_due_at)
            .limit(LOOKS * limit)
            .with_for_update(of=table)
        )
        with self._writing() as session:
            digests: list[MailDigest] = []
            turns = DueTurns(limit, of_a_user)
            for row, key in session.execute(query).all():
                events = events_after(session, row, row.mail_event, DIGEST_EVENTS)
                if not events:
                    row.mail_due_at = None
                    continue
                if not turns.take(row.owner):
                    continue
                row.mail_due_at = now + timedelta(seconds=LEASE_S)
                count = row.events - row.mail_event
                subscription = to_subscription(row)
                digests.append(MailDigest(subscription, key, events, count, row.mail_tries))
            return digests

    def record_digest(self, digest: MailDigest) -> None:
        """Record that a mail was sent; the next one is due after DIGEST_S, if there are events."""
        values = {"event": digest.subscription.events, "tries": 0, "fault": ""}
        due_at = datetime.now(UTC) + timedelta(seconds=DIGEST_S)
        self._change_mail(digest, {**values, "due_at": due_at})

    def record_digest_failure(
        self, digest: MailDigest, reason: str, retry_at: datetime | None
    ) -> None:
        """Record that a mail could not be sent; without a next try mail is disabled.

        That it is disabled is an event of the feed.
        """
        values = {"tries": digest.tries + 1, "fault": fault_of(reason), "due_at": retry_at}
        self._change_mail(digest, values)

    def _change_mail(self, digest: MailDigest, values: dict[str, object]) -> None:
        subscription = digest.subscription
        as_read = (subscription.events, digest.tries)
        content = {"mail": subscription.mail}
        with self._writing() as session:
            change_hint(session, "mail", subscription.id, as_read, values, content)


def claim_address(session: Session, owner: str, address: str) -> str:
    """Enter an address for a user, if it is new; return why it gets no mail yet, or no reason.

    Raises:
        SubscriptionError: If its owner has stopped mail.
        LimitError: If too many addresses of the user are not confirmed.
    """
    table = MailAddressRow
    mine, now = table.owner == owner, datetime.now(UTC)
    old = table.requested_at < now - timedelta(days=REQUEST_DAYS)
    session.execute(delete(table).where(mine, table.state == "requested", old))
    row = _find_address(session, owner, address)
    if row is not None:
        if row.state == "stopped":
            raise SubscriptionError(f"mail: {address}: {STOP_REASON}")
        return "" if row.state == "confirmed" else REQUEST_REASON
    requests = select(func.count()).where(mine, table.state != "confirmed")
    if (session.scalar(requests) or 0) >= MOST_REQUESTS:
        raise LimitError(
            f"mail: {MOST_REQUESTS} of your addresses are not confirmed, as many as are allowed"
        )
    session.add(
        table(
            owner=owner,
            address=address,
            key=secrets.token_urlsafe(KEY_BYTES),
            state="requested",
            requested_at=now,
            tries=0,
            due_at=now,
        )
    )
    return REQUEST_REASON


def lock_address(session: Session, subscription_id: str) -> None:
    """Lock the address of a subscription, if it has one; before the subscription itself is locked.

    Confirming and stopping lock them in this order, too.
    """
    table = SubscriptionTable
    query = select(table.owner, table.mail).where(table.id == subscription_id)
    for owner, mail in session.execute(query).all():
        if mail is not None:
            _find_address(session, owner, mail)


def resume_mail(session: Session, subscription: SubscriptionTable) -> None:
    """Send mail of a subscription again after failures, if the owner of the address wants it."""
    if subscription.mail is None:
        return
    row = _find_address(session, subscription.owner, subscription.mail)
    if row is None:  # nobody has confirmed it for long
        subscription.mail_fault = claim_address(session, subscription.owner, subscription.mail)
    elif row.state == "confirmed":
        _start(subscription)
    elif row.state == "requested":
        subscription.mail_fault = REQUEST_REASON
        if row.due_at is None and row.tries:
            row.tries, row.due_at = 0, datetime.now(UTC)


def _start(subscription: SubscriptionTable) -> None:
    subscription.mail_fault, subscription.mail_tries = "", 0
    subscription.mail_due_at = datetime.now(UTC)


def _find_key(session: Session, key: str) -> MailAddressRow | None:
    query = select(MailAddressRow).where(MailAddressRow.key == key)
    return session.scalars(query.with_for_update()).one_or_none()


def _find_address(session: Session, owner: str, address: str) -> MailAddressRow | None:
    table = MailAddressRow
    query = select(table).where(table.owner == owner, table.address == address)
    return session.scalars(query.with_for_update()).one_or_none()


def _subscriptions_to(session: Session, row: MailAddressRow) -> Iterator[SubscriptionTable]:
    """Return the subscriptions of a user with mail to an address, to be changed."""
    table = SubscriptionTable
    query = select(table).where(table.owner == row.owner, table.mail == row.address)
    return iter(session.scalars(query.with_for_update()).all())


def _address(row: MailAddressRow) -> MailAddress:
    return MailAddress(row.owner, row.address, row.key, row.state, row.tries)
