"""Make results from what the engine cut: other formats, stacks, colour pictures.

A result from several images is made as soon as all of them are cut. The images are combined in the
order in which they were listed. Options have the same names as in jobs of a portal, and give the
same pixels.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from swathe.core.errors import NoOverlapError, OutputError, RegionError, SwatheError, TargetsError
from swathe.files.targets.target_list import hdu_text, unique_names
from swathe.operations.formats import digest_of, read_cutout
from swathe.operations.grid import AlignedImage, Grid, align, enlarge_boxes, without_images
from swathe.operations.inputs import inputs_of, rows_of_bands

if TYPE_CHECKING:
    from swathe._swathe import Output, OutputKind
    from swathe.files.targets.target_list import CombinedTargets, Targets
    from swathe.operations.registry import ResultOptions

BLOCK = 2880


@dataclass
class CombinedResults:
    """Results made from several images.

    Attributes:
        ids: ids of the results' groups.
        names: file names of the results, without suffix.
        inputs: rows of the images of each result, in their order.
        grids: pixel grid of each result that has a readable image.
        digests: SHA-256 of the inputs of each result; a resumed run compares them.
        faults: reason for each result that cannot be made.
        sky: right ascension, declination and size of each row, in degrees.
    """

    ids: list[str]
    names: list[str]
    inputs: list[list[int]]
    grids: list[Grid | None]
    digests: list[str]
    sky: list[list[float]]
    faults: dict[int, str] = field(default_factory=dict)

    def rows_of(self, results: Iterable[int]) -> list[int]:
        """Return the rows of the images of these results, in their order."""
        return sorted({row for result in results for row in self.inputs[result]})

    def unused_rows(self) -> list[int]:
        """Return the rows that go into no result."""
        used = set(self.rows_of(range(len(self.inputs))))
        return [row for row in range(len(self.sky)) if row not in used]


def of_bands(read: Targets, bands: tuple[str, ...]) -> Targets:
    """Return the targets of these bands; others are left out, as in jobs.

    Raises:
        TargetsError: if the targets have no bands.
    """
    combined = _combined_of(read)
    return read.of_rows(rows_of_bands(combined.bands if combined.has_bands else None, bands))


def results_of(
    read: Targets,
    result_options: ResultOptions,
    planes: tuple[int, int] | None,
    pixel_deg: float | Callable[[Targets], float | None],
) -> tuple[CombinedResults, float | None]:
    """Return the results to be made, and their pixel size in degrees: that of the first image.

    The boxes are made larger, since images may be rotated. A fault of a result becomes a fault of
    its targets, which are then not cut. Targets that the operation does not use have a fault, too.
    """
    combined = _combined_of(read)
    inputs = inputs_of(result_options, combined.groups, combined.bands)
    read.boxes = enlarge_boxes(read.boxes)
    sky = combined.sky.tolist()
    ids = [each.result for each in inputs]
    results = CombinedResults(ids, unique_names(ids), [each.rows for each in inputs], [], [], sky)
    for number, each in enumerate(inputs):
        for row, row_fault in each.faults.items():
            read.faults.setdefault(row, row_fault)
        if each.fault:
            results.faults[number] = each.fault
    scale = pixel_deg(read) if callable(pixel_deg) else pixel_deg
    for number, rows in enumerate(results.inputs):
        first = next((row for row in rows if row not in read.faults), None)
        grid = None
        if first is not None and scale is not None:
            try:
                ra, dec, size = sky[first]
                grid = Grid.around(ra, dec, size, scale)
            except RegionError as error:
                _refuse(results, read, number, str(error))
        results.grids.append(grid)
        results.digests.append(_digest(read, rows, sky, result_options, planes))
    return results, scale


def _combined_of(targets: Targets) -> CombinedTargets:
    if targets.combined is None:
        raise TargetsError("the targets: expected sky positions, found boxes")
    return targets.combined


def _refuse(results: CombinedResults, targets: Targets, number: int, fault: str) -> None:
    """Record why a result, and each of its rows, is not made."""
    results.faults[number] = fault
    for row in results.inputs[number]:
        targets.faults.setdefault(row, ("error", f"{results.ids[number]}: {fault}"))


def _digest(
    targets: Targets,
    rows: list[int],
    sky: list[list[float]],
    result_options: ResultOptions,
    planes: tuple[int, int] | None,
) -> str:
    images = [
        (
            targets.ids[row],
            targets.files[targets.file[row]],
            hdu_text(targets.hdus[targets.hdu[row]]),
            sky[row],
        )
        for row in rows
    ]
    parts = [
        result_options.operation,
        result_options.format,
        dict(result_options.own),
        planes,
        images,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class RowOutcome(NamedTuple):
    """Outcome of a row of the manifest."""

    row: int
    status: str
    reason: str = ""
    bytes: int = 0
    version: str = ""
    sha256: str = ""


class Maker(Protocol):
    """Protocol of objects that make results from rows that the engine cut."""

    def begin(self) -> Iterator[RowOutcome]:
        """Return the rows that end before anything is cut."""

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Return the rows that end with one outcome of the engine; none after a stop."""


