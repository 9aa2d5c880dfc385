"""The tables. A change needs a migration, whose number is added to REVISIONS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from swathe.catalog.records.datasets import State
from swathe.catalog.records.jobs import ChunkState, Phase
from swathe.catalog.records.measurements import Source
from swathe.catalog.records.runs import RunState
from swathe.catalog.records.stripes import WorkKind

REVISIONS = ("v0001", "v0002", "v0003", "v0004", "v0005", "v0006", "v0007")
"""All revisions of the schema, oldest first. This code works with the last."""
DEVELOPMENT_REVISIONS = frozenset(f"{number:04}" for number in range(1, 14))
"""Revisions of the schema before the first version. Catalogues that have one are refused."""
VERSION_TABLE = "swathe_schema"


class Instant(TypeDecorator[datetime]):
    """A time in UTC. SQLite stores no time zones; a time without one is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time needs a time zone: datetime.now(UTC)")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return the time in UTC, with its time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows itself only if the type is exactly INTEGER.
Id = BigInteger().with_variant(Integer(), "sqlite")


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - as SQLAlchemy wants it
        datetime: Instant(),
        float: Double(),
    }


class StoreRow(Base):
    """A store."""

    __tablename__ = "stores"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    url: Mapped[str] = mapped_column(Text)
    tier: Mapped[str] = mapped_column(String(10))
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    added_at: Mapped[datetime]


class StripeWorkTable(Base):
    """A repair or rebalance of a striped store that runs, or was stopped."""

    __tablename__ = "stripe_work"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id", ondelete="CASCADE"), index=True)
    kind: Mapped[WorkKind] = mapped_column(String(10))
    place: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int] = mapped_column(BigInteger)
    began_at: Mapped[datetime]
    told_at: Mapped[datetime]
    objects: Mapped[int] = mapped_column(BigInteger)
    done: Mapped[int] = mapped_column(BigInteger)
    failed: Mapped[int] = mapped_column(BigInteger)
    written_bytes: Mapped[int | None] = mapped_column(BigInteger)
    total_bytes: Mapped[int | None] = mapped_column(BigInteger)
    done_bytes: Mapped[int | None] = mapped_column(BigInteger)
    bytes_per_s: Mapped[float | None]
    is_stopped: Mapped[bool]


