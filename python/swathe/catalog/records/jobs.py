"""What the catalogue keeps of jobs, as plain values."""

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
    """A job as the database has it; times are UTC.

    Attributes:
        number: its key in the database.
        inputs: rows before this position are cut; those from it on are made of them.
        changes: counts up with every change of the job.
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
    busy_s: float
    bytes_moved: int
    requests: int
    failure: str | None
    notes: list[str]
    changes: int


class RowRecord(NamedTuple):
    """A row of a job: a tuple, for there are 100,000, and each is changed once.

    Attributes:
        number: its place in the user's list, from 0.
        position: its place in the order of work, those of one object together.
        result: number of the row it goes into, where results are made of several.
        name: of its file, without suffix.
        hdu: number, name, or `NAME,VERSION`.
        box: x0, y0, width, height; `None` where that is not known yet, or cannot be.
        planes: of cubes, first and last on NAXIS3, then on the axes behind it; all on others.
        sky: right ascension, declination and size asked for, degrees (ICRS).
        version: of the object it was cut from.
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
    """Rows of a job that a runner has taken: positions `first` to `last`, last included.

    `deaths` are the runners that died while they had them.
    """

    job: JobRecord
    first: int
    last: int
    runner: str
    deaths: int = 0


@dataclass(frozen=True)
class ChunkResult:
    """What became of a chunk, so far.

    Attributes:
        rows: those that are done, as they are now.
        seconds: of work.
        bytes_moved: that were read from stores, with so many `requests`.
        complete: whether all rows are; else it is given back.
        failure: why the job as a whole cannot go on.
        from_peers: bytes that other workers gave instead of a store, and requests to them.
        from_cache: bytes that the worker had, and in how many pieces.
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
    """What a job that was done took.

    Attributes:
        rows: those that gave something.
        busy_s: seconds of work.
        engine_s: those that were predicted for reading and cutting.
    """

    operation: str
    format: str
    rows: int
    busy_s: float
    engine_s: float


@dataclass(frozen=True)
class UserUsage:
    """What a user has: jobs that have not ended, rows waiting in them, bytes of all results."""

    jobs: int
    rows: int
    bytes: int
