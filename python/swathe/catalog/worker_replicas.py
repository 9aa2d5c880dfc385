"""The replica map: worker, pool, object, and cached bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.tables import PoolTable, WorkerReplicaTable

Place = tuple[str, str]
"""A worker, and an object that it has cached in whole or in part."""


@dataclass(frozen=True)
class WorkerReplicas:
    """Cached objects of a pool's workers, by the portal's latest report.

    Attributes:
        address: address of its scheduler.
        told_at: time of the report, UTC.
        workers: number of workers.
        held: number of cached objects, counted once per worker.
        bytes: their size.
        replicas: worker, object and bytes of the largest.
    """

    address: str
    told_at: datetime
    workers: int
    held: int
    bytes: int
    replicas: list[tuple[str, str, int]]


class WorkerReplicaRecords(Database):
    """Cached objects of workers."""

    def keep_replicas(
        self,
        pool: str,
        status: WorkerReplicas,
        was: Mapping[Place, int],
        now: Mapping[Place, int],
    ) -> None:
        """Store the cached objects of a pool's workers, given those stored last time.

        The `replicas` of `status` are ignored.
        """
        with self._writing() as session:
            row = session.get(PoolTable, pool)
            if row is None:
                row = PoolTable(id=pool)
                session.add(row)
                was = {}
            row.address, row.told_at, row.workers = status.address, status.told_at, status.workers
            row.held, row.bytes = status.held, status.bytes
            session.flush()
            table = WorkerReplicaTable
            for worker, source in [place for place in was if was[place] != now.get(place)]:
                session.execute(
                    delete(table).where(
                        table.pool == pool, table.worker == worker, table.object == source
                    )
                )
            session.add_all(
                table(pool=pool, worker=worker, object=source, bytes=size)
                for (worker, source), size in now.items()
                if was.get((worker, source)) != size
            )

    def forget_replicas(self, pool: str | None = None, older_s: float = 0.0) -> None:
        """Delete the records of a pool, or of all pools whose last report is too old."""
        query = delete(PoolTable)
        rows = delete(WorkerReplicaTable)
        if pool is not None:
            query = query.where(PoolTable.id == pool)
            rows = rows.where(WorkerReplicaTable.pool == pool)
        else:
            until = datetime.now(UTC) - timedelta(seconds=older_s)
            old = select(PoolTable.id).where(PoolTable.told_at <= until)
            with self._reading() as session:
                if session.scalar(old.limit(1)) is None:
                    return
            query = query.where(PoolTable.told_at <= until)
            rows = rows.where(WorkerReplicaTable.pool.in_(old))
        with self._writing() as session:
            session.execute(rows)
            session.execute(query)

    def worker_replicas(self, limit: int = 1000) -> list[WorkerReplicas]:
        """Return the cached objects of workers by pool, at most `limit` of the largest each."""
        table = WorkerReplicaTable
        pools = []
        with self._reading() as session:
            for pool in session.scalars(select(PoolTable).order_by(PoolTable.told_at.desc())):
                query = select(table.worker, table.object, table.bytes).where(table.pool == pool.id)
                rows = session.execute(query.order_by(table.bytes.desc(), table.id).limit(limit))
                replicas = [(worker, source, size) for worker, source, size in rows]
                pools.append(
                    WorkerReplicas(
                        pool.address, pool.told_at, pool.workers, pool.held, pool.bytes, replicas
                    )
                )
        return pools
