"""The job service for programs: submit, query, change and fetch jobs."""

from __future__ import annotations

import secrets
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from swathe.catalog.records.jobs import ACTIVE, JobRecord
from swathe.core.errors import (
    JobError,
    LimitError,
    NoSuchJobError,
    NoSuchResultError,
    SwatheError,
)
from swathe.core.host import cores
from swathe.core.row_table import RowTable
from swathe.jobs import archives
from swathe.jobs.algorithm_estimate import output_bytes, predict_groups, reading_notes
from swathe.jobs.algorithm_rows import first_group
from swathe.jobs.changes import JobChanges
from swathe.jobs.estimate import PAST, bytes_out, predict_rows, to_stored_prediction
from swathe.jobs.expand_targets import expand
from swathe.jobs.expanded_job import LONGEST_LIST, ExpandedJob, certain_bytes
from swathe.jobs.group_archives import output_of
from swathe.jobs.new_rows import to_row_table
from swathe.jobs.output_datasets import OutputDatasets
from swathe.jobs.quota import SOON_S, Quota
from swathe.jobs.staging_progress import new_progress
from swathe.jobs.times_left import TimesLeft
from swathe.jobs.types import Estimate, Job, Options, Result, Row
from swathe.jobs.views import job_view, row_view
from swathe.operations.operation import ProgramOperation
from swathe.stores.results import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from swathe.catalog import Catalog
    from swathe.catalog.records.algorithms import GroupRunRecord, GroupTiming
    from swathe.catalog.records.datasets import OutputDataset
    from swathe.catalog.records.jobs import CallbackUrls, Phase
    from swathe.catalog.records.subscriptions import Firing
    from swathe.core.row_record import Fault, RowStatus
    from swathe.costs.prediction import Prediction
    from swathe.jobs.algorithm_rows import AlgorithmWork
    from swathe.jobs.types import ArchiveKind, Limits
    from swathe.stores.results import ResultStore

PAGE_ROWS = 5_000
"""Rows of the user's list read at once: they may be in as many blocks of the database."""
PAGE_GROWTH = 10
"""Growth factor of the next page if the first was short."""
FOLLOW_S = 10.0
GRACE_S = 600.0
"""Seconds after deletion of a job during which a worker may still write results of it."""

# Inside the class `list` is a method.
JobList: TypeAlias = list[Job]
RowList: TypeAlias = list[Row]


def _anything(file: str) -> None:
    """Allow every file."""


def _nothing() -> None:
    """Run programs of users."""


def _never() -> bool:
    """Do not stop."""
    return False


def new_id() -> str:
    """Return an id that a command line does not mistake for an option."""
    while (text := secrets.token_urlsafe(16)).startswith("-"):
        pass
    return text


