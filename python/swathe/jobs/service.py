"""Jobs as programs use them: submit, look, change, fetch."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from swathe.catalog.jobs.row_table import RowTable
from swathe.catalog.records.jobs import ACTIVE, JobRecord
from swathe.core.errors import JobError, NoSuchJobError, NoSuchResultError, SwatheError
from swathe.jobs import archives as made
from swathe.jobs.estimate import PAST, as_kept, bytes_out, predicted
from swathe.jobs.expand_targets import TOLD, Work, certain_bytes, expand
from swathe.jobs.new_rows import kept_rows
from swathe.jobs.quota import Allowance
from swathe.jobs.types import Estimate, Job, Options, Result, Row
from swathe.jobs.views import job_view, row_view
from swathe.operations.formats import SUFFIXES
from swathe.stores.results import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import Phase, RowStatus
    from swathe.costs.prediction import Prediction
    from swathe.jobs.types import ArchiveKind, Limits
    from swathe.stores.results import ResultStore

PAGE_ROWS = 5_000
"""Rows of the user's list that are read at once: they may be in as many blocks of the database."""
PAGE_GROWTH = 10
"""How much longer the next page is, where the first was short."""
LOOK_S = 0.5
"""What other processes do to a job is seen after this time."""
FOLLOW_S = 10.0
GRACE_S = 600.0
"""For so long after a job was deleted somebody may still put results of it in their place."""

# Within the class `list` is a method.
JobList: TypeAlias = list[Job]
RowList: TypeAlias = list[Row]


def _anything(file: str) -> None:
    """Allow every file."""


def _never() -> bool:
    """Do not stop."""
    return False


def _new_id() -> str:
    """Give an id that a command does not take for an option."""
    while (made := secrets.token_urlsafe(16)).startswith("-"):
        pass
    return made


