"""Batches: rows of a job with all that is needed to do them, here or on another machine.

A batch needs no database, and can be pickled. Results are made in a local folder, and put in their
place whole: to do a batch again changes nothing. Who is still at it fails then, unheard.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from swathe import _swathe, trace
from swathe.catalog.work import Done, KeptRow
from swathe.cutout import Cutout
from swathe.errors import CatalogError, OutputError, SwatheError
from swathe.jobs.expansion import grown, is_combined
from swathe.jobs.places import Place, move
from swathe.jobs.results import input_of, place_of
from swathe.jobs.stacking import Grid, aligned, made
from swathe.jobs.values import SUFFIXES, Options
from swathe.known import by_names
from swathe.many import told
from swathe.predict import job_of, sky_of
from swathe.targets import SKY, Targets, numbered, parse_hdu, read_targets

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.catalog import Catalog
    from swathe.catalog.work import Chunk, RowStatus

T = TypeVar("T")

PUT_BYTES = 256 << 20
"""Results are put in their place when so many are made, or all of a chunk."""


ASIDE = ".chunk-"
"""In the local folder of a job: where results of a batch are made."""


@dataclass(frozen=True)
class Batch:
    """Rows of a job that are done together.

    Attributes:
        job: its id.
        first: position of the first row.
        options: of the job.
        rows: to do.
        makes: whether the rows are results that are made of others, not cut.
        results: by number, those that the rows go into.
        inputs: by number of a result, the rows that go into it.
        row_bytes: that are expected to be read for each row.
    """

    job: str
    first: int
    options: Options
    rows: Sequence[KeptRow]
    makes: bool = False
    results: Mapping[int, KeptRow] = field(default_factory=dict)
    inputs: Mapping[int, Sequence[KeptRow]] = field(default_factory=dict)
    row_bytes: float = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle rows by columns: that takes a third of the time."""
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "rows"}
        return _unpacked, (Batch, _columns(self.rows), rest)


def packed(done: Done) -> bytes:
    """Give what became of a batch, to be sent."""
    rest = {each.name: getattr(done, each.name) for each in fields(done) if each.name != "rows"}
    return pickle.dumps((_columns(done.rows), rest))


def unpacked(sent: bytes) -> Done:
    """Give what became of a batch, as `packed` sent it."""
    columns, rest = pickle.loads(sent)
    return _unpacked(Done, columns, rest)


