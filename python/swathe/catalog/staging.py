"""Staging from tape: which objects were asked for, in what state they are, and who needs them.

An object has one row, so it is staged once however many users ask for it. Each user who needs it
has a pin. When the last pin is released or expires, the object may leave the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update

from swathe.catalog.database import Database
from swathe.catalog.records.staging import (
    IN_PROGRESS,
    StageChange,
    StageClaim,
    StageFile,
    StageOutcome,
    StagePin,
)
from swathe.catalog.tables import (
    StageFileRow,
    StageOutcomeRow,
    StagePinRow,
    StageRequestRow,
    StoreRow,
)
from swathe.core.errors import NoSuchStoreError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

UNSENT = timedelta(minutes=10)
"""After this time a request that was not sent is that of a process that has ended."""
SPARE = timedelta(seconds=60)
"""An object that leaves the disk within this time is asked for again."""
MOST_OUTCOMES = 200
HISTORY = timedelta(days=7)
"""Time after which objects that are over are forgotten."""


class StagingRecords(Database):
    """Objects of tier tape that were asked for."""

    def claim_files(
        self,
        store: str,
        places: Mapping[str, tuple[bool, int | None, str | None, int | None]],
        owner: str,
        lifetime_s: float,
        wait_s: float = 0.0,
        looked_at: datetime | None = None,
    ) -> StageClaim:
        """Pin objects, and return those that nobody else has asked the staging service for.

        Args:
            store: name of the store.
            places: objects in the order to send: whether they are on disk, bytes, medium, position.
            owner: name of who needs them.
            lifetime_s: seconds that each is needed from now on, besides `wait_s`.
            wait_s: seconds that staging may take.
            looked_at: time of `places`; by default now. What came later is on disk.

        Raises:
            NoSuchStoreError: If there is no such store.
        """
        now = datetime.now(UTC)
        until = now + timedelta(seconds=lifetime_s + wait_s)
        with self._writing() as session:
            store_id = _store_id(session, store, lock=True)
            _forget(session, store_id, now)
            rows = _rows(session, store_id, places)
            stale = _unsent_requests(session, store_id, now)
            request: StageRequestRow | None = None
            paths = []
            for path, (on_disk, size, medium, position) in places.items():
                row = rows.get(path)
                if row is not None and looked_at is not None:
                    on_disk = on_disk or row.progress_at > looked_at
                if row is None or not _is_to_come(row, on_disk, until, stale):
                    if request is None:
                        request = StageRequestRow(store_id=store_id, token=None, began_at=now)
                        session.add(request)
                        session.flush()
                    if row is None:
                        row = StageFileRow(store_id=store_id, path=path)
                        session.add(row)
                    row.request_id, row.state = request.id, "waiting"
                    row.began_at = row.progress_at = now
                    row.ended_at, row.place, row.reason = None, None, None
                    row.expires_at = until
                    paths.append(path)
                row.bytes, row.medium, row.position = size, medium, position
                session.flush()
                _pin(session, row.id, owner, until)
            return StageClaim(request.id if request is not None else None, paths)

    def send_request(self, request: int, token: str) -> None:
        """Record the name that the staging service gave to a request."""
        with self._writing() as session:
            session.execute(
                update(StageRequestRow).where(StageRequestRow.id == request).values(token=token)
            )
            table = StageFileRow
            session.execute(
                update(table)
                .where(table.request_id == request, table.state == "waiting")
                .values(state="queued", progress_at=datetime.now(UTC))
            )

    def drop_request(self, request: int, reason: str) -> None:
        """Record that a request could not be sent: its objects have failed."""
        now = datetime.now(UTC)
        values = {"state": "failed", "reason": reason, "ended_at": now, "progress_at": now}
        table = StageFileRow
        with self._writing() as session:
            session.execute(
                update(table)
                .where(table.request_id == request, table.state == "waiting")
                .values(**values)
            )

    def stage_files(
        self, store: str | None = None, paths: Sequence[str] | None = None
    ) -> list[StageFile]:
        """Return objects that were asked for, of a store or all, those asked for first first."""
        now = datetime.now(UTC)
        pins = (
            select(func.count())
            .where(StagePinRow.file_id == StageFileRow.id, StagePinRow.expires_at > now)
            .scalar_subquery()
        )
        query = (
            select(StageFileRow, StoreRow.name, StageRequestRow.token, pins)
            .join(StoreRow, StoreRow.id == StageFileRow.store_id)
            .outerjoin(StageRequestRow, StageRequestRow.id == StageFileRow.request_id)
            .order_by(StageFileRow.began_at, StageFileRow.id)
        )
        if store is not None:
            query = query.where(StoreRow.name == store)
        names = None if paths is None else set(paths)
        with self._reading() as session:
            return [
                _record(row, name, token, pins)
                for row, name, token, pins in session.execute(query)
                if names is None or row.path in names
            ]

    def stage_pins(self, store: str, prefix: str, paths: Sequence[str] = ()) -> list[StagePin]:
        """Return the pins in a store of owners whose names begin with a prefix.

        Args:
            store: name of the store.
            prefix: begin of the owners' names.
            paths: objects; by default all.
        """
        query = (
            select(StagePinRow.owner, StagePinRow.expires_at, StageFileRow, StageRequestRow.token)
            .join(StageFileRow, StageFileRow.id == StagePinRow.file_id)
            .join(StoreRow, StoreRow.id == StageFileRow.store_id)
            .outerjoin(StageRequestRow, StageRequestRow.id == StageFileRow.request_id)
            .where(StoreRow.name == store, StagePinRow.owner.startswith(prefix, autoescape=True))
        )
        parts = [query]
        if paths:
            starts = range(0, len(paths), 500)
            parts = [query.where(StageFileRow.path.in_(paths[at : at + 500])) for at in starts]
        with self._reading() as session:
            return [
                StagePin(owner, expires_at, _record(row, store, token, 1))
                for part in parts
                for owner, expires_at, row, token in session.execute(part)
            ]

    def change_files(self, store: str, changes: Sequence[StageChange]) -> None:
        """Record what is new of objects. When the last of a request ends, it is an outcome."""
        now = datetime.now(UTC)
        with self._writing() as session:
            store_id = _store_id(session, store)
            rows = _rows(session, store_id, [change.path for change in changes])
            requests: set[int] = set()
            for change in changes:
                row = rows.get(change.path)
                new = (change.state, change.place, change.reason)
                if row is None or (row.state, row.place, row.reason) == new:
                    continue
                was_to_come = row.state in IN_PROGRESS
                row.state, row.place, row.reason = change.state, change.place, change.reason
                row.progress_at = now
                if was_to_come and change.state not in IN_PROGRESS:
                    row.ended_at = now
                    if row.request_id is not None:
                        requests.add(row.request_id)
            session.flush()
            for request in requests:
                _enter_outcome(session, store_id, request, now)

    def move_files(self, store: str, paths: Sequence[str], old: str, token: str) -> list[str]:
        """Record that another request keeps objects on disk; return those that it does.

        An object that is no longer of the old request has been moved by somebody else, and stays.
        """
        with self._writing() as session:
            store_id = _store_id(session, store)
            request = StageRequestRow(store_id=store_id, token=token, began_at=datetime.now(UTC))
            session.add(request)
            session.flush()
            query = select(StageRequestRow.id).where(
                StageRequestRow.store_id == store_id, StageRequestRow.token == old
            )
            before = set(session.scalars(query))
            rows = _rows(session, store_id, paths)
            moves = [path for path, row in rows.items() if row.request_id in before]
            for path in moves:
                rows[path].request_id = request.id
            return moves

    def renew_pins(self, store: str, paths: Sequence[str], owner: str, lifetime_s: float) -> None:
        """Record that somebody needs objects for longer, and that the service agreed."""
        until = datetime.now(UTC) + timedelta(seconds=lifetime_s)
        with self._writing() as session:
            for row in _rows(session, _store_id(session, store), paths).values():
                row.expires_at = max(row.expires_at, until)
                _pin(session, row.id, owner, until)

    def release_pins(
        self, store: str, paths: Sequence[str] | None = None, owner: str | None = None
    ) -> list[StageFile]:
        """Remove pins; return the objects that nobody needs any more, and mark them released.

        Args:
            store: name of the store.
            paths: objects; by default all.
            owner: whose pins; by default those of all.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            store_id = _store_id(session, store)
            rows = _rows(session, store_id, paths)
            ids = [row.id for row in rows.values()]
            free = []
            for at in range(0, len(ids), 500):
                part = ids[at : at + 500]
                pins = delete(StagePinRow).where(StagePinRow.file_id.in_(part))
                if owner is not None:
                    pins = pins.where((StagePinRow.owner == owner) | (StagePinRow.expires_at < now))
                session.execute(pins)
                query = select(StagePinRow.file_id).where(StagePinRow.file_id.in_(part))
                in_use = set(session.scalars(query))
                free += [number for number in part if number not in in_use]
            by_id = {row.id: row for row in rows.values()}
            records = []
            for number in free:
                row = by_id[number]
                if row.state in ("failed", "released"):
                    continue
                request = session.get(StageRequestRow, row.request_id) if row.request_id else None
                records.append(_record(row, store, request.token if request else None, 0))
                row.state, row.progress_at = "released", now
                row.ended_at = row.ended_at or now
            return records

    def stage_outcomes(self, store: str) -> list[StageOutcome]:
        """Return the latest requests of a store that have ended, the newest first."""
        table = StageOutcomeRow
        query = (
            select(table)
            .join(StoreRow, StoreRow.id == table.store_id)
            .where(StoreRow.name == store)
            .order_by(table.at.desc(), table.id.desc())
            .limit(MOST_OUTCOMES)
        )
        with self._reading() as session:
            return [
                StageOutcome(row.files, row.bytes, row.media, row.first_s, row.seconds)
                for row in session.scalars(query)
            ]


