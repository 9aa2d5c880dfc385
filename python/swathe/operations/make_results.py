"""Make results from the files that the engine cut: other formats, stacks, colour pictures.

A result from several images is made as soon as all of them are cut. The images are combined in the
order in which they were listed. Options have the same names as in jobs of a portal, and give the
same pixels.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from swathe.core.errors import OutputError, RegionError, SwatheError
from swathe.core.row_record import fault_of
from swathe.costs.format_costs import SOURCE
from swathe.files.conversion import digest_of, read_cutout
from swathe.files.hdu import BLOCK
from swathe.files.targets.result_names import unique_names
from swathe.operations.array_results import is_of_array
from swathe.operations.combination import align_cutout, without_images
from swathe.operations.grid import Grid, enlarge_boxes, scale_deg
from swathe.operations.inputs import inputs_of, rows_of_bands
from swathe.operations.operation import Interruption

if TYPE_CHECKING:
    from swathe._swathe import Output, OutputKind
    from swathe.core.row_record import Fault, RowRecord, RowStatus
    from swathe.core.row_table import RowTable
    from swathe.operations.array_results import ArrayResults
    from swathe.operations.registry import ResultOptions


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
    """

    ids: list[str]
    names: list[str]
    inputs: list[list[int]]
    grids: list[Grid | None]
    digests: list[str]
    faults: dict[int, str] = field(default_factory=dict)

    def rows_of(self, results: Iterable[int]) -> list[int]:
        """Return the rows of the images of these results, in their order."""
        return sorted({row for result in results for row in self.inputs[result]})

    def unused_rows(self, count: int) -> list[int]:
        """Return the rows of all `count` that go into no result."""
        input_rows = set(self.rows_of(range(len(self.inputs))))
        return [row for row in range(count) if row not in input_rows]


def of_bands(rows: RowTable, bands: tuple[str, ...]) -> RowTable:
    """Return the rows of these bands; others are left out, as in jobs.

    Raises:
        TargetsError: If the rows have no bands.
    """
    bands_of_rows = None if rows.band is None else rows.band.list()
    rows = rows.take(rows_of_bands(bands_of_rows, bands))
    return replace(rows, name=unique_names(rows.id))


def results_of(
    rows: RowTable,
    result_options: ResultOptions,
    planes: tuple[int, int] | None,
    pixel_deg: float | None,
) -> tuple[RowTable, CombinedResults, float | None]:
    """Return the rows to cut, the results to be made of them, and the results' pixel size.

    The boxes are made larger, since images may be rotated. A fault of a result becomes a fault of
    its rows, which are then not cut. Rows that the operation does not use have a fault, too.

    Args:
        rows: rows with groups.
        result_options: options of the results.
        planes: planes of the images.
        pixel_deg: pixel size of the results in degrees; by default that of the first image.
    """
    groups, bands = (
        [""] * len(rows) if column is None else column.list() for column in (rows.group, rows.band)
    )
    inputs_of_results = inputs_of(result_options, groups, bands)
    ids = [each.result for each in inputs_of_results]
    images_of_results = [each.rows for each in inputs_of_results]
    results = CombinedResults(ids, unique_names(ids), images_of_results, [], [])
    sound = rows.sound
    row_faults: dict[int, Fault] = {}
    for number, each in enumerate(inputs_of_results):
        row_faults.update({row: fault for row, fault in each.faults.items() if sound[row]})
        if each.fault:
            results.faults[number] = each.fault
    rows = replace(rows, box=enlarge_boxes(rows.box)).with_status(row_faults)
    scale = scale_deg(rows) if pixel_deg is None else pixel_deg
    _add_grids(rows, results, scale)
    images = list(zip(rows.id, rows.source.list(), rows.hdu.list(), rows.sky.tolist(), strict=True))
    results.digests += [
        _digest([images[row] for row in inputs], result_options, planes)
        for inputs in results.inputs
    ]
    return _refuse(rows, results), results, scale


