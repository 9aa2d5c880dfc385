"""The replica map: which worker of which pool holds how much of which object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.tables import PoolTable, WorkerReplicaTable

Place = tuple[str, str]
"""A worker, and an object of which it holds something."""


@dataclass(frozen=True)
class WorkerReplicas:
    """What the workers of a pool held when its portal told last.

    Attributes:
        address: of its scheduler.
        told_at: UTC.
        workers: how many there were.
        held: of how many objects they held something, each counted once for each worker.
        bytes: of all that.
        replicas: worker, object and bytes of the largest.
    """

    address: str
    told_at: datetime
    workers: int
    held: int
    bytes: int
    replicas: list[tuple[str, str, int]]


class Workers(Database):
    """What workers hold."""

    def keep_replicas(
        self,
        pool: str,
        told: WorkerReplicas,
        was: Mapping[Place, int],
        now: Mapping[Place, int],
    ) -> None:
        """Keep what the workers of a pool hold, of which `was` was kept the last time.

        The `replicas` of what is told do not count here.
        """
        with self._writing() as session:
            row = session.get(PoolTable, pool)
            if row is None:
                row = PoolTable(id=pool)
                session.add(row)
                was = {}
            row.address, row.told_at, row.workers = told.address, told.told_at, told.workers
            row.held, row.bytes = told.held, told.bytes
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
        """Forget what the workers of a pool held, or of all that told nothing for so long."""
        chosen = delete(PoolTable)
        rows = delete(WorkerReplicaTable)
        if pool is not None:
            chosen = chosen.where(PoolTable.id == pool)
            rows = rows.where(WorkerReplicaTable.pool == pool)
        else:
            until = datetime.now(UTC) - timedelta(seconds=older_s)
            old = select(PoolTable.id).where(PoolTable.told_at <= until)
            with self._reading() as session:
                if session.scalar(old.limit(1)) is None:
                    return
            chosen = chosen.where(PoolTable.told_at <= until)
            rows = rows.where(WorkerReplicaTable.pool.in_(old))
        with self._writing() as session:
            session.execute(rows)
            session.execute(chosen)

    def worker_replicas(self, limit: int = 1000) -> list[WorkerReplicas]:
        """Give what workers hold, pool by pool, of each at most so many of the largest."""
        table = WorkerReplicaTable
        found = []
        with self._reading() as session:
            for pool in session.scalars(select(PoolTable).order_by(PoolTable.told_at.desc())):
                query = select(table.worker, table.object, table.bytes).where(table.pool == pool.id)
                rows = session.execute(query.order_by(table.bytes.desc(), table.id).limit(limit))
                replicas = [(worker, source, size) for worker, source, size in rows]
                found.append(
                    WorkerReplicas(
                        pool.address, pool.told_at, pool.workers, pool.held, pool.bytes, replicas
                    )
                )
        return found