def _columns(rows: Sequence[KeptRow]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def _unpacked(kind: Callable[..., T], columns: list[tuple[Any, ...]], rest: dict[str, Any]) -> T:
    rows = [KeptRow._make(values) for values in zip(*columns, strict=True)]
    return kind(rows=rows, **rest)


def batch_of(catalog: Catalog, chunk: Chunk) -> Batch:
    """Give what a chunk still has to do, with all that is needed for it.

    Raises:
        CatalogError: where the database cannot be used.
    """
    job = chunk.job
    rows = catalog.chunk_rows(chunk)
    makes = chunk.first >= job.inputs
    wanted = sorted({row.result for row in rows if row.result is not None})
    return Batch(
        job=job.id,
        first=chunk.first,
        options=Options.checked(job.options),
        rows=rows,
        makes=makes,
        results={at: catalog.job_rows(job.number, start=at, limit=1)[0] for at in wanted},
        inputs={
            row.number: catalog.rows_of_result(job.number, row.number) for row in rows if makes
        },
        row_bytes=job.predicted["bytes"] / max(1, job.inputs) if job.predicted else 0.0,
    )


def run(batch: Batch, place: Place, threads: int, stopped: Callable[[], bool]) -> Done:
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
            event.add(bytes=sum(row.bytes for row in done.rows))
        if done.failure is not None:
            event.add(result="error", reason=done.failure)
        elif not done.complete:
            event.add(result="cancelled")
    return done


def _run(batch: Batch, place: Place, threads: int, stopped: Callable[[], bool]) -> Done:
    begun = time.perf_counter()
    try:
        return _Work(batch, place, threads, stopped).run()
    except CatalogError:
        # Where storages are could not be looked up: later.
        return Done([], time.perf_counter() - begun, complete=False)
    except OutputError as error:
        failure = str(error)
    except Exception as error:  # a fault of ours must not stop the jobs of others
        failure = f"internal: {type(error).__name__}: {error}"
    except BaseException as error:  # what would end the thread, as a panic of the engine
        reason = f"internal: {type(error).__name__}: {error}"
        rows = [_ended(row, "error", reason) for row in batch.rows]
        return Done(rows, time.perf_counter() - begun)
    return Done([], time.perf_counter() - begun, complete=False, failure=failure)


@dataclass
class _Work:
    """Does one batch, as `run`."""

    batch: Batch
    place: Place
    threads: int
    stopped: Callable[[], bool]
    done: list[KeptRow] = field(default_factory=list, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    bytes_moved: int = field(default=0, init=False)
    requests: int = field(default=0, init=False)
    from_peers: tuple[int, int] = field(default=(0, 0), init=False)
    from_cache: tuple[int, int] = field(default=(0, 0), init=False)
    made: list[tuple[KeptRow, str]] = field(default_factory=list, init=False)
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

    def run(self) -> Done:
        """Do the rows.

        Raises:
            OutputError: where results cannot be made at all.
        """
        rows = self.batch.rows
        begun = time.perf_counter()
        try:
            self._take_over()
            self.aside.mkdir(parents=True)
            if self.batch.makes:
                self._make(rows)
            else:
                self._cut(rows)
            self._put()
        except OSError as error:
            raise OutputError(f"{self.folder}: {error}") from error
        finally:
            shutil.rmtree(self.aside, ignore_errors=True)
        return Done(
            self.done,
            time.perf_counter() - begun,
            self.bytes_moved,
            self.requests,
            self.notes,
            complete=len(self.done) == len(rows),
            failure=self.failure,
            from_peers=self.from_peers,
            from_cache=self.from_cache,
        )

    def _take_over(self) -> None:
        """Remove what others left of the same batch, who are dead or taken for it."""
        for left in self.folder.glob(f"{ASIDE}{self.batch.first}-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _ends(self) -> bool:
        """Tell whether to do no more."""
        return self.failure is not None or self.stopped()

    def _cut(self, rows: Sequence[KeptRow]) -> None:
        placed = self._placed(rows)
        parts: dict[tuple[int, int] | None, list[KeptRow]] = {}
        for row in placed:
            parts.setdefault(row.planes, []).append(row)
        for planes, part in parts.items():
            if self._ends():
                return
            self._cut_planes(part, planes)

    def _placed(self, rows: Sequence[KeptRow]) -> list[KeptRow]:
        """Give rows with their boxes; those that have no place in their image are done."""
        found = [row for row in rows if row.box is not None]
        later = [row for row in rows if row.box is None and row.sky is not None]
        self.done += [
            row._replace(status="error", reason="it has neither a box nor a place in the sky")
            for row in rows
            if row.box is None and row.sky is None
        ]
        # One image at a time, so that it can be stopped.
        images: dict[tuple[str, str | None], list[KeptRow]] = {}
        for row in later:
            images.setdefault((row.source, row.hdu), []).append(row)
        for of_image in images.values():
            if self._ends():
                break
            found += self._placed_on_image(of_image)
        return found

    def _placed_on_image(self, rows: Sequence[KeptRow]) -> list[KeptRow]:
        sky = np.array([row.sky for row in rows])
        columns = {
            "file": [row.source for row in rows],
            "hdu": [row.hdu or "" for row in rows],
            **{name: sky[:, at] for at, name in enumerate(SKY)},
        }
        read = read_targets(columns, sky_of)
        boxes = grown(read.boxes) if is_combined(self.options) else read.boxes
        found = []
        for number, row in enumerate(rows):
            if (fault := read.faults.get(number)) is not None:
                self.done.append(_ended(row, *fault))
            else:
                x0, y0, width, height = boxes[number].tolist()
                found.append(row._replace(box=(x0, y0, width, height)))
        return found

    def _cut_planes(self, rows: Sequence[KeptRow], planes: tuple[int, int] | None) -> None:
        job = job_of(
            _targets(rows),
            range(len(rows)),
            [f"{row.number}.fits" for row in rows],
            output=str(self.aside),
            mode="trim" if is_combined(self.options) else self.options.mode,
            fill=None if is_combined(self.options) else self.options.fill,
            planes=planes,
            threads=self.threads,
        )
        batch = job.start()
        try:
            for news in told(batch):
                if self._ends():
                    batch.cancel()
                    continue
                for target, status, reason, size, version, sha256 in news:
                    if self._ends():
                        break  # to put each onto a grid takes its time
                    row = rows[target]
                    if status == "ok":
                        self._take(
                            row._replace(status="ok", bytes=size, version=version, sha256=sha256)
                        )
                    else:
                        self.done.append(_ended(row, status, reason)._replace(version=version))
        except BaseException:
            batch.cancel()
            raise
        finally:
            cost = batch.finish()
        self._count(cost)
        self.notes += cost["notes"]

    def _count(self, cost: Mapping[str, Any]) -> None:
        """Add what was read, and from where."""
        self.bytes_moved += cost["bytes_moved"]
        self.requests += cost["requests"]
        self.from_peers = summed(self.from_peers, cost["from_peers"])
        self.from_cache = summed(self.from_cache, cost["from_cache"])

    def _take(self, row: KeptRow) -> None:
        """Take what was cut for a row, in the format asked for."""
        if row.result is None and self.options.format == "fits":
            # As text: paths would take as long as the rest.
            self._keep(row, f"{self._aside}/{row.number}.fits")
            return
        cut = self.aside / f"{row.number}.fits"
        if row.result is not None:
            self.done.append(self._aligned(row, cut))
            return
        converted = self.aside / f"{row.number}{SUFFIXES[self.options.format]}"
        try:
            whole(cut).write(converted)
        except SwatheError as error:
            self.done.append(_ended(row, "error", str(error)))
            return
        finally:
            cut.unlink()
        self._keep_new(row, converted)

    def _aligned(self, row: KeptRow, cut: Path) -> KeptRow:
        """Put the pixels of a row onto the grid of the result it goes into."""
        assert row.result is not None and row.sky is not None
        grid = Grid.of(self.batch.results[row.result])
        if grid is None:
            return _ended(row, "error", "the size of its result is not known")
        try:
            pixels = aligned(whole(cut), grid.at(row.sky[0], row.sky[1]))
        except SwatheError as error:
            return _ended(row, "error", str(error))
        finally:
            cut.unlink()
        if not np.isfinite(pixels).any():
            return _ended(row, "no-overlap", "none of its pixels is within the result")
        new = self.aside / f"{row.number}.npy"
        np.save(new, pixels, allow_pickle=False)
        move(str(new), str(input_of(self.folder, row.number)), str(self.folder))
        return row._replace(bytes=0, sha256="")

    def _make(self, rows: Sequence[KeptRow]) -> None:
        """Make results of the rows that go into them."""
        for row in rows:
            if self._ends():
                return
            inputs = self.batch.inputs[row.number]
            used = [each for each in inputs if each.status == "ok"]
            grid = Grid.of(row)
            if not used or grid is None:
                failed = [each for each in inputs if each.status in ("error", "missing")]
                status = "error" if failed else "no-overlap"
                because = f"; {failed[0].id}: {failed[0].reason}" if failed else ""
                self.done.append(_ended(row, status, f"there is no image of it{because}"))
                continue
            if (lost := self._restored(used, row)) is not None:
                self.done.append(_ended(row, "error", lost))
                continue
            new = self.aside / f"{row.number}{SUFFIXES[self.options.format]}"
            try:
                if self._ends() or not made(new, self.folder, grid, used, self.options, self._ends):
                    return
            except SwatheError as error:
                self.done.append(_ended(row, "error", str(error)))
                continue
            self._keep_new(row, new)

    def _restored(self, rows: Sequence[KeptRow], into: KeptRow) -> str | None:
        """Cut again what is no longer there of rows; tells why, where that cannot be.

        The local folder may have been emptied, or be that of another machine.
        """
        lost = [row for row in rows if not input_of(self.folder, row.number).exists()]
        if not lost:
            return None
        again = replace(self, batch=replace(self.batch, results={into.number: into}))
        again.aside = self.aside
        again._cut(lost)
        self._count(vars(again))
        failed = next((row for row in again.done if row.status != "ok"), None)
        if failed is None:
            return None
        return f"{failed.id}: its pixels are gone, and cannot be cut again: {failed.reason}"

    def _keep_new(self, row: KeptRow, new: Path) -> None:
        with new.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._keep(row._replace(status="ok", bytes=new.stat().st_size, sha256=sha256), str(new))

    def _keep(self, row: KeptRow, new: str) -> None:
        """Have a result put in its place, soon."""
        self.made.append((row, new))
        self.made_bytes += row.bytes
        if self.made_bytes >= PUT_BYTES:
            self._put()

    def _put(self) -> None:
        """Put what was made in its place: a row is done when its result is there."""
        made, self.made, self.made_bytes = self.made, [], 0
        files = [(new, place_of(row, self.options)) for row, new in made]
        try:
            for number in self.place.put(self.batch.job, files, self.stopped):
                self.done.append(made[number][0])
        except OutputError as error:
            self.failure = str(error)


def summed(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add bytes to bytes, and requests to requests."""
    return one[0] + other[0], one[1] + other[1]


def whole(path: Path) -> Cutout:
    """Give all of a small image that the engine cut."""
    native = _swathe.open(str(path))
    hdu = native.find()
    shape = native.shape(hdu)
    return Cutout(
        native.cut(hdu, [0] * len(shape), shape[::-1], "strict"), str(path), native.version, hdu
    )


def _ended(row: KeptRow, status: str, reason: str) -> KeptRow:
    told = by_names(reason)
    return row._replace(status=cast("RowStatus", status), reason=told, bytes=0, sha256="")


def _targets(rows: Sequence[KeptRow]) -> Targets:
    """Give rows as the engine takes them."""
    files, file = numbered([row.source for row in rows])
    keys, key = numbered([row.hdu for row in rows])
    hdus: list[HduKey | None] = [None if text is None else parse_hdu(text) for text in keys]
    ids = [row.id for row in rows]
    boxes = np.array([row.box for row in rows], np.int64).reshape(len(rows), 4)
    return Targets(ids, ids, files, np.array(file, np.int32), hdus, np.array(key, np.int32), boxes)
