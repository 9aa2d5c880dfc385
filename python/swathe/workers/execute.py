"""How a batch is done, here or on another machine.

Results are made in a local folder, and put in their place whole: to do a batch again changes
nothing. Who is still at it fails then, unheard.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from swathe import _swathe, trace
from swathe.catalog.database_errors import may_pass
from swathe.catalog.jobs.row_table import CODES, DIGEST_BYTES, DictColumn, RowTable
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import CatalogError, NoOverlapError, OutputError, RegionError, SwatheError
from swathe.costs.prediction import sky_of, to_engine_job
from swathe.cutting.many import POLL_S
from swathe.files.targets.target_list import SKY, Targets, parse_hdu, read_targets
from swathe.jobs.archives import input_of, places_of
from swathe.jobs.types import Options
from swathe.operations.formats import SUFFIXES, Written, convert, whole
from swathe.operations.stack import Grid, Input, align, grown, made, without_images
from swathe.stores.registry import with_store_names
from swathe.stores.results import ResultStore, move
from swathe.workers.batch import summed

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.catalog.records.jobs import RowRecord, RowStatus
    from swathe.workers.batch import Batch

PUT_BYTES = 256 << 20
"""Results are put in their place when so many are made, or all of a chunk."""
PICTURE_BYTES = 24
"""Memory that a picture takes for each pixel while it is made,"""
ALIGNED_BYTES = 160
"""and the pixels of an image that are put onto a grid."""
GATHERED = 1000
"""Rows that are taken together from the engine: each time takes as long as some rows do."""
ASIDE = ".chunk-"
"""In the local folder of a job: where results of a batch are made."""


def run_batch(
    batch: Batch, place: ResultStore, threads: int, stopped: Callable[[], bool]
) -> ChunkResult:
    """Do the rows of a batch, as far as they are not stopped.

    Args:
        batch: what to do.
        place: of the job's results.
        threads: of the engine.
        stopped: whether to stop, asked several times a second.

    What cannot be done at all is told as the reason why the job fails, never raised.
    """
    with (
        trace.scope(job=batch.job),
        trace.event("BATCH", first=batch.first, rows=len(batch.rows)) as event,
    ):
        done = _run(batch, place, threads, stopped)
        if _swathe.trace_is_on():
            event.add(bytes=int(RowTable.of(done.rows).bytes.sum()))
        if done.failure is not None:
            event.add(result="error", reason=done.failure)
        elif not done.complete:
            event.add(result="cancelled")
    return done


def _run(
    batch: Batch, place: ResultStore, threads: int, stopped: Callable[[], bool]
) -> ChunkResult:
    begun = time.perf_counter()
    try:
        return _Work(batch, place, threads, stopped).run()
    except (CatalogError, OutputError) as error:
        if isinstance(error, CatalogError) and may_pass(error):
            # Where storages are could not be looked up: later.
            return ChunkResult([], time.perf_counter() - begun, complete=False)
        failure = str(error)
    except Exception as error:  # a fault of ours must not stop the jobs of others
        failure = f"internal: {type(error).__name__}: {error}"
    except BaseException as error:  # what would end the thread, as a panic of the engine
        reason = f"internal: {type(error).__name__}: {error}"
        return ChunkResult(
            batch.rows.ended("error", with_store_names(reason)), time.perf_counter() - begun
        )
    return ChunkResult([], time.perf_counter() - begun, complete=False, failure=failure)


@dataclass
class _Work:
    """Does one batch, as `run`."""

    batch: Batch
    place: ResultStore
    threads: int
    stopped: Callable[[], bool]
    parts: list[RowTable] = field(default_factory=list, init=False)
    single: list[RowRecord] = field(default_factory=list, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    bytes_moved: int = field(default=0, init=False)
    requests: int = field(default=0, init=False)
    from_peers: tuple[int, int] = field(default=(0, 0), init=False)
    from_cache: tuple[int, int] = field(default=(0, 0), init=False)
    made: list[tuple[RowTable, list[str]]] = field(default_factory=list, init=False)
    made_bytes: int = field(default=0, init=False)
    failure: str | None = field(default=None, init=False)

    @property
    def options(self) -> Options:
        """Those of the job."""
        return self.batch.options

    @cached_property
    def folder(self) -> Path:
        """Where what is made of the job lies until it is in its place."""
        return self.place.scratch(self.batch.job)

    @cached_property
    def aside(self) -> Path:
        """Where results of this batch are made, and by nobody else who does the same rows."""
        return self.folder / f"{ASIDE}{self.batch.first}-{token_hex(4)}"

    @cached_property
    def _aside(self) -> str:
        return str(self.aside)

    def run(self) -> ChunkResult:
        """Do the rows.

        Raises:
            OutputError: where results cannot be made at all.
            CatalogError: where storages cannot be looked up.
        """
        rows = self.batch.rows
        begun = time.perf_counter()
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
            raise  # it is an OSError, too, and no fault of the folder
        except OSError as error:
            taken_over = not self.aside.exists()
            if not taken_over:
                raise OutputError(f"{self.folder}: {error}") from error
        finally:
            shutil.rmtree(self.aside, ignore_errors=True)
        if taken_over:
            # By one who has the same rows, and may be the one that nobody waits for.
            return ChunkResult([], time.perf_counter() - begun, complete=False)
        done = self.done()
        return ChunkResult(
            done,
            time.perf_counter() - begun,
            self.bytes_moved,
            self.requests,
            self.notes,
            complete=len(done) == len(rows),
            failure=self.failure,
            from_peers=self.from_peers,
            from_cache=self.from_cache,
        )

    def done(self) -> RowTable:
        """Give what is done: many at once, or one by one."""
        return RowTable.joined([*self.parts, RowTable.of(self.single)])

    def _take_over(self) -> None:
        """Remove what others left of the same batch, who are dead or taken for it."""
        begins = f"{ASIDE}{self.batch.first}-"
        # A pattern would be compiled for each batch.
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for left in [each.path for each in entries if each.name.startswith(begins)]:
                shutil.rmtree(left, ignore_errors=True)

    def _ends(self) -> bool:
        """Tell whether to do no more."""
        return self.failure is not None or self.stopped()

    def _cut(self, rows: RowTable) -> None:
        placed = self._placed(rows)
        planes = placed.planes.few()
        for code, pair in enumerate(planes.values):
            if self._ends():
                return
            of_pair = placed if len(planes.values) == 1 else placed.take(planes.codes == code)
            self._cut_planes(of_pair, pair)

    def _placed(self, rows: RowTable) -> RowTable:
        """Give rows with their boxes; those that have no place in their image are done."""
        if rows.placed.all():
            return rows
        nowhere = rows.take(~rows.placed & ~rows.in_sky)
        self.parts.append(nowhere.ended("error", "it has neither a box nor a place in the sky"))
        found = [rows.take(rows.placed)]
        later = rows.take(~rows.placed & rows.in_sky)
        # One image at a time, so that it can be stopped.
        images = later.source.codes.astype(np.int64) * len(later.hdu.values) + later.hdu.codes
        for image in np.unique(images).tolist():
            if self._ends():
                break
            found.append(self._placed_on_image(later.take(images == image)))
        return RowTable.joined(found)

    def _placed_on_image(self, rows: RowTable) -> RowTable:
        columns = {
            "file": rows.source.list(),
            "hdu": [hdu or "" for hdu in rows.hdu.list()],
            **{name: rows.sky[:, at] for at, name in enumerate(SKY)},
        }
        read = read_targets(columns, sky_of)
        boxes = grown(read.boxes) if self.options.is_combined else read.boxes
        good = np.ones(len(rows), bool)
        good[list(read.faults)] = False
        self._end(rows.take(list(read.faults)), list(read.faults.values()))
        return replace(rows, box=boxes, placed=good).take(good)

    def _end(self, rows: RowTable, faults: Sequence[tuple[str, str]]) -> None:
        """Take down why rows cannot be cut."""
        if len(rows):
            status = np.array([CODES[cast("RowStatus", status)] for status, _ in faults], np.uint8)
            reason = DictColumn.of([with_store_names(reason) for _, reason in faults])
            self.parts.append(rows.ended(status, reason))

    def _cut_planes(self, rows: RowTable, planes: tuple[int, ...] | None) -> None:
        job = to_engine_job(
            _targets(rows),
            range(len(rows)),
            [f"{number}.fits" for number in rows.number.tolist()],
            output=str(self.aside),
            mode="trim" if self.options.is_combined else self.options.mode,
            fill=None if self.options.is_combined else self.options.fill,
            planes=planes,
            threads=self.threads,
            most_bytes=self.batch.cutout_bytes,
        )
        batch = job.start()
        enough = GATHERED if self._is_plain(rows) else 1
        try:
            while (news := batch.gather(enough, POLL_S)) is not None:
                if self._ends():
                    batch.cancel()
                else:
                    self._take(rows, *news)
        except BaseException:
            batch.cancel()
            raise
        finally:
            cost = batch.finish()
        self._count(cost)
        self.notes += cost["notes"]

    def _is_plain(self, rows: RowTable) -> bool:
        """Tell whether results are what the engine cuts, as it writes it."""
        return self.options.format == "fits" and not (rows.result >= 0).any()

    def _count(self, cost: Mapping[str, Any]) -> None:
        """Add what was read, and from where."""
        self.bytes_moved += cost["bytes_moved"]
        self.requests += cost["requests"]
        self.from_peers = summed(self.from_peers, cost["from_peers"])
        self.from_cache = summed(self.from_cache, cost["from_cache"])

    def _take(
        self,
        rows: RowTable,
        targets: bytes,
        size: bytes,
        sha256: bytes,
        versions: list[str],
        version: bytes,
        failed: Sequence[tuple[int, str, str]],
    ) -> None:
        """Take what the engine tells of some of the rows."""
        if not targets:
            return
        cut = rows.take(np.frombuffer(targets, np.int64)).ended(
            "ok",
            size=np.frombuffer(size, np.int64),
            version=DictColumn(versions, np.frombuffer(version, np.int32)),
            sha256=np.frombuffer(sha256, np.uint8).reshape(-1, DIGEST_BYTES),
        )
        if failed:
            wrong = np.zeros(len(cut), bool)
            wrong[[row for row, _, _ in failed]] = True
            self._end(cut.take(wrong), [(status, reason) for _, status, reason in failed])
            cut = cut.take(~wrong)
        if self._is_plain(rows):
            # As text: paths would take as long as the rest.
            self._keep(cut, [f"{self._aside}/{number}.fits" for number in cut.number.tolist()])
            return
        for row in cut:
            if self._ends():
                return  # to put each onto a grid takes its time
            self._convert(row)

    def _convert(self, row: RowRecord) -> None:
        """Make of what was cut for a row what is asked for."""
        cut = self.aside / f"{row.number}.fits"
        if row.result is not None:
            self.single.append(self._aligned(row, cut))
            return
        converted = self.aside / f"{row.number}{SUFFIXES[self.options.format]}"
        try:
            if self.options.format == "png":
                self._check_size(_pixels(cut), PICTURE_BYTES, "a picture")
            convert(cut, converted)
        except SwatheError as error:
            self.single.append(_ended(row, "error", str(error)))
            return
        self._keep_new(row, converted)

    def _check_size(self, pixels: int, pixel_bytes: int, what: str) -> None:
        """Check that what is made of so many pixels fits into four times the largest cutout.

        Raises:
            RegionError: where it does not.
        """
        most = self.batch.cutout_bytes
        if most is not None and pixels * pixel_bytes > 4 * most:
            raise RegionError(
                f"{what} of {pixels:,} pixels: expected up to {4 * most // pixel_bytes:,}, "
                "by limits.cutout_mb"
            )

    def _aligned(self, row: RowRecord, cut: Path) -> RowRecord:
        """Put the pixels of a row onto the grid of the result it goes into."""
        assert row.result is not None and row.sky is not None
        grid = _grid_of(self.batch.results[row.result])
        if grid is None:
            return _ended(row, "error", "the size of its result is not known")
        new = self.aside / f"{row.number}.npy"
        try:
            self._check_size(grid.side**2, ALIGNED_BYTES, "a stack or a picture of three bands")
            align(whole(cut), grid.at(row.sky[0], row.sky[1]), new)
        except NoOverlapError as error:
            return _ended(row, "no-overlap", str(error))
        except SwatheError as error:
            return _ended(row, "error", str(error))
        finally:
            cut.unlink()
        move(str(new), str(input_of(self.folder, row.number)), str(self.folder))
        return row._replace(bytes=0, sha256="")

    def _make(self, rows: RowTable) -> None:
        """Make results of the rows that go into them."""
        for row in rows:
            if self._ends():
                return
            inputs = self.batch.inputs[row.number]
            used = [each for each in inputs if each.status == "ok"]
            grid = _grid_of(row)
            if not used or grid is None:
                told = [(each.id, each.status, each.reason) for each in inputs]
                self.single.append(_ended(row, *without_images(told)))
                continue
            if (lost := self._restored(used, row)) is not None:
                self.single.append(_ended(row, "error", lost))
                continue
            new = self.aside / f"{row.number}{SUFFIXES[self.options.format]}"
            try:
                if self._ends() or not self._made(new, grid, used):
                    return
            except SwatheError as error:
                self.single.append(_ended(row, "error", str(error)))
                continue
            self._keep_new(row, new)

    def _made(self, new: Path, grid: Grid, rows: Sequence[RowRecord]) -> bool:
        """Make a result of rows; tells whether it was not stopped before.

        Raises:
            RegionError: where a picture lacks a band.
        """
        places = [(row.number, row.sky) for row in rows]
        inputs = [
            Input(input_of(self.folder, number), *sky[:2])
            for number, sky in places
            if sky is not None
        ]
        options = self.options
        return made(new, grid, inputs, options.format, options.stack, self._ends)

    def _restored(self, rows: Sequence[RowRecord], into: RowRecord) -> str | None:
        """Cut again what is no longer there of rows; tells why, where that cannot be.

        The local folder may have been emptied, or be that of another machine.
        """
        lost = [row for row in rows if not input_of(self.folder, row.number).exists()]
        if not lost:
            return None
        again = replace(self, batch=replace(self.batch, results={into.number: into}))
        again.aside = self.aside
        again._cut(RowTable.of(lost))
        self._count(vars(again))
        failed = next((row for row in again.done() if row.status != "ok"), None)
        if failed is None:
            return None
        return f"{failed.id}: its pixels are gone, and cannot be cut again: {failed.reason}"

    def _keep_new(self, row: RowRecord, new: Path) -> None:
        row = row._replace(status="ok", **Written.of(new)._asdict())
        self._keep(RowTable.of([row]), [str(new)])

    def _keep(self, rows: RowTable, new: list[str]) -> None:
        """Have results put in their place, soon."""
        self.made.append((rows, new))
        self.made_bytes += int(rows.bytes.sum())
        if self.made_bytes >= PUT_BYTES:
            self._put()

    def _put(self) -> None:
        """Put what was made in its place: a row is done when its result is there."""
        made, self.made, self.made_bytes = self.made, [], 0
        rows = RowTable.joined([part for part, _ in made])
        new = list(chain.from_iterable(paths for _, paths in made))
        # The engine may have told of many at once.
        piece = (np.cumsum(rows.bytes) - rows.bytes) // PUT_BYTES
        first = 0
        for end in [*(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(rows)]:
            if self.failure is None:
                self._put_piece(rows[first:end], new[first:end])
            first = end

    def _put_piece(self, rows: RowTable, new: Sequence[str]) -> None:
        files = list(zip(new, places_of(rows, self.options), strict=True))
        there: list[int] = []
        try:
            # Those before a fault are there.
            there.extend(self.place.put(self.batch.job, files, self.stopped))
        except OutputError as error:
            self.failure = str(error)
        self.parts.append(rows if len(there) == len(rows) else rows.take(there))


def _grid_of(row: RowRecord) -> Grid | None:
    """Return the grid of a result; `None` where its size is not known."""
    if row.box is None or row.sky is None:
        return None
    ra, dec, size = row.sky
    return Grid(ra, dec, row.box[2], size / row.box[2])


def _pixels(cut: Path) -> int:
    """Return how many pixels the image has that the engine cut."""
    native = _swathe.open(str(cut))
    return math.prod(native.shape(native.find()))


def _ended(row: RowRecord, status: str, reason: str) -> RowRecord:
    told = with_store_names(reason)
    return row._replace(status=cast("RowStatus", status), reason=told, bytes=0, sha256="")


def _targets(rows: RowTable) -> Targets:
    """Give rows as the engine takes them."""
    source, hdu = rows.source.few(), rows.hdu.few()
    hdus: list[HduKey | None] = [None if text is None else parse_hdu(text) for text in hdu.values]
    return Targets(rows.id, rows.id, source.values, source.codes, hdus, hdu.codes, rows.box)