class AsCut:
    """Maker that leaves the engine's files as they are."""

    def begin(self) -> Iterator[RowOutcome]:
        """Return nothing."""
        return iter(())

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Yield the row."""
        yield outcome


@dataclass(frozen=True)
class Bench:
    """Files and output of a run that makes results.

    Attributes:
        scratch: folder into which the engine cuts, row 7 as `7.fits`.
        output: output that takes the results.
        shown: name of the output in messages.
        kind: kind of the output.
        paths: paths of the results in the output, by row of the manifest.
        stopped: function that returns whether to stop.
    """

    scratch: Path
    output: Output
    shown: Path
    kind: OutputKind
    paths: dict[int, str]
    stopped: Callable[[], bool]

    def cut(self, row: int) -> Path:
        """Return the file that the engine cut for a row."""
        return self.scratch / f"{row}.fits"

    def put(self, outcome: RowOutcome, content: bytes) -> RowOutcome:
        """Write the result of a row.

        Raises:
            OutputError: if the result cannot be written.
        """
        self.output.put(self.paths[outcome.row], content)
        digest = digest_of(content)
        return outcome._replace(status="ok", reason="", **digest._asdict())


@dataclass
class Converter:
    """Maker that converts each cutout, such as to an array of pixels or a picture."""

    bench: Bench
    result_options: ResultOptions

    def begin(self) -> Iterator[RowOutcome]:
        """Return nothing."""
        return iter(())

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Yield the row. After a stop, a cutout that is not converted is not done."""
        if outcome.status != "ok":
            yield outcome
        elif not self.bench.stopped():
            yield self._convert(outcome)

    def _convert(self, outcome: RowOutcome) -> RowOutcome:
        cut = self.bench.cut(outcome.row)
        name = self.bench.shown / self.bench.paths[outcome.row]
        try:
            return self.bench.put(
                outcome, self.result_options.converting.convert(read_cutout(cut), name)
            )
        except (RegionError, OutputError) as error:
            return outcome._replace(status="error", reason=str(error), bytes=0, sha256="")
        finally:
            cut.unlink()