class Jobs:
    """The jobs of a database. One instance per process; safe to share between threads.

    Every method raises `CatalogError` if the database cannot be used.
    """

    def __init__(
        self,
        catalog: Catalog,
        results: Path | ResultStore,
        *,
        limits: Limits,
        check_source: Callable[[str], None] = _anything,
        check_programs: Callable[[], None] = _nothing,
        datasets: str | None = None,
        program_lanes: int | None = None,
    ) -> None:
        """Take the database, and the folder or bucket for results.

        The database must be that of `default_url()`, where the engine looks up stores.
        `check_source` raises `AccessError` for a target's `file` that users may not read,
        `check_programs` a `SandboxUnavailableError` if programs of users are not run. `datasets` is
        `STORE:prefix`, the folder for datasets of outputs. `program_lanes` programs run at the same
        time; by default as many as there are cores.

        Raises:
            OutputError: If the folder is not writable.
        """
        self.catalog = catalog
        self.limits = limits
        self._allowance = Quota(limits)
        self.place = Folder(results) if isinstance(results, Path) else results
        self.outputs = OutputDatasets(catalog, self.place, datasets)
        self._check_source, self._check_programs = check_source, check_programs
        self._program_lanes = program_lanes or cores()
        self._changes = JobChanges(catalog)
        self._times_left = TimesLeft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Wake all waiting threads. The database stays open."""
        self._changes.close()

    def estimate(self, table: Any, options: Options, owner: str = "") -> Estimate:
        """Estimate a job's rows and cost, without reading a pixel.

        Args:
            table: targets, as `submit` takes them.
            options: options of the job.
            owner: user of a job whose outputs are added to a dataset.

        Raises:
            TargetsError: If the list cannot be read or lacks columns.
            JobError: If the options do not fit the list, or outputs cannot be added to a dataset.
            DatasetError: If the name of the dataset that the outputs are added to is taken.
            LimitError: If there are too many rows.
            NoSuchDatasetError: If there is no such dataset.
        """
        work = self._expand(table, options)
        options = work.options(options)
        rows, faults = work.rows.to_predict(), islice(work.faults.items(), LONGEST_LIST)
        if work.algorithm is not None:
            if (dataset := self._dataset_of(work, options, owner, is_new=True)) is not None:
                self.catalog.check_output_dataset(dataset)
            return self._estimate_algorithm(work, work.algorithm)
        return Estimate(
            targets=work.targets,
            rows=len(work.rows) + len(work.results),
            unmatched=work.unmatched,
            prediction=self._prediction_of(work, options),
            faults=[(work.rows.id[row], reason) for row, (_, reason) in faults],
            matches=work.matches,
            bytes_out=bytes_out(rows, options, work.tape.faults),
            staging=work.tape.notes(),
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
        faults: Mapping[int, Fault] = {},
        expires_at: datetime | None = None,
        firing: Firing | None = None,
        only_first: bool = False,
        callbacks: CallbackUrls | None = None,
    ) -> Job:
        """Store a job; it runs in its turn.

        Args:
            table: targets in memory: a table or a mapping of columns. It has a column `file`, as
                for `cut_many`, or `ra`, `dec`, `size_deg` without it: then every image that covers
                the position is cut. Optional columns: `dataset` and `band` for sky positions;
                `planes`, as 3:7, or 3:7,0:1 on NAXIS3 and NAXIS4; `group` for stacks and `rgb`;
                `band` for `rgb` of listed files; `array` and columns named like axes, as in
                `cut_many`: with format `fits` their results have the format of their file.
            options: options of the job.
            owner: name of the user.
            name: name of the job, chosen by the user.
            start: whether the job may run at once; otherwise `start` releases it.
            parameters: parameters as the client sent them, stored unchanged.
            faults: status and reason of rows that are not to be cut; they override the table.
            expires_at: time of deletion; adjusted to the limits.
            firing: groups of a subscription that it runs; recorded with it, or not at all.
            only_first: whether an algorithm runs on the first group only, to try it; its outputs
                are added to no dataset.
            callbacks: URLs that hear of the job; recorded with it.

        Raises:
            TargetsError, JobError, NoSuchDatasetError: As for `estimate`.
            LimitError: If the user's jobs or this job exceed a limit, or if too much of deleted
                jobs is not removed yet.
            SandboxUnavailableError: If programs of users are not run here; says why.
            SubscriptionError: If the groups run already, or the subscription was stopped.
            DatasetError: If the name of the dataset that the outputs are added to is taken.
        """
        # Checked before the list is read.
        if lag := self.removal_lag():
            raise LimitError(f"{lag}: try again later", SOON_S)
        self._allowance.check(self.catalog.usage_of(owner))
        if isinstance(options.results.kind, ProgramOperation):
            self._check_programs()
        work = self._expand(table, options)
        options = work.options(options)
        if only_first and work.algorithm is not None:
            work.rows = first_group(work.rows, work.algorithm)
            options = replace(options, own={**options.own, "register_as": ""})
        dataset = self._dataset_of(work, options, owner, is_new=firing is None)
        work.rows = work.rows.with_status(faults)
        self._allowance.check_room(self.catalog.usage_of(owner), certain_bytes(work, options))
        prediction = self._prediction_of(work, options)
        now = datetime.now(UTC)
        rows, staged_objects, staged_rows = to_row_table(work)
        counts = rows.counts()
        job = JobRecord(
            number=0,
            id=new_id(),
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
            inputs=len(work.rows),
            counts=counts,
            bytes=0,
            predicted=to_stored_prediction(prediction),
            work_s=0.0,
            bytes_moved=0,
            requests=0,
            failure=None,
            notes=[],
            changes=1,
            staging=new_progress(staged_objects),
        )
        if work.algorithm is not None:
            job = replace(
                job,
                groups=rows.take(rows.position >= job.inputs).counts(),
                group_bytes=work.algorithm.algorithm.resources.output,
            )
        waiting = counts["waiting"]
        record = self.catalog.add_job(
            job,
            rows,
            lambda usage: self._allowance.check(usage, waiting),
            staged_rows,
            firing,
            dataset,
            callbacks,
        )
        return self.start(record.id) if start else self._view(record)

    def job(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            NoSuchJobError: If there is no such job; the same for all methods that take an id.
        """
        return self._view(self.catalog.job(job_id))

    def list(
        self,
        owner: str | None = None,
        *,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> JobList:
        """Return jobs, newest first; filter by user, phases and start time, or take the last n."""
        return [self._view(record) for record in self.catalog.jobs(owner, phases, after, last)]

    def rows(
        self, job_id: str, *, start: int = 0, limit: int = 1000, status: RowStatus | None = None
    ) -> RowList:
        """Return rows in the user's order, from number `start`, with one status or all."""
        job = self.catalog.job(job_id)
        options = Options.from_catalog(job.options)
        table = self.catalog.job_rows(job.number, start=start, limit=limit, status=status)
        return [row_view(row, options) for row in table]

    def start(self, job_id: str) -> Job:
        """Release a pending job. For a job that runs or has ended this is not an error.

        Raises:
            LimitError: If the user has too many jobs.
        """
        return self._changed_job(self.catalog.start_job(job_id, self._allowance.check_again))

    def cancel(self, job_id: str) -> Job:
        """Stop a job within a second; finished rows stay. A job that has ended is unchanged."""
        return self._changed_job(self.catalog.cancel_job(job_id))

    def resume(self, job_id: str) -> Job:
        """Retry the failed and unfinished rows of a job that has ended.

        Raises:
            JobError: If it has not ended.
        """
        return self._changed_job(self.catalog.resume_job(job_id, self._allowance.check))

    def delete(self, job_id: str) -> None:
        """Stop a job and delete it with its results."""
        self.catalog.delete_job(job_id)
        self._changes.note_deletion()
        self.place.begin_removal(job_id)

    def set_expiry(self, job_id: str, when: datetime) -> Job:
        """Set when a job is deleted, adjusted to the limits."""
        until = self._allowance.expiry(self.catalog.job(job_id).created_at, when)
        return self._changed_job(self.catalog.change_job(job_id, expires_at=until))

    def set_name(self, job_id: str, name: str) -> Job:
        """Set the user's name of a job."""
        return self._changed_job(self.catalog.change_job(job_id, name=name))

    def result(self, job_id: str, name: str) -> Result:
        """Return a result file of a job, by the `name` of its row.

        Raises:
            NoSuchResultError: If there is none, or not yet.
            SourceError, AccessError: If the result store cannot be read.
        """
        job = self.catalog.job(job_id)
        options = Options.from_catalog(job.options)
        stem = name.removesuffix(options.results.suffix)
        row = self.catalog.row_by_name(job.number, stem)
        if row is None or archives.file_name(row, options) != name:
            raise NoSuchResultError(f"job {job_id}: it has no result {name[:100]!r}")
        return archives.result_of(self.place, job_id, row, options)

    def output(self, job_id: str, group: str, name: str) -> Result:
        """Return an output of a group of a job of an algorithm.

        Args:
            job_id: id of the job.
            group: name of the result of the group, without `.zip`.
            name: name of the output, with or without its suffix.

        Raises:
            NoSuchResultError: If there is none, or not yet.
            SourceError, AccessError: If the result store cannot be read.
        """
        options = Options.from_catalog(self.catalog.job(job_id).options)
        if not isinstance(options.results.kind, ProgramOperation):
            raise NoSuchResultError(f"job {job_id}: its results have no outputs")
        return output_of(self.result(job_id, f"{group}{options.results.suffix}"), name)

    def group_run(self, job_id: str, group: str) -> GroupRunRecord:
        """Return the latest run of an algorithm on a group, with its log.

        Raises:
            NoSuchResultError: If the job has no such group, or its program did not start; says why.
        """
        job = self.catalog.job(job_id)
        options = Options.from_catalog(job.options)
        if isinstance(options.results.kind, ProgramOperation):
            for row in chain.from_iterable(self._pages(job.number, job.inputs)):
                if row.id == group:
                    try:
                        return self.catalog.group_run(job.number, row.number)
                    except NoSuchResultError:
                        why = row.reason or f"it waits, the job is {job.phase}"
                        raise NoSuchResultError(
                            f"group {group[:100]}: its program did not start: {why}"
                        ) from None
        raise NoSuchResultError(f"job {job_id}: it has no group {group[:100]!r}")

    def archive(
        self, job_id: str, kind: ArchiveKind, should_stop: Callable[[], bool] = _never
    ) -> Iterator[bytes]:
        """Return all results as one archive, in the user's order, made as it is read.

        For a running job the archive follows the work to its end, or until stopped. The manifest is
        the last member of zip and tar.

        Raises:
            JobError: If the job is pending, or its results are not FITS files and kind is `fits`.
        """
        job = self.catalog.job(job_id)
        options = Options.from_catalog(job.options)
        if job.phase == "PENDING":
            raise JobError(f"job {job_id}: it was not started")
        if kind == "fits" and options.results.suffix != ".fits":
            raise JobError(f"job {job_id}: its results are {options.format}, not fits")
        pages = self._done_rows(job_id, should_stop)
        return archives.archive(
            kind, pages, self.place, job_id, options, lambda: self.manifest(job_id)
        )

    def manifest(self, job_id: str) -> Iterator[bytes]:
        """Return the status of every row as ECSV, with the columns of cut_many's manifest."""
        job = self.catalog.job(job_id)
        return archives.manifest(job, self._pages(job.number))

    def wait(
        self, job_id: str, phase: Phase, timeout_s: float, should_stop: Callable[[], bool] = _never
    ) -> Job:
        """Return the job when its phase differs from `phase`, or after `timeout_s`.

        It also returns soon after `should_stop` says so.
        """
        self._changes.await_state(
            job_id, timeout_s, lambda now, _changes: now != phase or should_stop()
        )
        return self.job(job_id)

    def wait_for_change(
        self,
        job_id: str,
        last_change: int,
        timeout_s: float,
        should_stop: Callable[[], bool] = _never,
    ) -> int:
        """Return the job's change counter when it differs from `last_change`, or after `timeout_s`.

        The counter has no other meaning; 0 is never a value of it. The method also returns soon
        after `should_stop` says so.
        """
        return self._changes.await_state(
            job_id, timeout_s, lambda _phase, changes: changes != last_change or should_stop()
        )

    # ---- For the runner

    def folder(self, job_id: str) -> Path:
        """Return the local folder in which results of a job are made."""
        return self.place.scratch(job_id)

    def is_executing(self, job_id: str) -> bool:
        """Check whether a job is still to be worked on."""
        try:
            return self.catalog.job_state(job_id)[0] == "EXECUTING"
        except NoSuchJobError:
            return False

    def wake(self) -> None:
        """Wake all waiting threads: something changed."""
        self._changes.wake()

    def pause(self, timeout_s: float) -> None:
        """Wait for something to change."""
        self._changes.pause(timeout_s)

    def note_progress(self, job: JobRecord) -> None:
        """Take the progress of a job, for its time left."""
        self._times_left.of(job)

    def end_if_too_much(self, job: JobRecord) -> JobRecord:
        """End a job if its user's results exceed the limit; it can be resumed later."""
        too_much = self._allowance.too_much
        if job.phase in ACTIVE and too_much(self.catalog.usage_of(job.owner)) is not None:
            with suppress(NoSuchJobError):  # deleted by its user meanwhile
                # The user may have deleted results and resumed it meanwhile.
                return self.catalog.fail_job(job.id, too_much)
        return job

    def note(self, job_id: str, text: str) -> None:
        """Add a warning to a job, shown to its user."""
        self.catalog.note_job(job_id, text)

    def remove_orphan(self, job_id: str) -> None:
        """Move the results of a deleted job aside; `tidy` removes them, which takes longer.

        Raises:
            OutputError: If they cannot be moved.
        """
        try:
            self.catalog.job_state(job_id)
        except NoSuchJobError:
            self.catalog.record_deletion(job_id)
            self.place.begin_removal(job_id)

    def remove_inputs(self, job: JobRecord) -> None:
        """Remove the inputs of combined results, unless some may be retried."""
        if job.counts["error"] == job.counts["missing"] == job.counts["waiting"] == 0:
            self.place.clear_scratch(job.id)
            if job.scratch_bytes:
                with suppress(NoSuchJobError):  # deleted by its user meanwhile
                    self.catalog.note_empty_scratch(job.id)

    def tidy(self, should_stop: Callable[[], bool] = _never) -> None:
        """Delete expired jobs, and remove the results of all deleted jobs.

        A result that cannot be removed does not stop the others, and is retried the next time.

        Raises:
            OutputError, SourceError, AccessError: If some results cannot be removed.
        """
        for job_id in self.catalog.expired_jobs():
            try:
                self.delete(job_id)
            except NoSuchJobError:
                continue  # deleted by its user meanwhile
        fault: SwatheError | None = None
        over = datetime.now(UTC) - timedelta(seconds=GRACE_S)
        for job in self.catalog.deleted_jobs(over):
            try:
                if should_stop() or not self.place.remove(job.id, should_stop):
                    return
            except SwatheError as error:
                fault = fault or error
                continue
            if job.deleted_at < over:
                self.catalog.forget_deletion(job.id)
            else:
                self.catalog.record_removal(job.id)
        if fault is not None:
            raise fault

    def await_deletion(self, timeout_s: float, should_stop: Callable[[], bool]) -> None:
        """Wait until a job is deleted here, or for a time, or until stopped."""
        self._changes.await_deletion(timeout_s, should_stop)

    def check_result_room(self, owner: str) -> None:
        """Check that a user may store more results.

        Raises:
            LimitError: If those that are stored exceed the limit, or too many wait for removal.
        """
        if lag := self.removal_lag():
            raise LimitError(f"{lag}: try again later", SOON_S)
        self._allowance.check_room(self.catalog.usage_of(owner), 0)

    def removal_lag(self) -> str:
        """Return why no job may run: too many results of deleted jobs remain. Else empty."""
        return self._allowance.removal_lag(self.catalog.removal_backlog())

    # ---- Private

    def _expand(self, table: Any, options: Options) -> ExpandedJob:
        limits = self.limits
        return expand(
            table,
            options,
            self.catalog,
            self._check_source,
            limits.rows_per_job,
            limits.cutout_bytes,
        )

    def _dataset_of(
        self, work: ExpandedJob, options: Options, owner: str, *, is_new: bool
    ) -> OutputDataset | None:
        """Return the dataset that outputs are added to; `None` if there is none."""
        if work.algorithm is None or not (name := options.own["register_as"]):
            return None
        return self.outputs.of(work.algorithm.algorithm, name, owner, is_new=is_new)

    def _estimate_algorithm(self, work: ExpandedJob, algorithm: AlgorithmWork) -> Estimate:
        """Estimate a job of an algorithm; its faults are those of granules and groups."""
        timings = self.catalog.group_timings(algorithm.algorithm.label)
        rows, group = work.rows, work.rows.group
        counts = Counter() if group is None else Counter(group.list())
        of_groups = set(algorithm.faults.values())
        of_granules = [(rows.id[row], reason) for row, (_, reason) in work.faults.items()]
        faults = [*algorithm.faults.items()]
        faults += [each for each in of_granules if each[1] not in of_groups]
        return Estimate(
            targets=work.targets,
            rows=len(rows) + len(work.results),
            unmatched=0,
            prediction=self._prediction_of_groups(algorithm, rows, timings),
            faults=faults[:LONGEST_LIST],
            matches=list(counts.items())[:LONGEST_LIST],
            bytes_out=output_bytes(timings, len(counts) - len(algorithm.faults)),
            staging=work.tape.notes(),
            groups=len(counts),
            runs=len(timings),
            read_bytes=algorithm.read_bytes,
            reading=reading_notes(self.catalog, algorithm),
        )

    def _prediction_of(self, work: ExpandedJob, options: Options) -> Prediction | None:
        if (algorithm := work.algorithm) is not None:
            timings = self.catalog.group_timings(algorithm.algorithm.label)
            return self._prediction_of_groups(algorithm, work.rows, timings)
        past_jobs = self.catalog.past_jobs(PAST)
        return predict_rows(work.on_disk, len(work.results), options, past_jobs, work.reads)

    def _prediction_of_groups(
        self, algorithm: AlgorithmWork, rows: RowTable, timings: Sequence[GroupTiming]
    ) -> Prediction | None:
        return predict_groups(
            self.catalog,
            algorithm,
            rows.take(rows.sound),
            timings,
            self._program_lanes,
            self.catalog.past_jobs(PAST),
        )

    def _changed_job(self, record: JobRecord) -> Job:
        self.wake()
        return self._view(record)

    def _view(self, record: JobRecord) -> Job:
        return job_view(record, self._times_left.of(record))

    def _pages(self, job: int, start: int = 0, limit: int = PAGE_ROWS) -> Iterator[RowTable]:
        while rows := self.catalog.job_rows(job, start=start, limit=limit):
            yield rows
            start += len(rows)
            limit = min(PAGE_GROWTH * limit, PAGE_ROWS)

    def _done_rows(
        self, job_id: str, should_stop: Callable[[], bool] = _never
    ) -> Iterator[RowTable]:
        """Yield rows in the user's order as they finish; all of them once the job has ended.

        Raises:
            NoSuchJobError: If the job is deleted meanwhile.
        """
        next_row = 0
        while True:
            job = self.catalog.job(job_id)
            # Usually the next row still waits, and each change of the job leads here.
            limit = 1 if job.phase in ACTIVE else PAGE_ROWS
            for rows in self._pages(job.number, next_row, limit):
                count = len(rows)
                if job.phase in ACTIVE and (waiting := rows.has("waiting")).any():
                    count = int(waiting.argmax())
                yield rows[:count]
                next_row += count
                if count < len(rows):
                    break
            if next_row >= job.rows:
                return
            self.wait_for_change(job_id, job.changes, FOLLOW_S, should_stop)
            if self._changes.is_closed or should_stop():
                raise JobError(
                    f"job {job_id}: the archive could not be completed: the portal is shutting down"
                )
