"""Jobs as programs use them: submit, look, change, fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from swathe.jobs.values import Job, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Self

    from swathe.catalog import Catalog
    from swathe.catalog.work import Phase, RowStatus
    from swathe.jobs.values import ArchiveKind, Estimate, Limits, Options, Result

# Within the class `list` is a method.
JobList: TypeAlias = list[Job]
RowList: TypeAlias = list[Row]


def _anything(file: str) -> None:
    """Allow every file."""


class Jobs:
    """The jobs of a database; may be shared by threads, and is one per process.

    Every method raises `CatalogError` where the database cannot be used.
    """

    def __init__(
        self,
        catalog: Catalog,
        results: Path,
        *,
        limits: Limits,
        allowed: Callable[[str], None] = _anything,
    ) -> None:
        """Take the database, and the folder for results.

        `allowed` raises `AccessError` for a `file` of a target that users may not read.

        Raises:
            OutputError: where the folder cannot be made.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Wake who waits. The database is left open."""
        raise NotImplementedError

    def estimate(self, table: Any, options: Options, owner: str) -> Estimate:
        """Say what a job would be and cost, without reading a pixel.

        Args:
            table: targets, as `submit` takes them.
            options: what to make of them.
            owner: name of the user.

        Raises:
            TargetsError: where the list cannot be read or lacks columns.
            JobError: where options do not go with it.
            LimitError: where there are too many.
            NoSuchDatasetError: where there is no such dataset.
        """
        raise NotImplementedError

    def submit(
        self,
        table: Any,
        options: Options,
        owner: str,
        *,
        name: str = "",
        start: bool = True,
        parameters: Sequence[tuple[str, str]] = (),
        expires_at: datetime | None = None,
    ) -> Job:
        """Keep a job, to be run in its turn.

        Args:
            table: targets in memory: a table or a mapping of columns. A column `file`, or `ra`,
                `dec`, `size_deg` without it, which is taken of every image that covers the place;
                else as for `cut_many`. Optionally `dataset` and `band`, of places in the sky;
                `planes`, as 3:7; of stacks, `group`.
            options: what to make of them.
            owner: name of the user.
            name: what the user calls it.
            start: whether it may begin; else `start` does that.
            parameters: what the client sent, kept as it is.
            expires_at: when it is to be deleted; brought within what the limits allow.

        Raises:
            TargetsError, JobError, NoSuchDatasetError: as `estimate`.
            LimitError: where the user has, or asks for, more than is allowed.
        """
        raise NotImplementedError

    def job(self, job_id: str) -> Job:
        """Give a job.

        Raises:
            NoSuchJobError: where there is none, as for all methods that take an id.
        """
        raise NotImplementedError

    def list(
        self,
        owner: str | None = None,
        *,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> JobList:
        """Give jobs, the newest first: of a user, in some phases, made after a time, the last n."""
        raise NotImplementedError

    def rows(
        self, job_id: str, *, start: int = 0, limit: int = 1000, status: RowStatus | None = None
    ) -> RowList:
        """Give rows in the user's order, from number `start`, those of one status or all."""
        raise NotImplementedError

    def start(self, job_id: str) -> Job:
        """Let a pending job run; of one that runs or has ended this is no error.

        Raises:
            LimitError: where the user has too many jobs.
        """
        raise NotImplementedError

    def cancel(self, job_id: str) -> Job:
        """Stop a job within a second; what is done stays. One that has ended stays as it is."""
        raise NotImplementedError

    def resume(self, job_id: str) -> Job:
        """Let failed rows of a job that has ended, and those not done, be worked on again.

        Raises:
            JobError: where it has not ended.
        """
        raise NotImplementedError

    def delete(self, job_id: str) -> None:
        """Stop a job and remove all of it, with its results."""
        raise NotImplementedError

    def set_expiry(self, job_id: str, when: datetime) -> Job:
        """Set when a job is deleted, brought within what the limits allow."""
        raise NotImplementedError

    def set_name(self, job_id: str, name: str) -> Job:
        """Set what the user calls a job."""
        raise NotImplementedError

    def result(self, job_id: str, name: str) -> Result:
        """Give a file that a job made, by the `name` of its row.

        Raises:
            NoSuchResultError: where there is none, or not yet.
        """
        raise NotImplementedError

    def archive(self, job_id: str, kind: ArchiveKind) -> Iterator[bytes]:
        """Give all results as one archive, in the user's order, made as it is read.

        Of a job that runs it follows the work to its end. The manifest is the last member of zip
        and tar.

        Raises:
            JobError: where the job is pending, or its results are no FITS files and kind is `fits`.
        """
        raise NotImplementedError

    def manifest(self, job_id: str) -> Iterator[bytes]:
        """Give what became of every row as ECSV, with the columns of cut_many's manifest."""
        raise NotImplementedError

    def wait(self, job_id: str, phase: Phase, timeout_s: float) -> Job:
        """Give the job as soon as its phase is another one than `phase`, or after a time."""
        raise NotImplementedError

    def changed(self, job_id: str, seen: int, timeout_s: float) -> int:
        """Give a number that counts up with every change, once it is not `seen`, or after a time.

        It says nothing else; 0 was never seen by anyone.
        """
        raise NotImplementedError
