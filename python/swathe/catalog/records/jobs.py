"""Records of jobs as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.core.row_record import RowRecord, RowStatus

Phase = Literal["PENDING", "QUEUED", "EXECUTING", "COMPLETED", "ERROR", "ABORTED"]
ChunkState = Literal["free", "taken"]

AT_WORK: tuple[Phase, ...] = ("QUEUED", "EXECUTING")
ACTIVE: tuple[Phase, ...] = ("PENDING", *AT_WORK)
END_PHASES: tuple[Phase, ...] = ("COMPLETED", "ERROR", "ABORTED")
TO_RETRY: tuple[RowStatus, ...] = ("error", "missing")
"""Statuses of rows that a resume of the job tries again."""


def count_finished_rows(counts: Mapping[RowStatus, int]) -> int:
    """Return the number of rows that are not waiting, of the numbers by status."""
    return sum(number for status, number in counts.items() if status != "waiting")


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
        work_s: seconds of work.
        bytes_moved: bytes read from stores, in `requests` requests.
        complete: whether all rows are finished; otherwise the chunk is returned.
        failure: why the whole job cannot continue.
        from_peers: bytes from other workers instead of a store, and requests to them.
        from_cache: bytes from the worker's own cache, and the number of pieces.
    """

    rows: Sequence[RowRecord]
    work_s: float = 0.0
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