def _add_grids(rows: RowTable, results: CombinedResults, scale: float | None) -> None:
    """Add the grid of each result around its first readable image; one too large is a fault."""
    sound = rows.sound
    for number, inputs in enumerate(results.inputs):
        first = next((row for row in inputs if sound[row]), None)
        grid = None
        if first is not None and scale is not None:
            try:
                ra, dec, size = rows.sky[first].tolist()
                grid = Grid.around(ra, dec, size, scale)
            except RegionError as error:
                results.faults[number] = str(error)
        results.grids.append(grid)


def _refuse(rows: RowTable, results: CombinedResults) -> RowTable:
    """Return the rows with the faults of their results."""
    sound = rows.sound
    faults: dict[int, Fault] = {
        row: ("error", f"{results.ids[number]}: {fault}")
        for number, fault in results.faults.items()
        for row in results.inputs[number]
        if sound[row]
    }
    return rows.with_status(faults)


def _digest(
    images: list[tuple[str, str, str | None, list[float]]],
    result_options: ResultOptions,
    planes: tuple[int, int] | None,
) -> str:
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
    status: RowStatus
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


@dataclass(frozen=True)
class ResultFiles:
    """Files and output of a run that makes results.

    Attributes:
        scratch: folder into which the engine cuts, row 7 as `7.fits`.
        output: output that takes the results.
        output_name: name of the output in messages.
        kind: kind of the output.
        paths: paths of the results in the output, by row of the manifest.
        should_stop: function that returns whether to stop.
    """

    scratch: Path
    output: Output
    output_name: Path
    kind: OutputKind
    paths: dict[int, str]
    should_stop: Callable[[], bool]

    def cut(self, row: int) -> Path:
        """Return the file that the engine cut for a row."""
        return self.scratch / f"{row}.fits"

    def put(self, outcome: RowOutcome, content: bytes) -> RowOutcome:
        """Write the result of a row.

        Raises:
            OutputError: If the result cannot be written.
        """
        self.output.put(self.paths[outcome.row], content)
        digest = digest_of(content)
        return outcome._replace(status="ok", reason="", **digest._asdict())


