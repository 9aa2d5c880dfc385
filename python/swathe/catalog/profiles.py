"""The performance database: measurements of a store as seen from a host."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.read_log import ReadLog
from swathe.catalog.records.checks import count, finite, plain_text
from swathe.catalog.records.measurements import ProbeRecord, ProfileRecord, SampleRecord
from swathe.catalog.store_urls import root_url
from swathe.catalog.tables import HostRow, LinkRow, ProbeRow, ProfileRow, SampleRow

MOST_SAMPLES = 20_000
"""Samples kept per link and source."""
MOST_PROBES = 1_000
MOST_PROFILES = 50
LONGEST_NOTE = 1_000


class MeasurementRecords(Database):
    """Probes, samples and profiles. Each belongs to a link: the key of a store, and a host.

    Roots are normalised by `root_url`, so that other spellings mean the same store. A root that
    contains credentials raises `StoreSettingsError`.
    """

    def add_probe(
        self,
        root: str,
        host: str,
        parameters: Mapping[str, Any],
        seconds: float,
        bytes_moved: int,
        at: datetime | None = None,
    ) -> int:
        """Record a run of the probe that took `seconds` and ended `at`, usually now.

        Returns its number, for `add_samples`. The last PROBES_KEPT of a link are kept.

        Raises:
            ValueError, TypeError: If the parameters are not numbers, texts, or lists or mappings of
                such; or if `at` has no time zone.
        """
        with self._writing() as session:
            link = _link(session, root, host)
            row = ProbeRow(
                link_id=link,
                at=at or datetime.now(UTC),
                parameters=_plain(parameters),
                elapsed_s=finite(seconds),
                bytes_moved=count(bytes_moved),
            )
            session.add(row)
            session.flush()
            number = row.id
            _forget(session, ProbeRow, MOST_PROBES, ProbeRow.link_id == link, ProbeRow.at)
        return number

    def probes(self, root: str | None = None, host: str | None = None) -> list[ProbeRecord]:
        """Return recorded probes, of one store or host if named; newest first."""
        query = select(ProbeRow, LinkRow.root, LinkRow.host).join(
            LinkRow, LinkRow.id == ProbeRow.link_id
        )
        if root is not None:
            query = query.where(LinkRow.root == root_url(root))
        if host is not None:
            query = query.where(LinkRow.host == host)
        query = query.order_by(ProbeRow.at.desc(), ProbeRow.id.desc())
        with self._reading() as session:
            return [
                ProbeRecord(
                    row.id,
                    of,
                    last_time,
                    row.at,
                    dict(row.parameters),
                    row.elapsed_s,
                    row.bytes_moved,
                )
                for row, of, last_time in session.execute(query)
            ]

    def add_samples(
        self, root: str, host: str, samples: Iterable[SampleRecord], probe_id: int | None = None
    ) -> None:
        """Record measured requests, those of a probe with its number.

        The newest SAMPLES_KEPT of each link and source are kept.

        Raises:
            ValueError: If a time has no zone, a source is unknown, or a number is negative or not
                finite.
            CatalogError: If there is no such probe.
        """
        rows = [_sample_row(sample, probe_id) for sample in samples]
        if not rows:
            return
        with self._writing() as session:
            link = _link(session, root, host)
            for row in rows:
                row["link_id"] = link
            session.connection().execute(insert(SampleRow), rows)
            for source in sorted({row["source"] for row in rows}):
                where = (SampleRow.link_id == link) & (SampleRow.source == source)
                _forget(session, SampleRow, MOST_SAMPLES, where, SampleRow.at)

    def enter_reads(self) -> list[str]:
        """Record the reads that wait in the log beside the database; return their stores."""
        database = self._engine.url.database
        if not self._on_sqlite or database is None:
            return []
        read_log = ReadLog(database)
        with read_log.draining_lines() as lines:
            reads = read_log.parse(lines)
            for (root, host), samples in reads.items():
                self.add_samples(root, host, samples)
        return [root for root, _ in reads]

    def samples(
        self,
        root: str,
        host: str,
        kinds: Collection[str] | None = None,
        since: datetime | None = None,
    ) -> list[SampleRecord]:
        """Return the samples of a link, oldest first; of some kinds, and from a time on."""
        self.enter_reads()
        columns = [getattr(SampleRow, field.name) for field in fields(SampleRecord)]
        query = select(*columns).join(LinkRow, LinkRow.id == SampleRow.link_id)
        query = query.where(LinkRow.root == root_url(root), LinkRow.host == host)
        if kinds is not None:
            query = query.where(SampleRow.kind.in_(list(kinds)))
        if since is not None:
            query = query.where(SampleRow.at >= since)
        query = query.order_by(SampleRow.at, SampleRow.id)
        with self._reading() as session:
            return [SampleRecord(*row) for row in session.execute(query)]

    def put_profile(
        self,
        root: str,
        host: str,
        costs: Mapping[str, Any],
        spread: Mapping[str, Any],
        fitted_at: datetime,
        notes: Iterable[str] = (),
    ) -> None:
        """Store the fitted costs of a link; the last PROFILES_KEPT are kept.

        Raises:
            ValueError, TypeError: If costs or spread are not finite numbers, texts, or lists or
                mappings of such; or if `fitted_at` has no time zone.
        """
        with self._writing() as session:
            link = _link(session, root, host)
            session.add(
                ProfileRow(
                    link_id=link,
                    fitted_at=fitted_at,
                    costs=_plain(costs),
                    spread=_plain(spread),
                    notes=[plain_text(note, LONGEST_NOTE) for note in notes],
                )
            )
            session.flush()
            where = ProfileRow.link_id == link
            _forget(session, ProfileRow, MOST_PROFILES, where, ProfileRow.fitted_at)

    def profile(self, root: str, host: str) -> ProfileRecord | None:
        """Return the latest profile of a link, if it has one."""
        query = (
            select(ProfileRow, LinkRow.root, LinkRow.host)
            .join(LinkRow, LinkRow.id == ProfileRow.link_id)
            .where(LinkRow.root == root_url(root), LinkRow.host == host)
            .order_by(ProfileRow.fitted_at.desc(), ProfileRow.id.desc())
            .limit(1)
        )
        with self._reading() as session:
            row = session.execute(query).first()
            return None if row is None else _profile(*row)

    def profiles(self) -> list[ProfileRecord]:
        """Return the latest profile of every link, by root and host."""
        newest = (
            select(
                ProfileRow.id,
                func.row_number()
                .over(
                    partition_by=ProfileRow.link_id,
                    order_by=(ProfileRow.fitted_at.desc(), ProfileRow.id.desc()),
                )
                .label("age"),
            )
        ).subquery()
        query = (
            select(ProfileRow, LinkRow.root, LinkRow.host)
            .join(LinkRow, LinkRow.id == ProfileRow.link_id)
            .join(newest, newest.c.id == ProfileRow.id)
            .where(newest.c.age == 1)
        )
        with self._reading() as session:
            rows = [_profile(*row) for row in session.execute(query)]
        return sorted(rows, key=lambda profile: (profile.root, profile.host))

    def put_compute(self, host: str, compute: Mapping[str, Any], at: datetime) -> None:
        """Store the compute costs of a host, replacing earlier ones.

        Raises:
            ValueError, TypeError: If the costs are not finite numbers, texts, or lists or mappings
                of such; or if `at` has no time zone.
        """
        _check_host(host)
        values = {"compute": _plain(compute), "fitted_at": at}
        with self._writing() as session:
            new = _insert(session)(HostRow).values(host=host, **values)
            session.execute(new.on_conflict_do_update(index_elements=["host"], set_=values))

    def compute(self, host: str) -> dict[str, Any] | None:
        """Return the compute costs of a host, if measured."""
        with self._reading() as session:
            costs = session.scalar(select(HostRow.compute).where(HostRow.host == host))
            return None if costs is None else dict(costs)


def _check_host(host: str) -> None:
    if not 1 <= len(host) <= 255 or not host.isprintable():
        raise ValueError(f"a host's name is 1 to 255 characters, not {host[:255]!r}")


def _insert(session: Session) -> Any:
    """Return the insert statement of this database that handles conflicts."""
    if session.get_bind().dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert
    from sqlalchemy.dialects import postgresql

    return postgresql.insert


def _link(session: Session, root: str, host: str) -> int:
    """Return the number of a link, created if needed, and lock it until the transaction ends."""
    root = root_url(root)
    _check_host(host)
    query = select(LinkRow.id).where(LinkRow.root == root, LinkRow.host == host).with_for_update()
    number = session.scalar(query)
    if number is None:
        new = _insert(session)(LinkRow).values(root=root, host=host)
        session.execute(new.on_conflict_do_nothing())
        number = session.scalar(query)
        assert number is not None
    return number


def _forget(session: Session, table: Any, keep: int, where: Any, time: Any) -> None:
    """Delete all but the newest rows."""
    newest = select(table.id).where(where).order_by(time.desc(), table.id.desc())
    old = delete(table).where(table.id.in_(newest.offset(keep)))
    session.execute(old, execution_options={"synchronize_session": False})


def _sample_row(sample: SampleRecord, probe_id: int | None) -> dict[str, Any]:
    if sample.source not in ("probe", "read"):
        raise ValueError(f"the source of a sample is probe or read, not {sample.source!r}")
    first = sample.first_byte_s
    return {
        "probe_id": probe_id,
        "source": sample.source,
        "kind": plain_text(sample.kind, 50),
        "bytes": count(sample.bytes),
        "requests": count(sample.requests),
        "streams": count(sample.streams),
        "elapsed_s": finite(sample.elapsed_s),
        "first_byte_s": None if first is None else finite(first),
        "at": sample.at,
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON types, including NumPy values; infinities are not allowed in JSON."""
    text = json.dumps(dict(values), allow_nan=False, default=lambda value: value.tolist())
    plain: dict[str, Any] = json.loads(text)
    return plain


def _profile(row: ProfileRow, root: str, host: str) -> ProfileRecord:
    return ProfileRecord(
        root, host, dict(row.costs), dict(row.spread), row.fitted_at, tuple(row.notes or ())
    )
