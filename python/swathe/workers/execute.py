"""Execution of a batch, here or on another machine.

Results are written to a local folder and moved to the result store whole. Re-running a batch is
idempotent. A worker still running the old attempt fails and its result is ignored.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from swathe import _swathe, trace
from swathe.catalog.database_errors import may_pass
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import (
    CatalogError,
    LimitError,
    OutputError,
    SandboxUnavailableError,
    SwatheError,
)
from swathe.core.row_record import fault_of
from swathe.core.row_table import CODES, DIGEST_BYTES, DictColumn, RowTable
from swathe.costs.engine_job import to_engine_job
from swathe.costs.format_costs import SOURCE
from swathe.cutting.cut_run import POLL_S
from swathe.files.conversion import FileDigest, count_pixels, digest_of, read_cutout
from swathe.files.file import sky_of
from swathe.files.targets.target_list import place_in_sky
from swathe.jobs.archives import input_of, places_of
from swathe.jobs.types import Options
from swathe.operations.array_results import ArrayResults, are_npy_of_arrays, is_of_array
from swathe.operations.combination import align_cutout, without_images
from swathe.operations.grid import enlarge_boxes
from swathe.operations.operation import Interruption
from swathe.stores.registry import with_store_names
from swathe.stores.results import ResultStore, move
from swathe.stores.staging.on_disk import note_on_disk
from swathe.workers.algorithm_groups import OUTPUTS, GroupRunner, fetch_granules
from swathe.workers.array_rows import describe_files
from swathe.workers.batch import add_pairs
from swathe.workers.granule_rows import another_version, read_granules
from swathe.workers.input_files import PART
from swathe.workers.result_rows import check_size, end_row, grid_of

if TYPE_CHECKING:
    from swathe.algorithms.group_run import BoxSettings
    from swathe.catalog.records.algorithms import GroupRunRecord
    from swathe.core.row_record import RowRecord, RowStatus
    from swathe.operations.operation import ReducingOperation
    from swathe.workers.batch import Batch

PUT_BYTES = 256 << 20
"""Result bytes after which results are moved to the result store, or at the end of a chunk."""
MOST_TOGETHER = 1000
"""Rows per request to the engine: each request costs as much as some rows."""
ASIDE = ".chunk-"
"""Prefix of the folder, within the job's local folder, in which a batch makes its results."""


def run_batch(
    batch: Batch,
    place: ResultStore,
    threads: int,
    should_stop: Callable[[], bool],
    box: BoxSettings | None = None,
) -> ChunkResult:
    """Execute the rows of a batch, until stopped.

    Args:
        batch: batch to execute.
        place: result store of the job.
        threads: threads of the engine.
        should_stop: function that returns whether to stop; called several times a second.
        box: sandbox for programs of users; `None`: they are refused.

    An error that stops the whole batch is returned as the reason why the job fails, never raised.
    """
    with (
        trace.scope(job=batch.job),
        trace.event("BATCH", first=batch.first, rows=len(batch.rows)) as event,
    ):
        note_on_disk(batch.on_disk)
        result = _run(batch, place, threads, should_stop, box)
        if _swathe.trace_is_on():
            event.add(bytes=int(RowTable.of(result.rows).bytes.sum()))
        if result.failure is not None:
            event.add(result="error", reason=result.failure)
        elif not result.complete:
            event.add(result="cancelled")
    return result


def ran_program(folder: Path, first: int) -> bool:
    """Check whether a batch that was killed was waiting for a program of a user.

    The program is confined, so it was not what killed the process. What it writes comes to the
    folder of its outputs when it has ended.

    Args:
        folder: local folder of the job.
        first: position of the first row of the batch.
    """
    with suppress(FileNotFoundError):  # another portal has begun the batch again
        return any(not os.listdir(each) for each in folder.glob(f"{ASIDE}{first}-*/{OUTPUTS}*"))
    return False


