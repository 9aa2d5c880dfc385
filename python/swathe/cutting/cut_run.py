"""A run of `cut_many`: the engine cuts, results are made, and the manifest is written."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe, trace
from swathe.core.format import (
    count_text,
    forecast_text,
    harmless_text,
    seconds_text,
    size_text,
    time_left_text,
)
from swathe.core.outputs import publish
from swathe.core.progress import progress_bar
from swathe.costs.recorded_outcome import CallOutcome
from swathe.cutting.piece_rows import DoneRows, PieceFiles
from swathe.files.manifest import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from swathe.core.progress import ShowCount
    from swathe.core.row_table import RowTable
    from swathe.costs.array_work import ArrayWork, Making
    from swathe.costs.prediction import Prediction
    from swathe.costs.replica_stores import ReplicaStores
    from swathe.costs.time_left import CutProgress
    from swathe.cutting.output_paths import CutWork, OutputPaths
    from swathe.files.manifest_columns import Manifest
    from swathe.files.manifest_file import ManifestFile
    from swathe.operations.make_results import Maker


log = logging.getLogger(__name__)
PREDICTION_TEXT = "%s: predicted %s%s for %s: %s"
"""The message that tells a prediction."""
POLL_S = 0.1
MOST_TOGETHER = 1000
"""Rows per request to the engine, if it writes the results in their final form."""
MOST_INSPECTIONS = 16
"""Number of objects per store that a prediction inspects; the rest are assumed alike."""
REPORT_S = 1.0
"""Interval at which the progress is reported to a function of the user."""
CHECKPOINT_S = 10.0
"""Interval at which the manifest is written during a run, in case the process is killed."""


@dataclass
class CutRun:
    """A run: the pieces of a list are cut one after another into one output.

    Attributes:
        output_paths: output of the run.
        settings: mode, fill, planes and threads.
        manifest_file: manifest of the pieces that have ended.
        progress: whether to show a bar, or what receives the progress.
        start_s: time when the run was started.
        output: the open output, once the first piece is cut.
        call: its prediction, and its outcome.
    """

    output_paths: OutputPaths
    settings: dict[str, Any]
    manifest_file: ManifestFile
    progress: bool | Callable[[CutProgress], object]
    start_s: float
    output: _swathe.Output | None = None
    call: CallOutcome = field(default_factory=CallOutcome)
    _count_end_s: float = field(default=0.0, init=False)
    _job: str = field(default_factory=lambda: token_hex(4), init=False)

    def cut(
        self,
        work: CutWork,
        manifest: Manifest,
        results: list[int],
        todo: list[int],
        end: int | None,
        replicas: ReplicaStores | None = None,
        *,
        is_only: bool,
    ) -> None:
        """Cut a piece or a part of it; enter its rows into the manifest however it ends.

        Args:
            work: targets and results of the piece.
            manifest: manifest of the piece.
            results: rows of the results to make.
            todo: targets to cut.
            end: length in bytes up to which an archive is kept; `None` for a new run.
            replicas: stores that have copies of the objects.
            is_only: whether all of the list is cut now.
        """
        from swathe.arrays.indexing import running_formats
        from swathe.costs.array_work import ArrayWork
        from swathe.costs.engine_job import to_engine_job
        from swathe.costs.predict_list import (
            known_call_costs,
            known_write_costs,
            learn_making,
            predict_job,
        )
        from swathe.costs.prediction import of_call, of_results, read_at_once
        from swathe.costs.write_costs import output_key
        from swathe.operations.array_results import are_npy_of_arrays
        from swathe.stores.registry import compute_costs

        output_paths, settings = self.output_paths, self.settings
        paths = {row: manifest.name[row] for row in results}
        is_made = not output_paths.result_options.is_plain
        is_npy = work.results is None and are_npy_of_arrays(
            output_paths.result_options.format, work.rows.take(todo)
        )
        is_cut_aside = is_made and not is_npy
        job = to_engine_job(
            work.rows.take(todo),
            [f"{row}.fits" if is_cut_aside else paths[row] for row in todo],
            replicas,
            output=str(output_paths.cut_into if is_cut_aside else output_paths.path),
            kind="folder" if is_cut_aside else output_paths.kind,
            mode=settings["mode"],
            fill=settings["fill"],
            threads=settings["threads"],
            objective=settings["objective"],
        )
        write_costs = None
        if not is_made and not output_paths.is_null:
            self.call.output = output_key(output_paths.path, output_paths.kind)
            write_costs = known_write_costs(self.call.output)
        opening_s = -time.perf_counter()
        prediction = predict_job(job, MOST_INSPECTIONS, write_costs=write_costs, keeps=True)
        opening_s += time.perf_counter()
        if "stores" in manifest.meta:
            prediction = read_at_once(prediction, settings["threads"])
        if is_made:
            result_options = output_paths.result_options
            self.call.output = f"{result_options.operation} as {result_options.format}"
            array_work = ArrayWork.of(work.rows.take(todo), compute_costs(), running_formats())
            self.call.output = array_work.product(self.call.output)
            making = self._making(array_work, work.rows.take(todo), len(results))
            prediction = of_results(array_work.widen(prediction), len(results), *making)
            prediction = array_work.add_to(prediction)
            prediction = learn_making(prediction, self.call.output)
        elapsed_s = time.perf_counter() - (self._count_end_s or self.start_s)
        prediction = of_call(prediction, known_call_costs(), len(todo), elapsed_s)
        self.call.expect(prediction, elapsed_s)
        if not all(cost.is_local for cost in prediction.per_store.values()):
            # Objects are opened on servers: the model counts that as reading.
            self.call.engine_s += opening_s
            self.call.before_s -= opening_s
        if end is None or self.output is not None:
            # If the process is killed now, no older manifest describes these results, and they are
            # known to belong to this run.
            self.manifest_file.save(manifest)
        if todo:
            _tell_prediction(prediction, output_paths, len(todo), is_only=is_only)
        with (
            trace.scope.where_none(job=self._job),
            trace.event("JOB", rows=len(todo), predicted_s=round(prediction.median_s, 6)) as event,
        ):
            with output_paths.scratch():
                if self.output is None:
                    self.output = self._open(end)
                batch = job.start(None if is_cut_aside else self.output)
                piece = PieceFiles(work, manifest, todo, paths, replicas, is_cut_aside=is_cut_aside)
                self._run(batch, piece, prediction)
            event.add(bytes=int(manifest.bytes.sum()))

    def _making(self, work: ArrayWork, rows: RowTable, results: int) -> Making:
        """Return the predicted time to make results from cutouts."""
        from swathe.costs.array_work import Making
        from swathe.costs.format_costs import ASSUMED_BOUND, FormatCosts, pixels_of
        from swathe.stores.registry import compute_costs

        result_options = self.output_paths.result_options
        file_format = result_options.file_format
        usual = FormatCosts(file_format.row_s, 0.0, file_format.job_s)
        if result_options.is_combined:
            return Making(usual.seconds(len(rows), 0.0), ASSUMED_BOUND)
        name, pixels = result_options.format, pixels_of(rows)
        return work.making(compute_costs(), name, results, pixels, usual)

    def _open(self, end: int | None) -> _swathe.Output:
        """Open the output.

        Raises:
            OutputError: If it cannot be opened.
        """
        from swathe.core.row_table import RowTable
        from swathe.costs.engine_job import to_engine_job

        output_paths = self.output_paths
        return to_engine_job(
            RowTable.of([]),
            output=str(output_paths.path),
            kind=output_paths.kind,
            append=end,
            overwrite=output_paths.overwrite,
        ).open()

    def _run(self, batch: _swathe.Batch, piece: PieceFiles, prediction: Prediction) -> None:
        start_s = time.perf_counter()
        stop = threading.Event()

        def cancel() -> None:
            stop.set()
            batch.cancel()

        with (
            _interrupt_later(cancel),
            progress_bar("cutting", self.progress is True, len(piece.todo)) as show,
        ):
            report = self._progress_report(batch, len(piece.todo), prediction, show)
            try:
                self._collect(batch, piece, self._maker(piece, stop.is_set), report)
            except BaseException:
                batch.cancel()
                raise
            finally:
                cost = batch.finish()
                self.call.engine_s += time.perf_counter() - start_s
                self._count(cost, prediction, piece, is_whole=not stop.is_set())

    def end_piece(self, manifest: Manifest, *, is_only: bool) -> None:
        """Write and count the rows of a piece that has ended; Ctrl-C waits for that.

        Args:
            manifest: manifest of the piece.
            is_only: whether the list has no other piece.
        """
        with _interrupt_later(lambda: None):
            self.manifest_file.end_piece(manifest, is_only=is_only)

    def leave_out(self, seconds: float) -> None:
        """Leave seconds that have passed out of the time that is predicted and measured."""
        self.start_s += seconds
        self._count_end_s += seconds if self._count_end_s else 0.0

    def _progress_report(
        self, batch: _swathe.Batch, targets: int, prediction: Prediction, show: ShowCount
    ) -> Callable[[int], None]:
        """Return the function that reports the number of targets done, with the time left."""
        from swathe.costs.time_left import CutProgress, TimeLeftModel

        model, start_s = TimeLeftModel.of(prediction), time.perf_counter()
        reported_at = start_s

        def report(count: int) -> None:
            nonlocal reported_at
            now = time.perf_counter()
            part = batch.progress()
            model.update(now - start_s, part)
            left = model.left(now - start_s)
            show(count, time_left_text(*left))
            if callable(self.progress) and now - reported_at >= REPORT_S:
                reported_at = now
                self.progress(CutProgress(count, targets, part, left))

        return report

    def _count(
        self,
        cost: dict[str, Any],
        prediction: Prediction,
        piece: PieceFiles,
        *,
        is_whole: bool,
    ) -> None:
        """Enter the cost of a piece into the manifest.

        A prediction is compared with the cost only if it was done to its end, `is_whole`.
        """
        meta, output_paths = self.manifest_file.meta, self.output_paths
        traffic = {name: cost.pop(name) for name in ("bytes_moved", "requests")}
        notes = cost.pop("notes")
        del cost["from_peers"], cost["from_cache"]
        seconds = {"predicted_s": prediction.median_s}
        seconds |= {f"{name}_s": value for name, value in cost.items()}
        for name, value in seconds.items():
            meta[name] = round(meta.get(name, 0.0) + value, 6)
        for name, count in traffic.items():
            meta[name] = meta.get(name, 0) + count
        self.call.bytes, self.call.requests = meta["bytes_moved"], meta["requests"]
        counts = piece.manifest.counts()
        for status, count in counts.items():
            meta[status] = self.manifest_file.counts[status] + count
        self.call.is_comparable &= is_whole
        if output_paths.result_options.is_plain:
            self.call.write_s += cost["write"]
            self.call.written_bytes += int(piece.manifest.bytes[list(piece.paths)].sum())
        else:
            # The time to make other results says nothing of the store.
            self.call.root = ""
        self.call.targets += sum(map(piece.manifest.is_ok, piece.paths))
        meta["notes"] = list(dict.fromkeys([*meta.get("notes", []), *notes]))
        self._count_end_s = time.perf_counter()

    def end(self) -> None:
        """Report the time of the call, which ends now, to the user and the catalogue."""
        from swathe.costs.recorded_outcome import record_outcome

        meta, output_paths = self.manifest_file.meta, self.output_paths
        summary = f"cut_many into {output_paths.kind}, as {output_paths.result_options.format}"
        meta["notes"] += record_outcome(self.call, time.perf_counter() - self.start_s, summary)
        log.info(
            "%s: took %s, predicted %s: %s",
            *(harmless_text(f"{output_paths.path}"), seconds_text(meta["actual_s"])),
            forecast_text(meta["predicted_s"]),
            _traffic_text(meta["bytes_moved"], meta["requests"]),
        )

    def _maker(self, piece: PieceFiles, should_stop: Callable[[], bool]) -> Maker | None:
        """Return the maker of the results; `None` if the engine writes them."""
        from swathe.operations.array_results import ArrayResults
        from swathe.operations.make_results import Combiner, Converter, ResultFiles

        output_paths, work = self.output_paths, piece.work
        if output_paths.result_options.is_plain:
            return None
        assert self.output is not None
        files = ResultFiles(
            output_paths.cut_into,
            self.output,
            output_paths.path,
            output_paths.kind,
            piece.paths,
            should_stop,
        )
        if work.results is None:
            options = output_paths.result_options
            arrays = ArrayResults(
                options.convert_array, should_stop, self.settings["mode"], self.settings["fill"]
            )
            return Converter(files, options, work.rows, arrays)
        todo = [row - work.first for row in piece.paths]
        return Combiner(
            files, output_paths.result_options, work.results, todo, work.first, work.rows
        )

    def _collect(
        self,
        batch: _swathe.Batch,
        piece: PieceFiles,
        maker: Maker | None,
        report: Callable[[int], None],
    ) -> None:
        """Enter rows into the manifest when they are done; the batch numbers them as in `todo`."""
        count, save_s = 0, time.monotonic()
        todo = np.array(piece.todo, np.int64)
        for outcome in maker.begin() if maker is not None else ():
            piece.enter(outcome)
        enough = 1 if piece.is_cut_aside else MOST_TOGETHER
        while (news := batch.gather(enough, POLL_S)) is not None:
            results = DoneRows.of(todo, *news)
            piece.move(results)
            if not piece.is_cut_aside:
                piece.enter_results(results)
            if maker is not None:
                for cut in results.outcomes() if piece.is_cut_aside else results.failures():
                    for outcome in maker.take(cut):
                        piece.enter(outcome)
            count += len(results.rows)
            report(count)
            if time.monotonic() - save_s > CHECKPOINT_S:
                self.manifest_file.save(piece.manifest)
                save_s = time.monotonic()

    def close(self) -> None:
        """Close the output; then it has its name, and so has the manifest.

        Raises:
            OutputError: If a file cannot be written.
        """
        output, self.output = self.output, None
        if output is None:
            return
        manifest_file, output_paths = self.manifest_file, self.output_paths
        # All but the last writing of the manifest, which holds it.
        manifest_file.meta["actual_s"] = round(time.perf_counter() - self.start_s, 6)
        manifest_file.finish()
        # The archive gets its name when it holds the manifest; the manifest file comes last.
        if output_paths.kind == "fits" and manifest_file.last is not None:
            output.put(EXTENSION, manifest_file.last.extension())
        output.close(output_paths.run_manifest if output_paths.kind in ("zip", "tar") else None)
        if output_paths.run_manifest != output_paths.manifest:
            publish(output_paths.run_manifest, output_paths.manifest, overwrite=True)


def _tell_prediction(
    prediction: Prediction, output_paths: OutputPaths, targets: int, *, is_only: bool
) -> None:
    low_s, high_s = prediction.interval_s
    spread = "" if high_s < 0.1 else f" ({seconds_text(low_s)} to {seconds_text(high_s)})"
    log.info(
        PREDICTION_TEXT,
        harmless_text(f"{output_paths.path}"),
        *(forecast_text(prediction.median_s), spread),
        count_text(targets, "target") if is_only else f"a part of {count_text(targets, 'target')}",
        _traffic_text(prediction.bytes, prediction.requests),
    )


def _traffic_text(size: int, requests: int) -> str:
    return f"{size_text(size)} in {count_text(requests, 'request')}"


@contextmanager
def _interrupt_later(cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` on Ctrl-C, and raise KeyboardInterrupt only at the end.

    An exception in between would lose the rows just returned, and their results with them.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    signals: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        signals.append((number, frame))
        cancel()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if signals:
        usual(*signals[0])
