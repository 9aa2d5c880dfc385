"""Results that are made here of what the engine cut: other formats, stacks, pictures in colour.

Results made of several images are made as soon as all of theirs are cut, in the order in which that
is. The words are those of jobs of a portal, and so are the pixels.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, get_args

from swathe.core.errors import NoOverlapError, OutputError, RegionError, SwatheError, TargetsError
from swathe.files.targets.target_list import hdu_text, unique_names
from swathe.operations.formats import (
    BANDS,
    SUFFIXES,
    Format,
    Operation,
    Stack,
    converted,
    is_combined,
    whole,
)
from swathe.operations.stack import Grid, Input, align, grown, made, without_images

if TYPE_CHECKING:
    from swathe._swathe import Output, OutputKind
    from swathe.files.targets.target_list import Combined, Targets

BLOCK = 2880


@dataclass(frozen=True)
class Making:
    """What is made of the targets, as the options of a job say it."""

    operation: Operation = "cut"
    format: Format = "fits"
    stack: Stack = "mean"
    bands: tuple[str, ...] = ()

    @property
    def is_combined(self) -> bool:
        """Tell whether results are made of several images."""
        return is_combined(self.operation, self.format)

    @property
    def is_made(self) -> bool:
        """Tell whether results are anything but what the engine cuts."""
        return self.is_combined or self.format != "fits"

    @property
    def extensions(self) -> int:
        """Return how many a result is in a FITS file: with the counts behind a stack, two."""
        return 2 if self.operation == "stack" else 1

    def check(self) -> None:
        """Check that the options go together.

        Raises:
            OutputError: saying which does not.
        """
        for name, kinds in (("operation", Operation), ("format", Format), ("stack", Stack)):
            if (value := getattr(self, name)) not in get_args(kinds):
                expected = ", ".join(get_args(kinds))
                raise OutputError(f"{name}: expected one of {expected}, found {value!r}")
        if self.operation == "stack" and self.format != "fits":
            raise OutputError(f"format: expected fits, as a stack is, found {self.format}")
        if self.operation != "stack" and self.stack != "mean":
            raise OutputError(f"stack: expected operation stack with it, found {self.operation}")
        if self.bands and self.format != "rgb":
            raise OutputError(f"bands: expected format rgb with them, found {self.format}")
        if self.bands and len(self.bands) != BANDS:
            raise OutputError(f"bands: expected three, red first, found {len(self.bands)}")


@dataclass
class Results:
    """What is made of several images.

    Attributes:
        ids: of the groups.
        names: of their files, without suffix.
        inputs: the rows that go into each, in their order.
        grids: of each, where an image of it can be read.
        digests: of each, of what was asked to go in: a run that goes on compares them.
        faults: why some cannot be made.
        sky: of each row: right ascension, declination and size in degrees.
    """

    ids: list[str]
    names: list[str]
    inputs: list[list[int]]
    grids: list[Grid | None]
    digests: list[str]
    sky: list[list[float]]
    faults: dict[int, str] = field(default_factory=dict)

    def rows_of(self, results: Iterable[int]) -> list[int]:
        """Return the rows that go into some results, in their order."""
        return sorted({row for result in results for row in self.inputs[result]})


def of_bands(read: Targets, bands: tuple[str, ...]) -> Targets:
    """Return the targets of some bands: others are left out, as jobs leave them out.

    Raises:
        TargetsError: where targets do not say their band.
    """
    combined = _combined(read)
    if not combined.has_bands:
        raise TargetsError("the targets: expected a column 'band', as bands are given; found none")
    return read.of_rows([row for row, band in enumerate(combined.bands) if band in bands])


def results_of(
    read: Targets,
    making: Making,
    planes: tuple[int, int] | None,
    pixel_deg: float | Callable[[Targets], float | None],
) -> tuple[Results, float | None]:
    """Say what is made of targets, and how large pixels are, in degrees: as in the first image.

    Boxes become larger, as images may be turned. What is wrong with a result is a fault of its
    targets, which are not cut.
    """
    combined = _combined(read)
    groups: dict[str, list[int]] = {}
    usual = "stack" if making.operation == "stack" else "rgb"
    for row, group in enumerate(combined.groups):
        groups.setdefault(group or usual, []).append(row)
    read.boxes = grown(read.boxes)
    sky = combined.sky.tolist()
    results = Results(list(groups), unique_names(list(groups)), [], [], [], sky)
    for number, rows in enumerate(groups.values()):
        inputs, fault = _chosen(rows, combined, making)
        results.inputs.append(inputs if fault is None else rows)
        if fault is not None:
            _refuse(results, read, number, fault)
    scale = pixel_deg(read) if callable(pixel_deg) else pixel_deg
    for number, inputs in enumerate(results.inputs):
        first = next((row for row in inputs if row not in read.faults), None)
        grid = None
        if first is not None and scale is not None:
            try:
                ra, dec, size = sky[first]
                grid = Grid.around(ra, dec, size, scale)
            except RegionError as error:
                _refuse(results, read, number, str(error))
        results.grids.append(grid)
        results.digests.append(_digest(read, inputs, sky, making, planes))
    return results, scale


def _combined(read: Targets) -> Combined:
    if read.combined is None:
        raise TargetsError("the targets: expected places in the sky, found boxes")
    return read.combined


def _refuse(results: Results, read: Targets, number: int, fault: str) -> None:
    """Note why a result, and so each of its rows, is not made."""
    results.faults[number] = fault
    for row in results.inputs[number]:
        read.faults.setdefault(row, ("error", f"{results.ids[number]}: {fault}"))


def _chosen(rows: list[int], combined: Combined, making: Making) -> tuple[list[int], str | None]:
    """Return the rows that go into a result in their order, or why there cannot be one."""
    if making.format != "rgb":
        return rows, None
    if not making.bands:
        fault = f"a picture needs three images, red first; there are {len(rows)}"
        return rows, None if len(rows) == BANDS else fault
    chosen = []
    for band in making.bands:
        of_band = [row for row in rows if combined.bands[row] == band]
        if len(of_band) != 1:
            return rows, f"a picture needs one image of band {band}; there are {len(of_band)}"
        chosen += of_band
    return chosen, None


def _digest(
    read: Targets,
    rows: list[int],
    sky: list[list[float]],
    making: Making,
    planes: tuple[int, int] | None,
) -> str:
    images = [
        (read.ids[row], read.files[read.file[row]], hdu_text(read.hdus[read.hdu[row]]), sky[row])
        for row in rows
    ]
    asked = [making.operation, making.format, making.stack, planes, images]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


class Ended(NamedTuple):
    """How a row of the manifest ended."""

    row: int
    status: str
    reason: str = ""
    bytes: int = 0
    version: str = ""
    sha256: str = ""


class Maker(Protocol):
    """Makes results of rows that the engine cut."""

    def begin(self) -> Iterator[Ended]:
        """Give the rows that have ended before anything is cut."""

    def take(self, told: Ended) -> Iterator[Ended]:
        """Give the rows that end with what the engine tells of one; none if it is to stop."""


class AsCut:
    """Leaves what the engine wrote as it is."""

    def begin(self) -> Iterator[Ended]:
        """Give nothing."""
        return iter(())

    def take(self, told: Ended) -> Iterator[Ended]:
        """Give the row."""
        yield told


@dataclass(frozen=True)
class Bench:
    """Where results are made.

    Attributes:
        scratch: a folder; the engine cuts row 7 into `7.fits` there.
        output: takes the results.
        shown: name of the output, for messages.
        kind: of output.
        paths: of results in it, by row of the manifest.
        stopped: whether to stop.
    """

    scratch: Path
    output: Output
    shown: Path
    kind: OutputKind
    paths: dict[int, str]
    stopped: Callable[[], bool]

    def cut(self, row: int) -> Path:
        """Return what the engine cut for a row."""
        return self.scratch / f"{row}.fits"

    def put(self, ended: Ended, content: bytes) -> Ended:
        """Write the result of a row.

        Raises:
            OutputError: if it cannot be written.
        """
        self.output.put(self.paths[ended.row], content)
        sha256 = hashlib.sha256(content).hexdigest()
        return ended._replace(status="ok", reason="", bytes=len(content), sha256=sha256)


@dataclass
class Converter:
    """Makes pixels or a picture of each cutout."""

    bench: Bench

    def begin(self) -> Iterator[Ended]:
        """Give nothing."""
        return iter(())

    def take(self, told: Ended) -> Iterator[Ended]:
        """Give the row. What was cut and is not converted when it is to stop is not done."""
        if told.status != "ok":
            yield told
        elif not self.bench.stopped():
            yield self._converted(told)

    def _converted(self, told: Ended) -> Ended:
        name = self.bench.shown / self.bench.paths[told.row]
        try:
            return self.bench.put(told, converted(self.bench.cut(told.row), name))
        except (RegionError, OutputError) as error:
            return told._replace(status="error", reason=str(error), bytes=0, sha256="")


@dataclass
class Combiner:
    """Makes stacks, and pictures of three bands.

    Attributes:
        bench: where.
        making: what.
        results: of all targets.
        todo: numbers of those that are to be made.
        first: row of the manifest of result 0.
        faults: status and reason of rows that are not cut.
        ids: of the rows.
    """

    bench: Bench
    making: Making
    results: Results
    todo: list[int]
    first: int
    faults: dict[int, tuple[str, str]]
    ids: list[str]
    _into: dict[int, int] = field(default_factory=dict, init=False)
    _left: dict[int, int] = field(default_factory=dict, init=False)
    _ended: dict[int, tuple[str, str]] = field(default_factory=dict, init=False)

    def begin(self) -> Iterator[Ended]:
        """Give the results of which there is no image to wait for."""
        for result in self.todo:
            rows = set(self.results.inputs[result])
            self._into.update(dict.fromkeys(rows, result))
            self._ended.update({row: self.faults[row] for row in rows if row in self.faults})
            self._left[result] = len(rows - self.faults.keys())
            if not self._left[result]:
                yield from self._made(result)

    def take(self, told: Ended) -> Iterator[Ended]:
        """Give the row, and its result if that was the last it waited for."""
        if told.status == "ok":
            if self.bench.stopped():
                return
            told = self._aligned(told)
        yield told
        self._ended[told.row] = told.status, told.reason
        result = self._into[told.row]
        self._left[result] -= 1
        if not self._left[result]:
            yield from self._made(result)

    def _pixels(self, row: int) -> Path:
        return self.bench.scratch / f"{row}.npy"

    def _aligned(self, told: Ended) -> Ended:
        """Put the pixels of a row onto the grid of its result."""
        ra, dec, _ = self.results.sky[told.row]
        grid = self.results.grids[self._into[told.row]]
        told = told._replace(bytes=0, sha256="")
        cut = self.bench.cut(told.row)
        try:
            if grid is None:
                raise RegionError("the size of its result is not known")
            align(whole(cut), grid.at(ra, dec), self._pixels(told.row))
        except NoOverlapError as error:
            return told._replace(status="no-overlap", reason=str(error))
        except (SwatheError, OSError) as error:
            return told._replace(status="error", reason=str(error))
        finally:
            cut.unlink()
        return told

    def _made(self, result: int) -> Iterator[Ended]:
        """Make a result, unless it is to stop."""
        row = self.first + result
        new = Ended(row, "error", version=self.results.digests[result])
        rows = self.results.inputs[result]
        used = [each for each in rows if self._ended[each][0] == "ok"]
        grid = self.results.grids[result]
        if result in self.results.faults:
            yield new._replace(reason=self.results.faults[result])
            return
        if not used or grid is None:
            told = [(self.ids[each], *self._ended[each]) for each in rows]
            status, reason = without_images(told)
            yield new._replace(status=status, reason=reason)
            return
        path = self.bench.scratch / f"{row}{SUFFIXES[self.making.format]}"
        inputs = [Input(self._pixels(each), *self.results.sky[each][:2]) for each in used]
        try:
            if self._write(path, grid, inputs):
                yield self.bench.put(new, self._content(path, self.bench.paths[row]))
        except (SwatheError, OSError) as error:
            yield new._replace(reason=str(error))
        finally:
            for each in used:
                self._pixels(each).unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def _write(self, path: Path, grid: Grid, inputs: list[Input]) -> bool:
        making, stopped = self.making, self.bench.stopped
        return not stopped() and made(path, grid, inputs, making.format, making.stack, stopped)

    def _content(self, path: Path, name: str) -> bytes:
        return _as_extensions(path, name) if self.bench.kind == "fits" else path.read_bytes()


def _as_extensions(path: Path, name: str) -> bytes:
    """Return a stack and its counts as extensions of a FITS file."""
    from astropy.io import fits

    with fits.open(path) as hdus:
        image = fits.ImageHDU(hdus[0].data, hdus[0].header)
        # Set here, as it is: astropy would write it in capitals.
        image.header["EXTNAME"] = name
        into = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), image, hdus[1]]).writeto(into, checksum=True)
    return into.getvalue()[BLOCK:]