@dataclass
class Converter:
    """Maker that converts each cutout, such as to an array of pixels or a picture.

    Attributes:
        files: files and output of the run.
        result_options: options of the results.
        rows: rows of the manifest.
        arrays: maker of results of arrays.
    """

    files: ResultFiles
    result_options: ResultOptions
    rows: RowTable
    arrays: ArrayResults

    def begin(self) -> Iterator[RowOutcome]:
        """Return nothing."""
        return iter(())

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Yield the row. After a stop, a cutout that is not converted is not done."""
        row = self.rows[outcome.row]
        if self.files.should_stop():
            if outcome.status != "ok":
                yield outcome
            return
        try:
            if is_of_array(row):
                outcome = self._of_array(row, outcome)
            elif outcome.status == "ok":
                outcome = self._convert(outcome)
        except Interruption:
            return
        yield outcome

    def _name(self, row: int) -> Path:
        return self.files.output_name / self.files.paths[row]

    def _convert(self, outcome: RowOutcome) -> RowOutcome:
        cut, name = self.files.cut(outcome.row), self._name(outcome.row)
        try:
            if self.result_options.format == SOURCE:
                return self.files.put(outcome, cut.read_bytes())
            should_stop = self.files.should_stop
            content = self.result_options.convert(read_cutout(cut), name, should_stop)
            return self.files.put(outcome, content)
        except (RegionError, OutputError) as error:
            return outcome._replace(status="error", reason=str(error), bytes=0, sha256="")
        finally:
            cut.unlink()

    def _of_array(self, row: RowRecord, outcome: RowOutcome) -> RowOutcome:
        """Make the result of an array, also of one that the engine does not read."""
        reason, cut = "", None
        try:
            if outcome.status == "ok":
                cut = self.files.cut(outcome.row)
            else:
                why = self.arrays.why_apart(row)
                if why is None:
                    return outcome
                reason, outcome = why, outcome._replace(version=self.arrays.version(row))
            content = self.arrays.content(row, cut, outcome.version, self._name(outcome.row))
            return self.files.put(outcome, content)._replace(reason=reason)
        except SwatheError as error:
            status, reason = fault_of(error)
            return outcome._replace(status=status, reason=reason, bytes=0, sha256="")
        finally:
            if cut is not None:
                cut.unlink()


@dataclass
class Combiner:
    """Maker of results from several images each.

    Attributes:
        files: files and output of the run.
        result_options: options of the results.
        results: results of all targets.
        todo: numbers of the results to make.
        first: row of the manifest of result 0.
        rows: rows of the images.
    """

    files: ResultFiles
    result_options: ResultOptions
    results: CombinedResults
    todo: list[int]
    first: int
    rows: RowTable
    _result_of_row: dict[int, int] = field(default_factory=dict, init=False)
    _images_left: dict[int, int] = field(default_factory=dict, init=False)
    _outcomes: dict[int, Fault] = field(default_factory=dict, init=False)

    def begin(self) -> Iterator[RowOutcome]:
        """Yield the results that wait for no image."""
        faults = self.rows.faults()
        self._outcomes.update(faults)
        for result in self.todo:
            rows = set(self.results.inputs[result])
            self._result_of_row.update(dict.fromkeys(rows, result))
            self._images_left[result] = len(rows - faults.keys())
            if not self._images_left[result]:
                yield from self._make(result)

    def take(self, outcome: RowOutcome) -> Iterator[RowOutcome]:
        """Yield the row, and its result if this was the last image it waited for."""
        if outcome.status == "ok":
            if self.files.should_stop():
                return
            outcome = self._align(outcome)
        yield outcome
        self._outcomes[outcome.row] = outcome.status, outcome.reason
        result = self._result_of_row[outcome.row]
        self._images_left[result] -= 1
        if not self._images_left[result]:
            yield from self._make(result)

    def _pixels(self, row: int) -> Path:
        return self.files.scratch / f"{row}.npy"

    def _align(self, outcome: RowOutcome) -> RowOutcome:
        """Resample the pixels of a row to the grid of its result."""
        row = outcome.row
        grid = self.results.grids[self._result_of_row[row]]
        cut, sky = self.files.cut(row), self.rows.sky[row].tolist()
        try:
            status, reason = align_cutout(cut, grid, sky, self._pixels(row))
        except OSError as error:  # the folder of the run is full, for example
            status, reason = "error", str(error)
        return outcome._replace(status=status, reason=reason, bytes=0, sha256="")

    def _make(self, result: int) -> Iterator[RowOutcome]:
        """Make a result, unless the run is to stop."""
        row = self.first + result
        new = RowOutcome(row, "error", version=self.results.digests[result])
        if result in self.results.faults:
            yield new._replace(reason=self.results.faults[result])
            return
        inputs = self.results.inputs[result]
        outcomes = {at: self._outcomes[each] for at, each in enumerate(inputs)}
        rows = self.rows.take(inputs).with_status(outcomes)
        input_rows, grid = rows.take(rows.sound), self.results.grids[result]
        if not len(input_rows) or grid is None:
            status, reason = without_images(rows)
            yield new._replace(status=status, reason=reason)
            return
        path = self.files.scratch / f"{row}{self.result_options.suffix}"
        pixels = [self._pixels(each) for each in inputs if self._outcomes[each][0] == "ok"]
        try:
            options, should_stop = self.result_options, self.files.should_stop
            combine = options.grouping.combine
            if combine(path, grid, input_rows, pixels, options.own, should_stop):
                yield self.files.put(new, self._content(path, self.files.paths[row]))
        except (SwatheError, OSError) as error:
            yield new._replace(reason=str(error))
        finally:
            for file in pixels:
                file.unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def _content(self, path: Path, name: str) -> bytes:
        return _as_extensions(path, name) if self.files.kind == "fits" else path.read_bytes()


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