@dataclass
class Combiner:
    """Maker of results from several images each.

    Attributes:
        bench: files and output of the run.
        result_options: options of the results.
        results: results of all targets.
        todo: numbers of the results to make.
        first: row of the manifest of result 0.
        faults: status and reason of rows that are not cut.
        ids: ids of the rows.
    """

    bench: Bench
    result_options: ResultOptions
    results: CombinedResults
    todo: list[int]
    first: int
    faults: dict[int, tuple[str, str]]
    ids: list[str]
    _result_of_row: dict[int, int] = field(default_factory=dict, init=False)
    _images_left: dict[int, int] = field(default_factory=dict, init=False)
    _outcomes: dict[int, tuple[str, str]] = field(default_factory=dict, init=False)

    def begin(self) -> Iterator[RowOutcome]:
        """Yield the results that wait for no image."""
        for result in self.todo:
            rows = set(self.results.inputs[result])
            self._result_of_row.update(dict.fromkeys(rows, result))
            self._outcomes.update({row: self.faults[row] for row in rows if row in self.faults})
            self._images_left[result] = len(rows - self.faults.keys())
            if not self._images_left[result]:
                yield from self._make(result)

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Yield the row, and its result if this was the last image it waited for."""
        if outcome.status == "ok":
            if self.bench.stopped():
                return
            outcome = self._align(outcome)
        yield outcome
        self._outcomes[outcome.row] = outcome.status, outcome.reason
        result = self._result_of_row[outcome.row]
        self._images_left[result] -= 1
        if not self._images_left[result]:
            yield from self._make(result)

    def _pixels(self, row: int) -> Path:
        return self.bench.scratch / f"{row}.npy"

    def _align(self, outcome: RowOutcome) -> RowOutcome:
        """Resample the pixels of a row to the grid of its result."""
        ra, dec, _ = self.results.sky[outcome.row]
        grid = self.results.grids[self._result_of_row[outcome.row]]
        outcome = outcome._replace(bytes=0, sha256="")
        cut = self.bench.cut(outcome.row)
        try:
            if grid is None:
                raise RegionError("the size of its result is unknown")
            align(read_cutout(cut), grid.at(ra, dec), self._pixels(outcome.row))
        except NoOverlapError as error:
            return outcome._replace(status="no-overlap", reason=str(error))
        except (SwatheError, OSError) as error:
            return outcome._replace(status="error", reason=str(error))
        finally:
            cut.unlink()
        return outcome

    def _make(self, result: int) -> Iterator[RowOutcome]:
        """Make a result, unless the run is to stop."""
        row = self.first + result
        new = RowOutcome(row, "error", version=self.results.digests[result])
        rows = self.results.inputs[result]
        used = [each for each in rows if self._outcomes[each][0] == "ok"]
        grid = self.results.grids[result]
        if result in self.results.faults:
            yield new._replace(reason=self.results.faults[result])
            return
        if not used or grid is None:
            outcomes = [(self.ids[each], *self._outcomes[each]) for each in rows]
            status, reason = without_images(outcomes)
            yield new._replace(status=status, reason=reason)
            return
        path = self.bench.scratch / f"{row}{self.result_options.suffix}"
        inputs = [AlignedImage(self._pixels(each), *self.results.sky[each][:2]) for each in used]
        try:
            if self._write(path, grid, inputs):
                yield self.bench.put(new, self._content(path, self.bench.paths[row]))
        except (SwatheError, OSError) as error:
            yield new._replace(reason=str(error))
        finally:
            for each in used:
                self._pixels(each).unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def _write(self, path: Path, grid: Grid, images: list[AlignedImage]) -> bool:
        result_options, stopped = self.result_options, self.bench.stopped
        return not stopped() and result_options.combining.make(
            path, grid, images, result_options.own, stopped
        )

    def _content(self, path: Path, name: str) -> bytes:
        return _as_extensions(path, name) if self.bench.kind == "fits" else path.read_bytes()


def _as_extensions(path: Path, name: str) -> bytes:
    """Return the HDUs of a FITS file as extensions of another; the first gets a name."""
    from astropy.io import fits

    with fits.open(path) as hdus:
        image = fits.ImageHDU(hdus[0].data, hdus[0].header)
        # Set here, since astropy would write the name in capitals.
        image.header["EXTNAME"] = name
        into = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), image, *hdus[1:]]).writeto(into, checksum=True)
    return into.getvalue()[BLOCK:]