class Jobs:
    """The jobs of a database; may be shared by threads, and is one per process.

    Every method raises `CatalogError` where the database cannot be used.
    """

    def __init__(
        self,
        catalog: Catalog,
        results: Path | ResultStore,
        *,
        limits: Limits,
        allowed: Callable[[str], None] = _anything,
    ) -> None:
        """Take the database, and the folder or other place for results.

        The database is to be that of `default_url()`, where the engine looks for stores.
        `allowed` raises `AccessError` for a `file` of a target that users may not read.

        Raises:
            OutputError: where nothing can be written to the folder.
        """
        self.catalog = catalog
        self.limits = limits
        self._allowance = Allowance(limits)
        self.place = Folder(results) if isinstance(results, Path) else results
        self._allowed = allowed
        self._news = threading.Condition()
        self._told = 0
        self._closed = False
        self._removed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Wake who waits. The database is left open."""
        self._closed = True
        self.wake()

    def estimate(self, table: Any, options: Options) -> Estimate:
        """Say what a job would be and cost, without reading a pixel.

        Args:
            table: targets, as `submit` takes them.
            options: what to make of them.

        Raises:
            TargetsError: where the list cannot be read or lacks columns.
            JobError: where options do not go with it.
            LimitError: where there are too many.
            NoSuchDatasetError: where there is no such dataset.
        """
        work = self._expanded(table, options)
        todo = work.todo()
        return Estimate(
            targets=work.targets,
            rows=len(work.read) + len(work.results()),
            unmatched=work.unmatched,
            prediction=self._predicted(work, options),
            faults=[
                (work.read.ids[row], work.read.faults[row][1])
                for row in sorted(work.read.faults)[:TOLD]
            ],
            matches=work.matches,
            bytes_out=bytes_out(work, options) if todo else 0,
        )

    def submit(
        self,
        table: Any,
        options: Options,
        owner: str,
        *,
        name: str = "",
        start: bool = True,
        parameters: Sequence[tuple[str, str]] = (),
        faults: Mapping[int, tuple[RowStatus, str]] = {},
        expires_at: datetime | None = None,
    ) -> Job:
        """Keep a job, to be run in its turn.

        Args:
            table: targets in memory: a table or a mapping of columns. A column `file`, or `ra`,
                `dec`, `size_deg` without it, which is taken of every image that covers the place;
                else as for `cut_many`. Optionally `dataset` and `band`, of places in the sky;
                `planes`, as 3:7, or 3:7,0:1 on NAXIS3 and NAXIS4; of stacks, `group`.
            options: what to make of them.
            owner: name of the user.
            name: what the user calls it.
            start: whether it may begin; else `start` does that.
            parameters: what the client sent, kept as it is.
            faults: status and reason of rows that cannot be cut, whatever the table says of them.
            expires_at: when it is to be deleted; brought within what the limits allow.

        Raises:
            TargetsError, JobError, NoSuchDatasetError: as `estimate`.
            LimitError: where the user has, or asks for, more than is allowed.
        """
        # Before the work of reading the list.
        self._allowance.check(self.catalog.held(owner))
        work = self._expanded(table, options)
        work.read.faults.update(faults)
        self._allowance.check_room(self.catalog.held(owner), certain_bytes(work, options))
        prediction = as_kept(self._predicted(work, options))
        now = datetime.now(UTC)
        rows = kept_rows(work)
        counts = rows.counts()
        job = JobRecord(
            number=0,
            id=_new_id(),
            owner=owner,
            name=name,
            phase="PENDING",
            options=options.as_dict(),
            parameters=list(parameters),
            created_at=now,
            started_at=None,
            ended_at=None,
            expires_at=self._allowance.expiry(now, expires_at),
            rows=len(rows),
            inputs=len(work.read),
            counts=counts,
            bytes=0,
            predicted=prediction,
            busy_s=0.0,
            bytes_moved=0,
            requests=0,
            failure=None,
            notes=[],
            changes=1,
        )
        waiting = counts["waiting"]
        kept = self.catalog.add_job(job, rows, lambda held: self._allowance.check(held, waiting))
        return self.start(kept.id) if start else job_view(kept)

    def job(self, job_id: str) -> Job:
        """Give a job.

        Raises:
            NoSuchJobError: where there is none, as for all methods that take an id.
        """
        return job_view(self.catalog.job(job_id))

    def list(
        self,
        owner: str | None = None,
        *,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> JobList:
        """Give jobs, the newest first: of a user, in some phases, made after a time, the last n."""
        return [job_view(kept) for kept in self.catalog.jobs(owner, phases, after, last)]

    def rows(
        self, job_id: str, *, start: int = 0, limit: int = 1000, status: RowStatus | None = None
    ) -> RowList:
        """Give rows in the user's order, from number `start`, those of one status or all."""
        job = self.catalog.job(job_id)
        options = Options.checked(job.options)
        kept = self.catalog.job_rows(job.number, start=start, limit=limit, status=status)
        return [row_view(row, options) for row in kept]

    def start(self, job_id: str) -> Job:
        """Let a pending job run; of one that runs or has ended this is no error.

        Raises:
            LimitError: where the user has too many jobs.
        """
        return self._changed_job(self.catalog.start_job(job_id, self._allowance.check_again))

    def cancel(self, job_id: str) -> Job:
        """Stop a job within a second; what is done stays. One that has ended stays as it is."""
        return self._changed_job(self.catalog.cancel_job(job_id))

    def resume(self, job_id: str) -> Job:
        """Let failed rows of a job that has ended, and those not done, be worked on again.

        Raises:
            JobError: where it has not ended.
        """
        return self._changed_job(self.catalog.resume_job(job_id, self._allowance.check))

    def delete(self, job_id: str) -> None:
        """Stop a job and remove all of it, with its results."""
        self.catalog.delete_job(job_id)
        self.wake()
        self.remove_if_gone(job_id)

    def set_expiry(self, job_id: str, when: datetime) -> Job:
        """Set when a job is deleted, brought within what the limits allow."""
        until = self._allowance.expiry(self.catalog.job(job_id).created_at, when)
        return self._changed_job(self.catalog.change_job(job_id, expires_at=until))

    def set_name(self, job_id: str, name: str) -> Job:
        """Set what the user calls a job."""
        return self._changed_job(self.catalog.change_job(job_id, name=name))

    def result(self, job_id: str, name: str) -> Result:
        """Give a file that a job made, by the `name` of its row.

        Raises:
            NoSuchResultError: where there is none, or not yet.
            SourceError, AccessError: where it cannot be looked for.
        """
        job = self.catalog.job(job_id)
        options = Options.checked(job.options)
        stem = name.removesuffix(SUFFIXES[options.format])
        row = self.catalog.row_named(job.number, stem)
        if row is None or made.file_name(row, options) != name:
            raise NoSuchResultError(f"job {job_id}: it has no result {name[:100]!r}")
        return made.result_of(self.place, job_id, row, options)

    def archive(
        self, job_id: str, kind: ArchiveKind, stopped: Callable[[], bool] = _never
    ) -> Iterator[bytes]:
        """Give all results as one archive, in the user's order, made as it is read.

        Of a job that runs it follows the work to its end, or until stopped. The manifest is
        the last member of zip and tar.

        Raises:
            JobError: where the job is pending, or its results are no FITS files and kind is `fits`.
        """
        job = self.catalog.job(job_id)
        options = Options.checked(job.options)
        if job.phase == "PENDING":
            raise JobError(f"job {job_id}: it was not started")
        if kind == "fits" and options.format != "fits":
            raise JobError(f"job {job_id}: its results are {options.format}, not fits")
        pages = self._done_rows(job_id, stopped)
        return made.archive(kind, pages, self.place, job_id, options, lambda: self.manifest(job_id))

    def manifest(self, job_id: str) -> Iterator[bytes]:
        """Give what became of every row as ECSV, with the columns of cut_many's manifest."""
        job = self.catalog.job(job_id)
        return made.manifest(job, self._pages(job.number))

    def wait(
        self, job_id: str, phase: Phase, timeout_s: float, stopped: Callable[[], bool] = _never
    ) -> Job:
        """Give the job as soon as its phase is another one than `phase`, or after a time.

        Soon after it is stopped, too.
        """
        self._until(job_id, timeout_s, lambda now, _changes: now != phase or stopped())
        return self.job(job_id)

    def changed(
        self, job_id: str, seen: int, timeout_s: float, stopped: Callable[[], bool] = _never
    ) -> int:
        """Give a number that counts up with every change, once it is not `seen`, or after a time.

        It says nothing else; 0 was never seen by anyone. It is given soon after it is stopped, too.
        """
        return self._until(job_id, timeout_s, lambda _phase, changes: changes != seen or stopped())

    # ---- For the runner

    def folder(self, job_id: str) -> Path:
        """Give the local folder where results of a job are made."""
        return self.place.scratch(job_id)

    def is_executing(self, job_id: str) -> bool:
        """Tell whether a job is still to be worked on."""
        try:
            return self.catalog.job_state(job_id)[0] == "EXECUTING"
        except NoSuchJobError:
            return False

    def wake(self) -> None:
        """Tell whoever waits that something changed."""
        with self._news:
            self._told += 1
            self._news.notify_all()

    def pause(self, timeout_s: float) -> None:
        """Wait for something to change."""
        with self._news:
            self._news.wait(timeout_s)

    def end_if_too_much(self, job: JobRecord) -> JobRecord:
        """End a job whose user has more results than are allowed; it can be resumed with fewer."""
        too_much = self._allowance.too_much
        if job.phase in ACTIVE and too_much(self.catalog.held(job.owner)) is not None:
            with suppress(NoSuchJobError):  # deleted by its user, just now
                # Who has deleted others and resumed it meanwhile has less.
                return self.catalog.fail_job(job.id, too_much)
        return job

    def note(self, job_id: str, text: str) -> None:
        """Add to what the user is told."""
        self.catalog.note_job(job_id, text)

    def remove_if_gone(self, job_id: str) -> None:
        """Put away the results of a job that was deleted; `tidy` removes them, which takes longer.

        Raises:
            OutputError: where they cannot be moved.
        """
        try:
            self.catalog.job_state(job_id)
        except NoSuchJobError:
            self.place.put_away(job_id)

    def remove_inputs(self, job: JobRecord) -> None:
        """Remove what went into results, unless some of it may be tried again."""
        if job.counts["error"] == job.counts["missing"] == job.counts["waiting"] == 0:
            self.place.leave(job.id)

    def tidy(self, stopped: Callable[[], bool] = _never) -> None:
        """Delete jobs whose time has come, and remove results of all that were deleted.

        What cannot be removed stops nothing else, and is tried again the next time.

        Raises:
            OutputError, SourceError, AccessError: where some cannot be removed.
        """
        for job_id in self.catalog.expired_jobs():
            try:
                self.delete(job_id)
            except NoSuchJobError:
                continue  # by its user, just now
        fault: SwatheError | None = None
        for job_id, deleted_at in self.catalog.deleted_jobs():
            is_over = datetime.now(UTC) - deleted_at > timedelta(seconds=GRACE_S)
            if job_id in self._removed and not is_over:
                continue
            try:
                if stopped() or not self.place.remove(job_id, stopped):
                    return
            except SwatheError as error:
                fault = fault or error
                continue
            self._removed.add(job_id)
            if is_over:
                self.catalog.forget_deleted(job_id)
                self._removed.discard(job_id)
        if fault is not None:
            raise fault

    # ---- Within

    def _expanded(self, table: Any, options: Options) -> Work:
        options.check()
        limits = self.limits
        return expand(
            table,
            options,
            self.catalog,
            self._allowed,
            limits.rows_per_job,
            limits.cutout_bytes,
        )

    def _predicted(self, work: Work, options: Options) -> Prediction | None:
        return predicted(work, options, self.catalog.past_jobs(PAST))

    def _changed_job(self, kept: JobRecord) -> Job:
        self.wake()
        return job_view(kept)

    def _until(self, job_id: str, timeout_s: float, is_so: Callable[[Phase, int], bool]) -> int:
        """Wait until something is so of a job, or for a time; gives how often it has changed."""
        limit = time.monotonic() + timeout_s
        while True:
            with self._news:
                told = self._told
            phase, changes = self.catalog.job_state(job_id)
            left = limit - time.monotonic()
            if is_so(phase, changes) or left <= 0 or self._closed:
                return changes
            with self._news:
                if self._told == told:
                    self._news.wait(min(left, LOOK_S))

    def _pages(self, job: int, start: int = 0, limit: int = PAGE_ROWS) -> Iterator[RowTable]:
        while rows := self.catalog.job_rows(job, start=start, limit=limit):
            yield rows
            start += len(rows)
            limit = min(PAGE_GROWTH * limit, PAGE_ROWS)

    def _done_rows(self, job_id: str, stopped: Callable[[], bool] = _never) -> Iterator[RowTable]:
        """Give the rows in the user's order, as soon as they are done; all, once the job ended.

        Raises:
            NoSuchJobError: where the job is deleted meanwhile.
        """
        next_row = 0
        while True:
            job = self.catalog.job(job_id)
            # Mostly the next one still waits, and each change of the job leads here.
            limit = 1 if job.phase in ACTIVE else PAGE_ROWS
            for rows in self._pages(job.number, next_row, limit):
                done = len(rows)
                if job.phase in ACTIVE and (waiting := rows.has("waiting")).any():
                    done = int(waiting.argmax())
                yield rows[:done]
                next_row += done
                if done < len(rows):
                    break
            if next_row >= job.rows:
                return
            self.changed(job_id, job.changes, FOLLOW_S, stopped)
            if self._closed or stopped():
                raise JobError(f"job {job_id}: its results cannot be followed to their end now")