class RunRow(Base):
    """A run of an application."""

    __tablename__ = "runs"
    __table_args__ = (UniqueConstraint("name", "number"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    number: Mapped[int] = mapped_column(BigInteger)
    folder: Mapped[str] = mapped_column(String(150))
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int] = mapped_column(BigInteger)
    iterations: Mapped[int] = mapped_column(BigInteger)
    ranks: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[RunState] = mapped_column(String(10))
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class RunArrayRow(Base):
    """An array of a run, with its settings."""

    __tablename__ = "run_arrays"
    __table_args__ = (UniqueConstraint("run_id", "name"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    stores: Mapped[list[str]] = mapped_column(JSON)


class RunDumpRow(Base):
    """An array of a run at one iteration."""

    __tablename__ = "run_dumps"
    array_id: Mapped[int] = mapped_column(
        ForeignKey("run_arrays.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    iteration: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(BigInteger)
    store: Mapped[str] = mapped_column(String(100))
    bytes: Mapped[int] = mapped_column(BigInteger)
    seconds: Mapped[float]
    at: Mapped[datetime]


class LinkRow(Base):
    """A store, by its key, as seen from a host: every measurement belongs to one."""

    __tablename__ = "links"
    __table_args__ = (UniqueConstraint("root", "host"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    root: Mapped[str] = mapped_column(String(2000))
    host: Mapped[str] = mapped_column(String(255))


class ProbeRow(Base):
    """A run of the probe."""

    __tablename__ = "probes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    elapsed_s: Mapped[float]
    bytes_moved: Mapped[int] = mapped_column(BigInteger)


class SampleRow(Base):
    """A measured request, or several that ran together."""

    __tablename__ = "samples"
    __table_args__ = (Index(None, "link_id", "source", "at"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"))
    probe_id: Mapped[int | None] = mapped_column(
        ForeignKey("probes.id", ondelete="SET NULL"), index=True
    )
    source: Mapped[Source] = mapped_column(String(10))
    kind: Mapped[str] = mapped_column(String(50))
    bytes: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int]
    streams: Mapped[int]
    elapsed_s: Mapped[float]
    first_byte_s: Mapped[float | None]
    at: Mapped[datetime]


class ProfileRow(Base):
    """The fitted costs of a link."""

    __tablename__ = "profiles"
    __table_args__ = (Index(None, "link_id", "fitted_at"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id", ondelete="CASCADE"))
    fitted_at: Mapped[datetime]
    costs: Mapped[dict[str, Any]] = mapped_column(JSON)
    spread: Mapped[dict[str, Any]] = mapped_column(JSON)
    notes: Mapped[list[str] | None] = mapped_column(JSON)


class HostRow(Base):
    """A machine that cuts."""

    __tablename__ = "hosts"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    host: Mapped[str] = mapped_column(String(255), unique=True)
    compute: Mapped[dict[str, Any]] = mapped_column(JSON)
    fitted_at: Mapped[datetime]


class OutcomeRow(Base):
    """A prediction and its outcome."""

    __tablename__ = "outcomes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    at: Mapped[datetime]
    host: Mapped[str] = mapped_column(String(255))
    summary: Mapped[str] = mapped_column(Text)
    targets: Mapped[int] = mapped_column(BigInteger)
    root: Mapped[str] = mapped_column(Text)
    predicted_s: Mapped[float]
    low_s: Mapped[float]
    high_s: Mapped[float]
    actual_s: Mapped[float]
    predicted_bytes: Mapped[int] = mapped_column(BigInteger)
    actual_bytes: Mapped[int] = mapped_column(BigInteger)
    predicted_requests: Mapped[int] = mapped_column(BigInteger)
    actual_requests: Mapped[int] = mapped_column(BigInteger)
    model_s: Mapped[float] = mapped_column(server_default="0")
    engine_s: Mapped[float] = mapped_column(server_default="0")
    before_s: Mapped[float] = mapped_column(server_default="0")
    after_s: Mapped[float] = mapped_column(server_default="0")
    output: Mapped[str] = mapped_column(Text, server_default=text("''"))
    write_s: Mapped[float] = mapped_column(server_default="0")
    written_bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")


class DatasetRow(Base):
    """A dataset, and the store of its first scan."""

    __tablename__ = "datasets"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id"), index=True)
    prefix: Mapped[str] = mapped_column(Text)
    pattern: Mapped[str | None] = mapped_column(Text)
    calib_level: Mapped[int] = mapped_column(SmallInteger, server_default="2")
    changes: Mapped[int] = mapped_column(server_default="0")
    added_at: Mapped[datetime]
    synced_at: Mapped[datetime | None]


class ReplicaRow(Base):
    """A copy of an object of a dataset in a store: `path` there, `object_path` in the first store.

    `modified` is the time as text in the listing, or its ETag.
    """

    __tablename__ = "replicas"
    __table_args__ = (UniqueConstraint("dataset_id", "object_path", "store_id"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    object_path: Mapped[str] = mapped_column(String(1000))
    store_id: Mapped[int] = mapped_column(ForeignKey("stores.id"), index=True)
    path: Mapped[str] = mapped_column(Text)
    size: Mapped[int | None] = mapped_column(BigInteger)
    modified: Mapped[str | None] = mapped_column(String(100))
    version: Mapped[str | None] = mapped_column(Text)
    state: Mapped[State] = mapped_column(String(10))
    reason: Mapped[str | None] = mapped_column(Text)
    seen_at: Mapped[datetime]


class GranuleRow(Base):
    """An image HDU or an array of an object of a dataset, with its time, band and position.

    A position in the sky is in `s_ra` and the columns up to `wcs`, one on the Earth in `lon`,
    `lat`, `fov` and `outlines`. A row never has both. `hdu` is the number of an array, if `array`
    is its path.
    """

    __tablename__ = "granules"
    __table_args__ = (
        UniqueConstraint("dataset_id", "path", "hdu"),
        Index(None, "t_min"),
        Index(None, "em_min"),
    )
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"))
    path: Mapped[str] = mapped_column(String(1000))
    hdu: Mapped[int]
    name: Mapped[str | None] = mapped_column(Text)
    shape: Mapped[list[int]] = mapped_column(JSON)
    t_min: Mapped[float | None]
    t_max: Mapped[float | None]
    band: Mapped[str | None] = mapped_column(String(100))
    em_min: Mapped[float | None]
    em_max: Mapped[float | None]
    s_ra: Mapped[float | None]
    s_dec: Mapped[float | None]
    s_fov: Mapped[float | None]
    s_pixel_scale: Mapped[float | None]
    # None is the database's NULL, not JSON's null.
    outline: Mapped[list[float] | None] = mapped_column(JSON(none_as_null=True))
    wcs: Mapped[str | None] = mapped_column(Text)
    note: Mapped[str | None] = mapped_column(Text)
    facility: Mapped[str | None] = mapped_column(String(100))
    instrument: Mapped[str | None] = mapped_column(String(100))
    target: Mapped[str | None] = mapped_column(String(100))
    pol: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    array: Mapped[str | None] = mapped_column(Text)
    lon: Mapped[float | None]
    lat: Mapped[float | None]
    fov: Mapped[float | None]
    outlines: Mapped[list[list[float]] | None] = mapped_column(JSON(none_as_null=True))
    size: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[str] = mapped_column(Text)
    seen_at: Mapped[datetime]


class CellRange:
    """Columns of a range of HEALPix cells, nested, of order 29, that a granule may touch.

    A range is at most `4 ** level` cells long. So all ranges that touch a position start in a known
    interval of the index, level by level.
    """

    __table_args__ = ({"sqlite_with_rowid": False},)
    level: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    first: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    last: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    granule_id: Mapped[int] = mapped_column(
        ForeignKey("granules.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class FootprintRow(CellRange, Base):
    """A range of cells on the sky."""

    __tablename__ = "footprints"


class EarthFootprintRow(CellRange, Base):
    """A range of cells of longitude and latitude on the Earth."""

    __tablename__ = "earth_footprints"


class JobTable(Base):
    """A job.

    The rows are leased by `position`, those of one object together; rows before `cursor` have been
    leased. From `inputs` on, rows are combined results of the rows before.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index(None, "owner", "phase"),
        Index(None, "phase"),
        Index(None, "expires_at"),
    )
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    id: Mapped[str] = mapped_column(String(22), unique=True)
    owner: Mapped[str] = mapped_column(String(200))
    name: Mapped[str] = mapped_column(Text)
    phase: Mapped[Phase] = mapped_column(String(10))
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    parameters: Mapped[list[list[str]]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    expires_at: Mapped[datetime]
    served_at: Mapped[datetime | None]
    rows: Mapped[int]
    inputs: Mapped[int]
    cursor: Mapped[int]
    # Number of rows per status.
    waiting: Mapped[int]
    ok: Mapped[int]
    no_overlap: Mapped[int]
    missing: Mapped[int]
    error: Mapped[int]
    bytes: Mapped[int] = mapped_column(BigInteger)
    predicted: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    work_s: Mapped[float]
    bytes_moved: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)
    failure: Mapped[str | None] = mapped_column(Text)
    notes: Mapped[list[str]] = mapped_column(JSON)
    changes: Mapped[int] = mapped_column(BigInteger)


class JobBlockTable(Base):
    """A thousand rows of a job by position: requests and results.

    `swathe.catalog.jobs.encoding` describes the format. `statuses` has one bit for each status that
    occurs. `places` and `names` find rows: those with the numbers from a thousand times `number`
    on, and those whose names hash to this block.
    """

    __tablename__ = "job_blocks"
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    statuses: Mapped[int]
    places: Mapped[bytes]
    names: Mapped[bytes]
    asked: Mapped[bytes]
    became: Mapped[bytes | None]


class JobChunkTable(Base):
    """Rows `first` to `last` by position that are leased to a runner, or were returned.

    `deaths` is the number of runners that died while they had them.
    """

    __tablename__ = "job_chunks"
    __table_args__ = (Index(None, "state"),)
    job: Mapped[int] = mapped_column(
        ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last: Mapped[int]
    state: Mapped[ChunkState] = mapped_column(String(10))
    runner: Mapped[str | None] = mapped_column(Text)
    lease_until: Mapped[datetime | None]
    deaths: Mapped[int] = mapped_column(default=0, server_default="0")


class DeletedJobTable(Base):
    """A deleted job: until its results are removed, they count for its owner.

    After the removal it stays recorded for a while: a worker may still write results of it.
    """

    __tablename__ = "deleted_jobs"
    __table_args__ = (Index(None, "owner"),)
    id: Mapped[str] = mapped_column(String(22), primary_key=True)
    owner: Mapped[str] = mapped_column(String(200))
    bytes: Mapped[int] = mapped_column(BigInteger)
    deleted_at: Mapped[datetime]
    removed: Mapped[bool]


class ReservationTable(Base):
    """A reservation of workers."""

    __tablename__ = "reservations"
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    workers: Mapped[int]


class PoolTable(Base):
    """A pool of workers, by its portal's latest report.

    `held` counts the cached objects of each worker.
    """

    __tablename__ = "pools"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    address: Mapped[str] = mapped_column(Text)
    told_at: Mapped[datetime]
    workers: Mapped[int]
    held: Mapped[int]
    bytes: Mapped[int] = mapped_column(BigInteger)


class WorkerReplicaTable(Base):
    """Cached bytes of an object on a worker."""

    __tablename__ = "worker_replicas"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    pool: Mapped[str] = mapped_column(ForeignKey("pools.id", ondelete="CASCADE"), index=True)
    worker: Mapped[str] = mapped_column(Text)
    object: Mapped[str] = mapped_column(Text)
    bytes: Mapped[int] = mapped_column(BigInteger)


class TokenRow(Base):
    """A user's token: its hash, never the token itself."""

    __tablename__ = "tokens"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user: Mapped[str] = mapped_column("user_name", String(200), index=True)
    label: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(128), unique=True)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
