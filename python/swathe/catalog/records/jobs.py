"""Records of jobs as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Phase = Literal["PENDING", "QUEUED", "EXECUTING", "COMPLETED", "ERROR", "ABORTED"]
RowStatus = Literal["waiting", "ok", "no-overlap", "missing", "error"]
ChunkState = Literal["free", "taken"]

ACTIVE: tuple[Phase, ...] = ("PENDING", "QUEUED", "EXECUTING")
FAILED: tuple[RowStatus, ...] = ("error", "missing")
STATUSES: tuple[RowStatus, ...] = ("waiting", "ok", "no-overlap", "missing", "error")


@dataclass(frozen=True)
class JobRecord:
    """A job as stored in the database; times are UTC.

    Attributes:
        number: its key in the database.
        inputs: rows before this position are cut; rows from it on are combined results.
        changes: counter of changes of the job.
    """

    number: int
    id: str
    owner: str
    name: str
    phase: Phase
    options: dict[str, Any]
    parameters: list[tuple[str, str]]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime
    rows: int
    inputs: int
    counts: dict[RowStatus, int]
    bytes: int
    predicted: dict[str, Any] | None
    work_s: float
    bytes_moved: int
    requests: int
    failure: str | None
    notes: list[str]
    changes: int


class RowRecord(NamedTuple):
    """A row of a job: a tuple, because there are 100,000, and each is changed once.

    Attributes:
        number: position in the user's list, from 0.
        position: position in the order of work, rows of one object together.
        result: number of the combined result that the row belongs to.
        name: file name, without suffix.
        hdu: number, name, or `NAME,VERSION`.
        box: x0, y0, width, height; `None` if not known yet or not possible.
        planes: for cubes, first and last on NAXIS3, then on the following axes; axes not listed are
            complete.
        sky: requested right ascension, declination and size, degrees (ICRS).
        version: version of the object it was cut from.
    """

    number: int
    position: int
    result: int | None
    id: str
    name: str
    source: str
    hdu: str | None
    box: tuple[int, int, int, int] | None
    planes: tuple[int, ...] | None
    sky: tuple[float, float, float] | None
    status: RowStatus = "waiting"
    reason: str = ""
    bytes: int = 0
    version: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Chunk:
    """Rows of a job leased to a runner: positions `first` to `last`, last included.

    `deaths` is the number of runners that died while they had them.
    """

    job: JobRecord
    first: int
    last: int
    runner: str
    deaths: int = 0


@dataclass(frozen=True)
class ChunkResult:
    """Result of a chunk, so far.

    Attributes:
        rows: finished rows, with their new state.
        seconds: seconds of work.
        bytes_moved: bytes read from stores, in `requests` requests.
        complete: whether all rows are finished; otherwise the chunk is returned.
        failure: why the whole job cannot continue.
        from_peers: bytes from other workers instead of a store, and requests to them.
        from_cache: bytes from the worker's own cache, and the number of pieces.
    """

    rows: Sequence[RowRecord]
    seconds: float = 0.0
    bytes_moved: int = 0
    requests: int = 0
    notes: Sequence[str] = ()
    complete: bool = True
    failure: str | None = None
    from_peers: tuple[int, int] = (0, 0)
    from_cache: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class PastJob:
    """Durations of a finished job.

    Attributes:
        rows: rows with a result.
        work_s: seconds of work.
        engine_s: predicted seconds of reading and cutting.
    """

    operation: str
    format: str
    rows: int
    work_s: float
    engine_s: float


@dataclass(frozen=True)
class UserUsage:
    """Usage of a user.

    Attributes:
        jobs: jobs that have not ended.
        rows: their waiting rows.
        bytes: size of the results of all jobs.
        deleted_bytes: size of the results of deleted jobs that are not removed yet.
    """

    jobs: int
    rows: int
    bytes: int
    deleted_bytes: int


class DeletedJob(NamedTuple):
    """A deleted job, and whether its results are removed."""

    id: str
    deleted_at: datetime
    removed: bool


class RemovalBacklog(NamedTuple):
    """Deleted jobs of all users whose results are not removed yet, and the size of these."""

    jobs: int
    bytes: int
