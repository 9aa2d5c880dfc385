"""Near copies of objects in stores of kind `cache:`: claims of room, pins, uses and evictions.

All copies count in the limit from the claim until they are removed, so it is never exceeded. An
object has one readable copy; that of an older version is `stale` until nobody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, update

from swathe.catalog.database import Database
from swathe.catalog.records.caches import (
    IN_WORK,
    READABLE,
    CacheUsage,
    NearObject,
    NearPin,
    RoomClaim,
)
from swathe.catalog.tables import CacheCountRow, NearObjectRow, NearPinRow, StoreRow
from swathe.core.errors import NoSuchStoreError
from swathe.core.host import has_ended

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from swathe.catalog.records.caches import NearState

LEASE = timedelta(seconds=60)
"""Time after which a process that does not renew its claims and pins counts as ended."""


class NearObjectRecords(Database):
    """Near copies of the objects of stores of kind `cache:`."""

    def use_near_object(self, store: str, path: str, owner: str) -> NearObject | None:
        """Pin the readable copy of an object for a process that reads it; `None`: there is none.

        Raises:
            NoSuchStoreError: If there is no such store.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            row = _readable(session, _store_id(session, store), path)
            if row is None:
                return None
            row.used_at, row.uses = now, row.uses + 1
            _pin(session, row.id, owner, now + LEASE)
            return _record(row, 1)

    def claim_room(
        self,
        store: str,
        path: str,
        token: str,
        state: NearState,
        size: int,
        version: str,
        owner: str,
        limit_bytes: int,
    ) -> RoomClaim:
        """Claim room for a new copy, unless another reader fetches that version, or has just done.

        Args:
            store: name of the store.
            path: path of the object.
            token: name of the copy.
            state: `fetching` or `writing`.
            size: bytes of the object.
            version: version of the source; empty if it is to be written.
            owner: this process.
            limit_bytes: limit of the store.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            store_id = _store_id(session, store, lock=True)
            for row in session.scalars(_rows_of(store_id, path)):
                is_same = state == "fetching" and row.version == version
                is_coming = row.state == "fetching" and row.owner and _is_alive(row, now)
                if is_same and (is_coming or row.state == "cached"):
                    return RoomClaim(has_rival=True)
            total = func.coalesce(func.sum(NearObjectRow.bytes), 0)
            bytes_here = session.scalar(select(total).where(NearObjectRow.store_id == store_id))
            lacking = int(bytes_here or 0) + size - limit_bytes
            if lacking > 0:
                return RoomClaim(lacking_bytes=lacking)
            row = NearObjectRow(
                store_id=store_id,
                path=path,
                token=token,
                state=state,
                bytes=size,
                version=version,
                owner=owner,
                lease_at=now + LEASE,
                used_at=now,
                uses=1,
            )
            session.add(row)
            session.flush()
            return RoomClaim(row.id)

    def finish_near_object(
        self,
        number: int,
        owner: str,
        state: NearState,
        version: str,
        near_version: str,
        fetch_s: float | None = None,
    ) -> bool:
        """Make a copy readable, and pin it for its process; older ones are stale.

        Returns whether it was still this process's: if not, its room was given away.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            row = _own(session, number, owner)
            if row is None:
                return False
            others = [
                each
                for each in session.scalars(_rows_of(row.store_id, row.path))
                if each.id != row.id and each.state in READABLE
            ]
            # What was written meanwhile is newer than what was fetched.
            is_late = row.state == "fetching" and any(each.state == "unwritten" for each in others)
            is_late = is_late or any(each.id > row.id for each in others)
            if not is_late:
                for other in others:
                    other.state = "stale"
            row.state = "stale" if is_late else state
            row.version, row.near_version, row.fetch_s = version, near_version, fetch_s
            row.checked_at = None if others or state == "unwritten" else now
            row.owner = row.lease_at = None
            _pin(session, row.id, owner, now + LEASE)
            return True

    def check_near_object(self, number: int, version: str | None) -> None:
        """Record that the source has the version of a copy, or, with `None`, another."""
        row = NearObjectRow
        values: dict[str, Any] = {"checked_at": datetime.now(UTC)}
        with self._writing() as session:
            query = update(row).where(row.id == number)
            if version is None:
                session.execute(query.where(row.state == "cached").values(state="stale"))
            else:
                session.execute(query.values(version=version, **values))

    def begin_write_back(self, number: int, owner: str) -> NearObject | None:
        """Claim a copy that is to be written to its source; `None` if another process does it.

        An older copy of the object that is being written comes first.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            row = session.get(NearObjectRow, number, with_for_update=True)
            if row is None or row.state != "unwritten":
                return None
            for other in session.scalars(_rows_of(row.store_id, row.path)):
                if other.state in ("unwritten", "stale") and _is_alive(other, now):
                    return None
            row.owner, row.lease_at = owner, now + LEASE
            _pin(session, row.id, owner, now + LEASE)
            return _record(row, 1)

    def end_write_back(self, number: int, owner: str, version: str | None) -> None:
        """Record that a copy is written to its source, with its version there, or is not."""
        now = datetime.now(UTC)
        with self._writing() as session:
            row = _own(session, number, owner)
            if row is None:
                return
            row.owner = row.lease_at = None
            if version is not None and row.state == "unwritten":
                row.state, row.version, row.checked_at = "cached", version, now

    def begin_removal(self, numbers: Sequence[int], owner: str, force: bool) -> list[NearObject]:
        """Claim copies that are to be removed; return those that nobody needs.

        Args:
            numbers: the copies.
            owner: this process.
            force: whether those are removed, too, that are pinned or not written to their source.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            claims = []
            for number in numbers:
                row = session.get(NearObjectRow, number, with_for_update=True)
                if row is None or not _may_leave(session, row, now, force):
                    continue
                row.state, row.owner, row.lease_at = "leaving", owner, now + LEASE
                claims.append(_record(row, 0))
            return claims

    def drop_claim(self, number: int, owner: str) -> list[NearObject]:
        """Mark a copy of this process that will not be whole as leaving; return it."""
        with self._writing() as session:
            row = _own(session, number, owner)
            if row is None or row.state not in IN_WORK:
                return []
            row.state, row.owner, row.lease_at = "leaving", None, None
            return [_record(row, 0)]

    def end_removal(self, number: int, *, is_eviction: bool) -> None:
        """Forget a copy that is removed."""
        with self._writing() as session:
            row = session.get(NearObjectRow, number)
            if row is None:
                return
            if is_eviction:
                _count(session, row.store_id, evictions=1)
            session.delete(row)

    def renew_near_objects(self, owner: str) -> None:
        """Renew the claims and pins of a process."""
        until = datetime.now(UTC) + LEASE
        row, pin = NearObjectRow, NearPinRow
        with self._writing() as session:
            session.execute(update(row).where(row.owner == owner).values(lease_at=until))
            session.execute(update(pin).where(pin.owner == owner).values(expires_at=until))

    def pin_near_objects(
        self, store: str, paths: Sequence[str], owner: str, lifetime_s: float
    ) -> list[str]:
        """Pin the readable copies of objects; return the paths of those that have one."""
        until = datetime.now(UTC) + timedelta(seconds=lifetime_s)
        with self._writing() as session:
            store_id = _store_id(session, store)
            rows = {path: _readable(session, store_id, path) for path in paths}
            for row in rows.values():
                if row is not None:
                    _pin(session, row.id, owner, until)
            return [path for path, row in rows.items() if row is not None]

    def near_pins(self, prefix: str) -> list[NearPin]:
        """Return the pins of readable copies of owners whose names begin with a prefix."""
        pin, row = NearPinRow, NearObjectRow
        query = (
            select(pin.owner, StoreRow.name, row.path, pin.expires_at)
            .join(row, row.id == pin.object_id)
            .join(StoreRow, StoreRow.id == row.store_id)
            .where(
                row.state.in_(READABLE),
                pin.owner.startswith(prefix, autoescape=True),
                pin.expires_at > datetime.now(UTC),
            )
        )
        with self._reading() as session:
            return [
                NearPin(owner, f"{store}:{path}", expires_at)
                for owner, store, path, expires_at in session.execute(query)
            ]

    def release_near_objects(
        self,
        owner: str | None,
        *,
        store: str | None = None,
        paths: Sequence[str] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> int:
        """Remove pins; return how many.

        Args:
            owner: whose; `None`: those of all users, not those of processes that read.
            store: name of a store; by default of all.
            paths: objects; by default all.
            numbers: copies; by default all.
        """
        pin, row = NearPinRow, NearObjectRow
        query = delete(pin)
        query = query.where(
            ~pin.owner.startswith("process ") if owner is None else pin.owner == owner
        )
        with self._writing() as session:
            if store is not None:
                objects = select(row.id).where(row.store_id == _store_id(session, store))
                if paths is not None:
                    objects = objects.where(row.path.in_(list(paths)))
                query = query.where(pin.object_id.in_(objects))
            if numbers is not None:
                query = query.where(pin.object_id.in_(list(numbers)))
            return len(session.scalars(query.returning(pin.object_id)).all())

    def count_cache_uses(self, store: str, counts: Mapping[str, int]) -> None:
        """Add to `hits`, `misses`, `fetched_bytes` or `evictions` of a store."""
        with self._writing() as session:
            _count(session, _store_id(session, store, lock=True), **counts)

    def near_objects(self, store: str, path: str | None = None) -> list[NearObject]:
        """Return the copies of a store, or of one object, oldest first."""
        now, pin = datetime.now(UTC), NearPinRow
        with self._reading() as session:
            query = _rows_of(_store_id(session, store), path)
            rows = session.scalars(query).all()
            pins: dict[int, int] = {}
            live = select(pin).where(
                pin.object_id.in_(query.with_only_columns(NearObjectRow.id).order_by(None)),
                pin.expires_at > now,
            )
            for each in session.scalars(live):
                pins[each.object_id] = pins.get(each.object_id, 0) + (not has_ended(each.owner))
            return [_record(row, pins.get(row.id, 0)) for row in rows]

    def abandoned_objects(self, store: str) -> list[int]:
        """Return the copies that a process has left unfinished, or that are stale."""
        now = datetime.now(UTC)
        with self._reading() as session:
            rows = session.scalars(_rows_of(_store_id(session, store)))
            states = (*IN_WORK, "stale")
            return [row.id for row in rows if row.state in states and not _is_alive(row, now)]

    def cache_usage(self, store: str) -> CacheUsage:
        """Return what a store has, and its counts."""
        objects = self.near_objects(store)
        unwritten_sizes = [each.bytes for each in objects if each.state == "unwritten"]
        with self._reading() as session:
            row = session.get(CacheCountRow, _store_id(session, store))
            counts = (row.hits, row.misses, row.fetched_bytes, row.evictions) if row else (0,) * 4
        return CacheUsage(
            len(objects),
            sum(each.bytes for each in objects),
            len(unwritten_sizes),
            sum(unwritten_sizes),
            sum(each.bytes for each in objects if each.pins),
            *counts,
        )


def _store_id(session: Session, name: str, lock: bool = False) -> int:
    query = select(StoreRow.id).where(StoreRow.name == name)
    number = session.scalar(query.with_for_update() if lock else query)
    if number is None:
        raise NoSuchStoreError(f"there is no store {name[:100]!r}; see: swathe store list")
    return number


def _rows_of(store_id: int, path: str | None = None) -> Any:
    query = select(NearObjectRow).where(NearObjectRow.store_id == store_id)
    query = query if path is None else query.where(NearObjectRow.path == path)
    return query.order_by(NearObjectRow.id)


def _readable(session: Session, store_id: int, path: str) -> NearObjectRow | None:
    """Return the row of the readable copy of an object, locked."""
    query = _rows_of(store_id, path).where(NearObjectRow.state.in_(READABLE))
    rows = session.scalars(query.with_for_update()).all()
    return rows[-1] if rows else None


def _own(session: Session, number: int, owner: str) -> NearObjectRow | None:
    row = session.get(NearObjectRow, number, with_for_update=True)
    return row if row is not None and row.owner == owner else None


def _is_alive(row: NearObjectRow, now: datetime) -> bool:
    """Return whether a process works on a copy."""
    if row.owner is None or row.lease_at is None:
        return False
    return row.lease_at > now and not has_ended(row.owner)


def _may_leave(session: Session, row: NearObjectRow, now: datetime, force: bool) -> bool:
    """Return whether a copy may be removed now."""
    if _is_alive(row, now):
        return False
    if force or row.state in IN_WORK:
        return True
    if row.state == "unwritten":
        return False
    pins = session.scalars(
        select(NearPinRow).where(NearPinRow.object_id == row.id, NearPinRow.expires_at > now)
    )
    return all(has_ended(pin.owner) for pin in pins)


def _pin(session: Session, number: int, owner: str, until: datetime) -> None:
    pin = session.get(NearPinRow, (number, owner))
    if pin is None:
        session.add(NearPinRow(object_id=number, owner=owner, expires_at=until))
    else:
        pin.expires_at = max(pin.expires_at, until)


def _count(session: Session, store_id: int, **counts: int) -> None:
    row = session.get(CacheCountRow, store_id, with_for_update=True)
    if row is None:
        row = CacheCountRow(store_id=store_id, hits=0, misses=0, fetched_bytes=0, evictions=0)
        session.add(row)
    for name, number in counts.items():
        setattr(row, name, getattr(row, name) + number)


def _record(row: NearObjectRow, pins: int) -> NearObject:
    return NearObject(
        row.id,
        row.path,
        row.token,
        row.state,
        row.bytes,
        row.version,
        row.near_version,
        row.owner,
        row.used_at,
        row.uses,
        row.fetch_s,
        row.checked_at,
        pins,
    )