def _run(
    batch: Batch,
    place: ResultStore,
    threads: int,
    should_stop: Callable[[], bool],
    box: BoxSettings | None,
) -> ChunkResult:
    start_s = time.perf_counter()
    try:
        return _BatchRun(batch, place, threads, should_stop, box).run()
    except (CatalogError, OutputError) as error:
        if isinstance(error, CatalogError) and may_pass(error):
            # The stores could not be looked up: retried later.
            return ChunkResult([], time.perf_counter() - start_s, complete=False)
        failure = str(error)
    except Exception as error:  # a bug must not stop other jobs
        failure = f"internal: {type(error).__name__}: {error}"
    except BaseException as error:  # would end the thread, as a panic of the engine does
        reason = f"internal: {type(error).__name__}: {error}"
        return ChunkResult(
            batch.rows.end("error", with_store_names(reason)), time.perf_counter() - start_s
        )
    return ChunkResult([], time.perf_counter() - start_s, complete=False, failure=failure)


TRAFFIC = ("bytes_moved", "requests", "from_peers", "from_cache")
"""What a batch has read, by origin."""


@dataclass
class _BatchRun:
    """One batch, executed by `run`."""

    batch: Batch
    place: ResultStore
    threads: int
    should_stop: Callable[[], bool]
    box: BoxSettings | None
    runs: list[GroupRunRecord] = field(default_factory=list, init=False)
    parts: list[RowTable] = field(default_factory=list, init=False)
    single: list[RowRecord] = field(default_factory=list, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    bytes_moved: int = field(default=0, init=False)
    requests: int = field(default=0, init=False)
    from_peers: tuple[int, int] = field(default=(0, 0), init=False)
    from_cache: tuple[int, int] = field(default=(0, 0), init=False)
    scratch_bytes: int = field(default=0, init=False)
    ready_parts: list[tuple[RowTable, list[str]]] = field(default_factory=list, init=False)
    finished_bytes: int = field(default=0, init=False)
    failure: str | None = field(default=None, init=False)
    versions: dict[int, str] = field(default_factory=dict, init=False)

    @property
    def options(self) -> Options:
        """Options of the job."""
        return self.batch.options

    @cached_property
    def folder(self) -> Path:
        """Folder of the job's results until they are in the result store."""
        return self.place.scratch(self.batch.job)

    @cached_property
    def aside(self) -> Path:
        """Folder of this batch's results, not shared with other workers on the same rows."""
        return self.folder / f"{ASIDE}{self.batch.first}-{token_hex(4)}"

    @cached_property
    def _aside(self) -> str:
        return str(self.aside)

    def run(self) -> ChunkResult:
        """Execute the rows.

        Raises:
            OutputError: If no results can be written.
            CatalogError: If the stores cannot be looked up.
        """
        rows = self.batch.rows
        start_s = time.perf_counter()
        try:
            self._take_over()
            self.aside.mkdir(parents=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: {error}") from error
        try:
            if self.batch.makes:
                self._make(rows)
            else:
                self._cut(rows)
            self._put()
            taken_over = not self.aside.exists()
        except CatalogError:
            raise  # also an OSError, and not an error of the folder
        except OSError as error:
            taken_over = not self.aside.exists()
            if not taken_over:
                raise OutputError(f"{self.folder}: {error}") from error
        finally:
            shutil.rmtree(self.aside, ignore_errors=True)
        if taken_over:
            # Written by another worker with the same rows; one of the two results is ignored.
            return ChunkResult([], time.perf_counter() - start_s, complete=False)
        finished_rows = self.finished_rows()
        return ChunkResult(
            finished_rows,
            time.perf_counter() - start_s,
            self.bytes_moved,
            self.requests,
            self.notes,
            complete=len(finished_rows) == len(rows),
            failure=self.failure,
            from_peers=self.from_peers,
            from_cache=self.from_cache,
            scratch_bytes=self.scratch_bytes,
            runs=self._finished_runs(finished_rows),
        )

    def _finished_runs(self, rows: RowTable) -> list[GroupRunRecord]:
        """Return the runs of algorithms whose rows are finished."""
        numbers = set(rows.number.tolist()) if self.runs else set()
        return [run for run in self.runs if run.row in numbers]

    def finished_rows(self) -> RowTable:
        """Return the finished rows."""
        return RowTable.concatenate([*self.parts, RowTable.of(self.single)])

    def _take_over(self) -> None:
        """Remove leftovers of the same batch from workers that are dead or believed dead."""
        begins = f"{ASIDE}{self.batch.first}-"
        # A glob pattern would be compiled for each batch.
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for leftover in [each.path for each in entries if each.name.startswith(begins)]:
                # Renamed first: a worker that is alive sees at once that its folder is gone.
                trash = f"{leftover}-{token_hex(4)}"
                with suppress(FileNotFoundError):
                    os.rename(leftover, trash)
                shutil.rmtree(trash, ignore_errors=True)

    def _ends(self) -> bool:
        """Check whether to stop."""
        return self.failure is not None or self.should_stop()

    def _cut(self, rows: RowTable) -> None:
        self.options.results.kind.by_targets(
            lambda: self._cut_regions(rows),
            lambda operation: self._read_granules(rows, operation),
            lambda: self._fetch_granules(rows),
        )

    def _cut_regions(self, rows: RowTable) -> None:
        """Cut regions of images and arrays."""
        rows = self._describe(self._place_rows(rows))
        if len(rows) and not self._ends():
            self._cut_batch(rows)

    def _read_granules(self, rows: RowTable, operation: ReducingOperation) -> None:
        """Read granules, whose pixels wait for the combined result."""
        granules = read_granules(rows, operation, self.batch, self.aside, self._count, self._ends)
        for row, pixels in granules:
            self.single.append(row if pixels is None else self._keep_input(row, pixels))

    def _fetch_granules(self, rows: RowTable) -> None:
        """Make granules local, which an algorithm reads then."""
        for row, file, read_bytes in fetch_granules(rows, self.aside, self._ends):
            self.bytes_moved += read_bytes
            self.requests += -(-read_bytes // PART)
            self.single.append(row if file is None else self._keep_input(row, file))

    def _describe(self, rows: RowTable) -> RowTable:
        """Return rows whose arrays are known here; rows of files that are rejected are finished."""
        faults = describe_files(rows, self._ends)
        if not faults:
            return rows
        wrong = np.isin(np.arange(len(rows)), list(faults))
        self._end(rows.take(wrong), list(faults.values()))
        return rows.take(~wrong)

    def _place_rows(self, rows: RowTable) -> RowTable:
        """Return rows with their boxes; rows outside their image are finished with a reason."""
        if rows.has_box.all():
            return rows
        unplaceable = rows.take(~rows.has_box & ~rows.in_sky)
        self.parts.append(
            unplaceable.end("error", "expected a box or a sky position, found neither")
        )
        parts = [rows.take(rows.has_box)]
        later = rows.take(~rows.has_box & rows.in_sky)
        # One image at a time, so that it can be stopped.
        images = later.source.codes.astype(np.int64) * len(later.hdu.values) + later.hdu.codes
        for image in np.unique(images).tolist():
            if self._ends():
                break
            parts.append(self._placed_on_image(later.take(images == image)))
        return RowTable.concatenate(parts)

    def _placed_on_image(self, rows: RowTable) -> RowTable:
        rows = place_in_sky(rows, sky_of)
        if self.options.is_combined:
            rows.box = enlarge_boxes(rows.box)
        failed_rows = rows.take(~rows.sound)
        self.parts.append(
            failed_rows.end(failed_rows.status, failed_rows.reason.map(with_store_names))
        )
        return rows.take(rows.sound)

    def _end(self, rows: RowTable, faults: Sequence[tuple[str, str]]) -> None:
        """Record why rows cannot be cut."""
        if len(rows):
            status = np.array([CODES[cast("RowStatus", status)] for status, _ in faults], np.uint8)
            reason = DictColumn.of([with_store_names(reason) for _, reason in faults])
            self.parts.append(rows.end(status, reason))

    def _cut_batch(self, rows: RowTable) -> None:
        job = to_engine_job(
            rows,
            [f"{number}.fits" for number in rows.number.tolist()],
            output=str(self.aside),
            mode="trim" if self.options.is_combined else self.options.mode,
            fill=None if self.options.is_combined else self.options.fill,
            threads=self.threads,
            most_bytes=self.batch.cutout_bytes,
        )
        batch = job.start()
        is_final = self._is_plain or (
            not self.options.is_combined and are_npy_of_arrays(self.options.format, rows)
        )
        enough = MOST_TOGETHER if is_final else 1
        try:
            while (news := batch.gather(enough, POLL_S)) is not None:
                if self._ends():
                    batch.cancel()
                else:
                    self._take(rows, is_final, *news)
        except BaseException:
            batch.cancel()
            raise
        finally:
            cost = batch.finish()
        self._count(cost)
        self.notes += cost["notes"]

    @property
    def _is_plain(self) -> bool:
        """Check whether the engine writes all kinds of results in their final form."""
        return self.options.results.is_plain

    def _count(self, cost: Mapping[str, Any]) -> None:
        """Add the bytes read, by origin."""
        self.bytes_moved += cost["bytes_moved"]
        self.requests += cost["requests"]
        self.from_peers = add_pairs(self.from_peers, cost["from_peers"])
        self.from_cache = add_pairs(self.from_cache, cost["from_cache"])

    def _take(
        self,
        rows: RowTable,
        is_final: bool,
        targets: bytes,
        size: bytes,
        sha256: bytes,
        versions: list[str],
        version: bytes,
        failed: Sequence[tuple[int, str, str]],
        _moves: Sequence[tuple[int, int]],
    ) -> None:
        """Record the engine's results for some rows; a batch has no replicas to move to.

        If they are not `is_final`, they become results of the requested format.
        """
        if not targets:
            return
        cut = rows.take(np.frombuffer(targets, np.int64)).end(
            "ok",
            size=np.frombuffer(size, np.int64),
            version=DictColumn(versions, np.frombuffer(version, np.int32)),
            sha256=np.frombuffer(sha256, np.uint8).reshape(-1, DIGEST_BYTES),
        )
        if failed:
            wrong = np.zeros(len(cut), bool)
            wrong[[row for row, _, _ in failed]] = True
            faults = {at: (status, reason) for at, status, reason in failed}
            for at in self._make_apart(cut, list(faults)):
                del faults[at]
            left = sorted(faults)
            self._end(cut.take(left), [faults[at] for at in left])
            cut = cut.take(~wrong)
        if is_final:
            # As text: path objects would take as long as the rest.
            self._keep(cut, [f"{self._aside}/{number}.fits" for number in cut.number.tolist()])
            return
        for row in cut:
            if self._ends():
                return  # resampling takes time
            with suppress(Interruption):
                self._convert(row)

    def _make_apart(self, rows: RowTable, failed: Sequence[int]) -> list[int]:
        """Make the results of arrays that the engine does not read; return which these are."""
        numbers: list[int] = []
        for at in failed:
            row = rows[at]
            if self._is_plain or row.result is not None or not is_of_array(row):
                continue
            try:
                why = self._arrays.why_apart(row)
                if why is None:
                    continue
                row = row._replace(version=self._arrays.version(row), reason=why)
                self._convert_array(row, None)
            except Interruption:
                pass  # it is no error: it is made when the job goes on
            except SwatheError as error:
                self.single.append(end_row(row, *fault_of(error)))
            numbers.append(at)
        return numbers

    @cached_property
    def _arrays(self) -> ArrayResults:
        """Maker of results of arrays."""
        options = self.options
        return ArrayResults(
            options.results.convert_array,
            self._ends,
            options.mode,
            options.fill,
            self.batch.cutout_bytes,
        )

    def _convert_array(self, row: RowRecord, cut: Path | None) -> None:
        """Write the result of an array, from the elements that the engine cut if it did.

        Raises:
            SwatheError: If the format cannot hold it, or it cannot be read.
        """
        if self.options.results.file_format.memory_per_pixel:
            self._check_size(self._arrays.elements(row))
        [place] = places_of(RowTable.of([row]), self.options)
        # The elements are in NUMBER.fits, which is removed.
        path = self.aside / f"{row.number}.made{Path(place).suffix}"
        content = self._arrays.content(row, cut, row.version, path)
        path.write_bytes(content)
        self._keep_new(row, path, digest_of(content))

    def _convert(self, row: RowRecord) -> None:
        """Convert the cutout of a row into the requested result."""
        cut = self.aside / f"{row.number}.fits"
        if row.result is not None:
            self.single.append(self._align(row, cut))
            return
        results = self.options.results
        path = self.aside / f"{row.number}{results.suffix}"
        if is_of_array(row):
            try:
                self._convert_array(row, cut)
            except SwatheError as error:
                self.single.append(end_row(row, *fault_of(error)))
            finally:
                cut.unlink(missing_ok=True)
            return
        if self.options.format == SOURCE:
            self._keep_new(row, cut, FileDigest.of(cut))
            return
        try:
            if results.file_format.memory_per_pixel:
                self._check_size(count_pixels(cut))
            content = results.convert(read_cutout(cut), path, self._ends)
        except SwatheError as error:
            self.single.append(end_row(row, "error", str(error)))
            return
        finally:
            cut.unlink()
        path.write_bytes(content)
        self._keep_new(row, path, digest_of(content))

    def _check_size(self, pixels: int) -> None:
        """Check that a result of this many pixels fits into four times the largest cutout."""
        check_size(pixels, self.options.results.file_format, self.batch.cutout_bytes)

    def _align(self, row: RowRecord, cut: Path) -> RowRecord:
        """Resample the cutout of a row onto the grid of its combined result."""
        assert row.result is not None and row.sky is not None
        grid = grid_of(self.batch.results[row.result])
        new = self.aside / f"{row.number}.npy"
        status, reason = align_cutout(cut, grid, row.sky, new, self._check_size)
        if status != "ok":
            return end_row(row, status, reason)
        return self._keep_input(row._replace(bytes=0, sha256=""), new)

    def _keep_input(self, row: RowRecord, new: Path) -> RowRecord:
        """Keep the pixels of a row for its combined result; their size counts in the quota.

        Return the row: an error if it is made local again, and has another version than before.
        """
        version = self.versions.get(row.number, "")
        if version not in ("", row.version):
            new.unlink()
            text = another_version(version, row.version)
            return end_row(row, "error", f"{text}; submit a new job")
        # Of a link, its own: what it leads to is elsewhere.
        self.scratch_bytes += new.lstat().st_size
        move(str(new), str(input_of(self.folder, row.number)), str(self.folder))
        return row

    def _make(self, rows: RowTable) -> None:
        """Make combined results from their input rows."""
        self.options.results.kind.by_targets(
            lambda: self._combine(rows),
            lambda _operation: self._combine(rows),
            lambda: self._run_algorithm(rows),
        )

    def _run_algorithm(self, rows: RowTable) -> None:
        """Run an algorithm on the groups of granules of the rows."""
        if not len(rows):
            return
        try:
            runner = GroupRunner(self.batch, self.box, self.folder, self.aside, self._ends)
        except SandboxUnavailableError as error:
            self.failure = f"programs of users are refused: {error}"
            return
        except LimitError:
            return  # stopped: the rows wait
        except CatalogError:
            raise
        except SwatheError as error:  # of a file that all groups read
            self.single += [end_row(row, *fault_of(error)) for row in rows]
            return
        with closing(runner):
            for row in rows:
                if self._ends() or not self._run_group(runner, row):
                    return

    def _run_group(self, runner: GroupRunner, row: RowRecord) -> bool:
        """Run an algorithm on a group; return false if it was stopped."""
        inputs = self.batch.inputs[row.number]
        try:
            problem = self._restore_inputs(inputs.take(inputs.has("ok")), row)
            if problem is not None:
                self.single.append(end_row(row, "error", problem))
                return True
            result, new, run = runner.run(row, inputs)
        except SandboxUnavailableError as error:
            self.failure = f"programs of users are refused: {error}"
            return False
        except LimitError:
            return False
        self.runs += [] if run is None else [run]
        if new is None:
            self.single.append(result)
        else:
            self._keep_new(result, new, FileDigest.of(new))
        return True

    def _combine(self, rows: RowTable) -> None:
        """Make results from the pixels of their input rows."""
        for row in rows:
            if self._ends():
                return
            inputs = self.batch.inputs[row.number]
            images = inputs.take(inputs.has("ok"))
            grid = grid_of(row)
            if not len(images) or (grid is None and self.options.results.kind.needs_grid):
                self.single.append(end_row(row, *without_images(inputs)))
                continue
            try:
                failure_text = self._restore_inputs(images, row)
            except LimitError:
                return  # stopped: the rows wait
            if failure_text is not None:
                self.single.append(end_row(row, "error", failure_text))
                continue
            results = self.options.results
            new = self.aside / f"{row.number}{results.suffix}"
            pixels = [input_of(self.folder, number) for number in images.number.tolist()]
            try:
                combine = results.grouping.combine
                if not combine(new, grid, images, pixels, results.own, self._ends):
                    return
            except SwatheError as error:
                self.single.append(end_row(row, "error", str(error)))
                continue
            self._keep_new(row, new, FileDigest.of(new))

    def _restore_inputs(self, rows: RowTable, into: RowRecord) -> str | None:
        """Cut again the inputs that no longer exist; return the reason if that fails.

        The local folder may have been emptied, or belong to another machine.

        Raises:
            LimitError: If it was stopped.
        """
        numbers = rows.number.tolist()
        missing = rows.take([not input_of(self.folder, number).exists() for number in numbers])
        if not len(missing):
            return None
        again = replace(self, batch=replace(self.batch, results={into.number: into}))
        again.aside = self.aside
        again.versions = {row.number: row.version for row in missing}
        again._cut(missing)
        self._count({name: getattr(again, name) for name in TRAFFIC})
        finished_rows = again.finished_rows()
        failed = next((row for row in finished_rows if row.status != "ok"), None)
        if failed is not None:
            return (
                f"{failed.id}: its pixels no longer exist and cannot be cut again: {failed.reason}"
            )
        if len(finished_rows) < len(missing):
            raise LimitError("stopped")
        return None

    def _keep_new(self, row: RowRecord, new: Path, digest: FileDigest) -> None:
        row = row._replace(status="ok", **digest._asdict())
        self._keep(RowTable.of([row]), [str(new)])

    def _keep(self, rows: RowTable, new: list[str]) -> None:
        """Queue results for the result store."""
        self.ready_parts.append((rows, new))
        self.finished_bytes += int(rows.bytes.sum())
        if self.finished_bytes >= PUT_BYTES:
            self._put()

    def _put(self) -> None:
        """Move results to the result store: a row is finished when its result is there."""
        results, self.ready_parts, self.finished_bytes = self.ready_parts, [], 0
        rows = RowTable.concatenate([part for part, _ in results])
        new = list(chain.from_iterable(paths for _, paths in results))
        # The engine may have returned many at once.
        piece = (np.cumsum(rows.bytes) - rows.bytes) // PUT_BYTES
        first = 0
        for end in [*(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(rows)]:
            if self.failure is None:
                self._put_piece(rows[first:end], new[first:end])
            first = end

    def _put_piece(self, rows: RowTable, new: Sequence[str]) -> None:
        files = list(zip(new, places_of(rows, self.options), strict=True))
        indexes: list[int] = []
        try:
            # Results before an error are stored.
            indexes.extend(self.place.put(self.batch.job, files, self.should_stop))
        except OutputError as error:
            self.failure = str(error)
        self.parts.append(rows if len(indexes) == len(rows) else rows.take(indexes))