def _store_id(session: Session, name: str, lock: bool = False) -> int:
    query = select(StoreRow.id).where(StoreRow.name == name)
    number = session.scalar(query.with_for_update() if lock else query)
    if number is None:
        raise NoSuchStoreError(f"there is no store {name[:100]!r}; see: swathe store list")
    return number


def _rows(
    session: Session, store_id: int, paths: Sequence[str] | Mapping[str, object] | None
) -> dict[str, StageFileRow]:
    """Return rows of objects by path, locked, so that who changes them waits for the others."""
    query = select(StageFileRow).where(StageFileRow.store_id == store_id)
    if paths is None:
        return {row.path: row for row in session.scalars(query.with_for_update())}
    rows: dict[str, StageFileRow] = {}
    names = list(paths)
    for at in range(0, len(names), 500):
        part = query.where(StageFileRow.path.in_(names[at : at + 500]))
        rows |= {row.path: row for row in session.scalars(part.with_for_update())}
    return rows


def _forget(session: Session, store_id: int, now: datetime) -> None:
    """Forget objects that have been over for long, and requests without objects."""
    table, request = StageFileRow, StageRequestRow
    session.execute(
        delete(table).where(
            table.store_id == store_id,
            table.state.not_in(IN_PROGRESS),
            table.progress_at < now - HISTORY,
            table.expires_at < now - HISTORY,
        )
    )
    in_use = select(table.request_id).where(table.request_id.is_not(None))
    session.execute(
        delete(request).where(
            request.store_id == store_id,
            request.began_at < now - HISTORY,
            request.id.not_in(in_use),
        )
    )


