"""Records of jobs as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.catalog.records.algorithms import GroupRunRecord
    from swathe.core.row_record import RowRecord, RowStatus

Phase = Literal["PENDING", "QUEUED", "STAGING", "EXECUTING", "COMPLETED", "ERROR", "ABORTED"]
"""`STAGING`: all rows that are left wait for objects on tape."""
ChunkState = Literal["free", "taken", "staging"]
"""`staging`: for rows that wait for objects on tape; nobody may lease them."""

AT_WORK: tuple[Phase, ...] = ("QUEUED", "EXECUTING")
UNDER_WAY: tuple[Phase, ...] = (*AT_WORK, "STAGING")
ACTIVE: tuple[Phase, ...] = ("PENDING", *UNDER_WAY)
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
        scratch_bytes: size of the pixels that wait for combined results.
        staging: progress of staging by store; `None` if no object is in a store whose objects are
            staged. See `swathe.jobs.staging`.
        groups: number of groups of granules per status, of a job of an algorithm; else `None`.
        group_bytes: bytes that the outputs of one group may take.
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
    scratch_bytes: int = 0
    staging: dict[str, Any] | None = None
    groups: dict[RowStatus, int] | None = None
    group_bytes: int = 0


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
        scratch_bytes: size of the pixels that were written for combined results.
        runs: runs of algorithms on its groups, of rows that are finished.
        is_on_tape: whether the rows that are left wait until their objects have come from tape.
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
    scratch_bytes: int = 0
    is_on_tape: bool = False
    runs: Sequence[GroupRunRecord] = ()


@dataclass(frozen=True)
class PastJob:
    """Durations of a finished job.

    Attributes:
        rows: rows with a result.
        work_s: seconds of work.
        engine_s: predicted seconds of reading and cutting, or of running programs.
        elapsed_s: seconds from its start to its end.
    """

    operation: str
    format: str
    rows: int
    work_s: float
    engine_s: float
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class Share:
    """Share of a user.

    Attributes:
        slots: programs at work at the same time; 0: as many as all users together.
        result_bytes: size of all results, with what waits in scratch folders.
        priority: the share of turns, 1 to 10, relative to that of others.
    """

    slots: int = 0
    result_bytes: int = 20 << 30
    priority: int = 5


@dataclass(frozen=True)
class UserUsage:
    """Usage of a user.

    Attributes:
        owner: name of the user.
        jobs: jobs that have not ended.
        rows: their waiting rows.
        bytes: size of the results of all jobs, with the pixels that wait for combined ones, and of
            the datasets that jobs fill.
        deleted_bytes: the same of deleted jobs, as far as it is not removed yet.
        slots: programs at work: leased, and not given back.
        reserved_bytes: what their outputs may take.
    """

    owner: str
    jobs: int
    rows: int
    bytes: int
    deleted_bytes: int
    slots: int = 0
    reserved_bytes: int = 0

    @property
    def stored_bytes(self) -> int:
        """Return the size of all results that take disk now."""
        return self.bytes + self.deleted_bytes


class DeletedJob(NamedTuple):
    """A deleted job, and whether its results are removed."""

    id: str
    deleted_at: datetime
    removed: bool


class RemovalBacklog(NamedTuple):
    """Deleted jobs of all users whose results are not removed yet, and the size of these."""

    jobs: int
    bytes: int


class CallbackUrls(NamedTuple):
    """URLs that hear of a job: when it has succeeded, when it begins to run, when it has failed."""

    success: str
    in_progress: str | None = None
    failure: str | None = None


class DueCallback(NamedTuple):
    """A callback that is due: number and id of the job, its URLs, and the tries that failed."""

    number: int
    job: str
    urls: CallbackUrls
    tries: int
