"""A run of `cut_many`: the engine cuts, results are made, and the manifest is written."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from swathe import _swathe
from swathe.core.format import forecast_text, harmless_text, seconds_text
from swathe.core.outputs import publish
from swathe.core.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from swathe.core.row_record import RowStatus
    from swathe.costs.prediction import Prediction
    from swathe.cutting.output_paths import CutWork, OutputPaths
    from swathe.files.manifest import Manifest
    from swathe.operations.make_results import Maker, RowOutcome

    CompletedColumns = tuple[list[int], list[RowStatus], list[str], list[int], list[str], list[str]]


log = logging.getLogger(__name__)

POLL_S = 0.1
CHECKPOINT_S = 10.0
"""Interval at which the manifest is written during a run, in case the process is killed."""


class CutRun(NamedTuple):
    """A run.

    Attributes:
        output_paths: output of the run.
        work: targets and results.
        manifest: outcome of each row.
        todo: targets to cut.
        paths: paths of the results to make, by row of the manifest.
        end: length in bytes up to which an archive is kept.
    """

    output_paths: OutputPaths
    work: CutWork
    manifest: Manifest
    todo: list[int]
    paths: dict[int, str]
    end: int | None

    def output(self) -> _swathe.Output | None:
        """Open the output if results are made here; otherwise the engine opens it.

        Raises:
            OutputError: If it cannot be opened.
        """
        from swathe.costs.prediction import to_engine_job

        output_paths = self.output_paths
        if output_paths.result_options.is_plain:
            return None
        return to_engine_job(
            self.work.rows[:0],
            output=str(output_paths.path),
            kind=output_paths.kind,
            append=self.end,
            overwrite=output_paths.overwrite,
        ).open()

    def maker(self, output: _swathe.Output | None, stopped: Callable[[], bool]) -> Maker:
        """Return the maker of the results."""
        from swathe.operations.make_results import Combiner, Converter, PassThrough, ResultFiles

        if output is None:
            return PassThrough()
        output_paths, work = self.output_paths, self.work
        files = ResultFiles(
            output_paths.cut_into, output, output_paths.path, output_paths.kind, self.paths, stopped
        )
        if work.results is None:
            return Converter(files, output_paths.result_options)
        todo = [row - work.first for row in self.paths]
        return Combiner(
            files, output_paths.result_options, work.results, todo, work.first, work.rows
        )


def run_cuts(
    run: CutRun, job: _swathe.Job, prediction: Prediction, progress: bool, started: float
) -> None:
    """Run the job. However it ends, the manifest is written and says which rows are done."""
    output_paths, manifest = run.output_paths, run.manifest
    begun = time.perf_counter()
    output = run.output()
    batch = job.start()
    stop = threading.Event()

    def cancel() -> None:
        stop.set()
        batch.cancel()

    with (
        _interrupt_later(cancel),
        progress_bar("cutting", progress, len(run.todo)) as show,
    ):
        try:
            _collect(batch, run, run.maker(output, stop.is_set), show)
        except BaseException:
            batch.cancel()
            raise
        finally:
            try:
                cost = batch.finish()
                manifest.meta["predicted_s"] = round(prediction.median_s, 6)
                manifest.meta["actual_s"] = round(time.perf_counter() - begun, 6)
                manifest.meta.update(_cost(cost, started))
                _keep_outcome(prediction, manifest, output_paths, whole=not stop.is_set())
            finally:
                content = manifest.write(output_paths.unfinished)
            # The archive gets its name when it holds the manifest; the manifest file comes last.
            last = manifest.extension() if output_paths.kind == "fits" else content
            (batch if output is None else output).close(last)
            if output_paths.unfinished != output_paths.manifest:
                publish(output_paths.unfinished, output_paths.manifest, overwrite=True)


def _keep_outcome(
    prediction: Prediction, manifest: Manifest, output_paths: OutputPaths, *, whole: bool
) -> None:
    """Report the cost of the work to the user, the manifest and the catalogue.

    A prediction is compared with the cost only if the `whole` of it was done.
    """
    from swathe.costs.prediction import record_outcome

    meta = manifest.meta
    log.info(
        "%s: took %s, predicted %s: %d bytes in %d requests",
        *(harmless_text(f"{output_paths.path}"), seconds_text(meta["actual_s"])),
        *(forecast_text(prediction.median_s),),
        *(meta["bytes_moved"], meta["requests"]),
    )
    meta.update(manifest.counts())
    result_options = output_paths.result_options
    summary = f"cut_many into {output_paths.kind}, as {result_options.format}"
    # The time to combine images is not predicted.
    is_predicted = whole and not result_options.is_combined
    cuts = meta["ok"] - meta["done_before"] if is_predicted else 0
    meta["notes"] += record_outcome(prediction, meta, summary, cuts)


def _collect(batch: _swathe.Batch, run: CutRun, maker: Maker, show: Callable[[int], None]) -> None:
    """Enter rows into the manifest when they are done; the batch numbers them as in `todo`."""
    from swathe.operations.make_results import RowOutcome

    count, saved = 0, time.monotonic()
    for outcome in maker.begin():
        _enter(run, outcome)
    for columns in completed_rows(batch):
        for target, status, reason, size, version, sha256 in zip(*columns, strict=True):
            cut = RowOutcome(run.todo[target], status, reason, size, version, sha256)
            for outcome in maker.take(cut):
                _enter(run, outcome)
            count += 1
        show(count)
        if time.monotonic() - saved > CHECKPOINT_S:
            run.manifest.write(run.output_paths.unfinished)
            saved = time.monotonic()


def _enter(run: CutRun, outcome: RowOutcome) -> None:
    """Enter the outcome of a row."""
    manifest, row = run.manifest, outcome.row
    manifest.status[row], manifest.reason[row] = outcome.status, outcome.reason
    manifest.bytes[row], manifest.sha256[row] = outcome.bytes, outcome.sha256
    manifest.source_version[row] = outcome.version
    manifest.path[row] = run.paths.get(row, "") if outcome.status == "ok" else ""


def completed_rows(batch: _swathe.Batch) -> Iterator[CompletedColumns]:
    """Yield the columns of newly done rows, which may be empty, until all are done."""
    while (rows := batch.poll(POLL_S)) is not None:
        # Each attribute access makes a new list.
        status = cast("list[RowStatus]", rows.status)
        yield (rows.target, status, rows.reason, rows.bytes, rows.version, rows.sha256)


@contextmanager
def _interrupt_later(cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` on Ctrl-C, and raise KeyboardInterrupt only at the end.

    An exception in between would lose the rows just returned, and their results with them.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append((number, frame))
        cancel()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if caught:
        usual(*caught[0])


def _cost(cost: dict[str, Any], started: float) -> dict[str, Any]:
    """Return the cost of the work in seconds and bytes, as the manifest records it."""
    counters = {name: cost.pop(name) for name in ("bytes_moved", "requests", "notes")}
    del cost["from_peers"], cost["from_cache"]
    seconds = {f"{name}_s": round(value, 6) for name, value in cost.items()}
    return {**seconds, "total_s": round(time.perf_counter() - started, 6), **counters}