def _unsent_requests(session: Session, store_id: int, now: datetime) -> set[int]:
    table = StageRequestRow
    query = select(table.id).where(
        table.store_id == store_id, table.token.is_(None), table.began_at < now - UNSENT
    )
    return set(session.scalars(query))


def _is_to_come(row: StageFileRow, on_disk: bool, until: datetime, stale: set[int]) -> bool:
    """Return whether an object is on its way, or on disk for long enough."""
    if row.state in IN_PROGRESS:
        return row.request_id is not None and row.request_id not in stale
    return row.state == "disk" and on_disk and row.expires_at >= until - SPARE


def _pin(session: Session, file_id: int, owner: str, until: datetime) -> None:
    pin = session.get(StagePinRow, (file_id, owner))
    if pin is None:
        session.add(StagePinRow(file_id=file_id, owner=owner, expires_at=until))
    else:
        pin.expires_at = max(pin.expires_at, until)


def _enter_outcome(session: Session, store_id: int, request: int, now: datetime) -> None:
    """Enter how long a request took, if none of its objects is still to come."""
    query = select(StageFileRow).where(StageFileRow.request_id == request)
    rows = session.scalars(query).all()
    ends = [row.ended_at for row in rows if row.state == "disk" and row.ended_at is not None]
    if not ends or any(row.state in IN_PROGRESS for row in rows):
        return
    on_disk = [row for row in rows if row.state == "disk"]
    began_at = min(row.began_at for row in rows)
    session.add(
        StageOutcomeRow(
            store_id=store_id,
            at=now,
            files=len(on_disk),
            bytes=sum(row.bytes or 0 for row in on_disk),
            media=len({row.medium for row in on_disk}),
            first_s=(min(ends) - began_at).total_seconds(),
            seconds=(max(ends) - began_at).total_seconds(),
        )
    )


def _record(row: StageFileRow, store: str, token: str | None, pins: int) -> StageFile:
    return StageFile(
        store,
        row.path,
        row.state,
        token,
        row.bytes,
        row.medium,
        row.position,
        row.place,
        row.began_at,
        row.ended_at,
        row.progress_at,
        row.expires_at,
        pins,
        row.reason,
    )
