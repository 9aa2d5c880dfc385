"""Repairs and rebalances of striped stores that run, or were stopped.

The record of one is deleted at its end. One that was killed cannot say so: it has a record that it
no longer writes, and its process is gone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select, update

from swathe.catalog.database import Database
from swathe.catalog.records.stripes import StripeWork, WorkKind
from swathe.catalog.tables import StoreRow, StripeWorkTable
from swathe.core.errors import NoSuchStoreError
from swathe.core.host import has_process, this_host

SILENCE = timedelta(seconds=30)
"""Work that told no progress for this time was stopped."""


class StripeWorkRecords(Database):
    """Work on striped stores."""

    def begin_stripe_work(
        self,
        store: str,
        kind: WorkKind,
        place: str,
        pid: int,
        objects: int,
        total_bytes: int | None = None,
    ) -> int:
        """Add work of a process of this machine; return its number.

        Records of the store's work that was stopped are deleted.

        Args:
            store: name of the store.
            kind: `repair` or `rebalance`.
            place: the store, or a folder of it.
            pid: the process.
            objects: number of objects.
            total_bytes: size of them all; `None` if it is unknown.

        Raises:
            NoSuchStoreError: If there is no such store.
        """
        now = datetime.now(UTC)
        with self._writing() as session:
            store_id = session.scalar(select(StoreRow.id).where(StoreRow.name == store))
            if store_id is None:
                raise NoSuchStoreError(f"there is no store {store[:100]!r}; see: swathe store list")
            table = StripeWorkTable
            for row in session.scalars(select(table).where(table.store_id == store_id)):
                if not _is_running(row, now):
                    session.delete(row)
            row = StripeWorkTable(
                store_id=store_id,
                kind=kind,
                place=place,
                host=this_host(),
                pid=pid,
                began_at=now,
                told_at=now,
                objects=objects,
                done=0,
                failed=0,
                written_bytes=None,
                total_bytes=total_bytes,
                done_bytes=None,
                bytes_per_s=None,
                is_stopped=False,
            )
            session.add(row)
            session.flush()
            return row.id

    def tell_stripe_work(
        self,
        number: int,
        done: int,
        failed: int,
        written_bytes: int | None,
        *,
        done_bytes: int | None = None,
        bytes_per_s: float | None = None,
        is_stopped: bool = False,
    ) -> None:
        """Store the progress of work; nothing if its store was removed.

        Args:
            number: the work.
            done: number of objects that are done.
            failed: number of those that could not be done.
            written_bytes: bytes written to servers; `None` if that is not known.
            done_bytes: bytes of objects that are done, also of those in work; `None`: unknown.
            bytes_per_s: their present rate; `None` if it is unknown.
            is_stopped: whether the work was stopped.
        """
        values = {
            "told_at": datetime.now(UTC),
            "done": done,
            "failed": failed,
            "written_bytes": written_bytes,
            "done_bytes": done_bytes,
            "bytes_per_s": bytes_per_s,
            "is_stopped": is_stopped,
        }
        table = StripeWorkTable
        with self._writing() as session:
            session.execute(update(table).where(table.id == number).values(values))

    def end_stripe_work(self, number: int) -> None:
        """Delete the record of work that is done."""
        with self._writing() as session:
            session.execute(delete(StripeWorkTable).where(StripeWorkTable.id == number))

    def stripe_work(self, store: str) -> list[StripeWork]:
        """Return the work on a store, the oldest first."""
        now = datetime.now(UTC)
        query = (
            select(StripeWorkTable)
            .join(StoreRow, StoreRow.id == StripeWorkTable.store_id)
            .where(StoreRow.name == store)
            .order_by(StripeWorkTable.id)
        )
        with self._reading() as session:
            return [_work_of(row, now) for row in session.scalars(query)]


def _work_of(row: StripeWorkTable, now: datetime) -> StripeWork:
    return StripeWork(
        kind=row.kind,
        place=row.place,
        host=row.host,
        pid=row.pid,
        began_at=row.began_at,
        told_at=row.told_at,
        objects=row.objects,
        done=row.done,
        failed=row.failed,
        written_bytes=row.written_bytes,
        total_bytes=row.total_bytes,
        done_bytes=row.done_bytes,
        bytes_per_s=row.bytes_per_s,
        is_running=_is_running(row, now),
    )


def _is_running(row: StripeWorkTable, now: datetime) -> bool:
    if row.is_stopped or now - row.told_at > SILENCE:
        return False
    return row.host != this_host() or has_process(row.pid)
