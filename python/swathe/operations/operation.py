"""Operations: jobs and `cut_many` make results from the regions that the engine cuts.

An operation declares its formats and options. It chooses the images of each result, states the cost
of a result, and makes the results. Jobs, workers, `cut_many`, pages, the REST interface and the
commands ask `swathe.operations.registry` for it. A new operation is one module in
`swathe.operations.kinds`.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from swathe.core.errors import OptionError, RegionError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.core.row_table import RowTable
    from swathe.files.array import Array
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.array_file import ArrayFile
    from swathe.files.cutout import Cutout
    from swathe.operations.grid import AlignedImage, Grid

ALIGNING_MEMORY = 160
"""Bytes of memory per pixel of an image while it is resampled to a grid."""
LONGEST_OPTION = 500
"""Characters of an option that is a text."""
LONGEST_OBJECT = 50_000
"""Characters of an option that is an object of JSON."""
T = TypeVar("T")


@dataclass(frozen=True)
class ResultFormat:
    """Format of the results of an operation.

    Attributes:
        name: name in options, such as `fits`.
        title: name on pages.
        noun: one result in messages, such as `a picture`.
        suffix: suffix of the files.
        media_type: media type of the files.
        job_s: seconds assumed for each job, beside reading and cutting, until jobs have been
            measured.
        row_s: the same for each row.
        pixel_bytes: bytes per pixel of a result; `None`: those of the image's pixels, times planes.
        is_plain: whether the files that the engine cuts are the results.
        is_compressed: whether a result may have less than a byte per pixel.
        has_pictures: whether pages show pictures of results.
        memory_per_pixel: bytes of memory per pixel while a result is made; 0: no more than the
            pixels, which are bounded already.
    """

    name: str
    title: str
    noun: str
    suffix: str
    media_type: str
    job_s: float
    row_s: float
    pixel_bytes: int | None = None
    is_plain: bool = False
    is_compressed: bool = False
    memory_per_pixel: int = 0
    has_pictures: bool = True


def check_no_nul(name: str, value: Any) -> None:
    """Check that an option holds no character NUL, which no name of a file or array has.

    Raises:
        OptionError: If it does.
    """
    if isinstance(value, str) and "\0" in value:
        raise OptionError(f"{name}: expected no character NUL, found {short_text(value)}")


@dataclass(frozen=True)
class OperationOption:
    """Option that only one operation has.

    Attributes:
        name: name in Python, JSON and forms; `--name` in the shell.
        title: label on pages.
        help: description, a noun phrase.
        choices: its values and their labels on pages; empty: any text.
        default: value if it is not given.
        check: function that raises an `OptionError` for a text that is no value.
    """

    name: str
    title: str
    help: str
    choices: tuple[tuple[str, str], ...]
    default: Any
    check: Callable[[str], object] | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """Return the possible values."""
        return tuple(value for value, _ in self.choices)

    def read(self, value: Any) -> str:
        """Return a value that is possible; several texts are joined by commas.

        Raises:
            OptionError: If it is not.
        """
        if self.choices:
            if value not in self.values:
                choices = ", ".join(self.values)
                raise OptionError(
                    f"{self.name}: expected one of {choices}, found {short_text(value)}"
                )
            return str(value)
        several = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(each, str) for each in several):
            raise OptionError(f"{self.name}: expected a text, found {short_text(value)}")
        text = ",".join(several).strip()
        check_no_nul(self.name, text)
        if len(text) > LONGEST_OPTION:
            raise OptionError(
                f"{self.name}: expected at most {LONGEST_OPTION} characters, found {len(text):,}"
            )
        if self.check is not None:
            self.check(text)
        return text


class ObjectOption(OperationOption):
    """Option that is an object of JSON: numbers, texts and truth values by name."""

    def read(self, value: Any) -> Any:
        """Return the object, which may be given as JSON.

        Raises:
            OptionError: If it is no such object.
        """
        if isinstance(value, str):
            value = self._parse(value)
        if not isinstance(value, dict):
            raise OptionError(
                f'{self.name}: expected an object as {{"name": 1}}, found {short_text(value)}'
            )
        for name, each in value.items():
            is_finite = not isinstance(each, float) or math.isfinite(each)
            if not isinstance(name, str) or not isinstance(each, str | int | float | bool):
                raise OptionError(
                    f"{self.name}: {short_text(name)}: expected a number, a text, true or false, "
                    f"found {short_text(each)}"
                )
            if not is_finite:
                raise OptionError(f"{self.name}: {short_text(name)}: expected a finite number")
            for text in (name, each):
                check_no_nul(f"{self.name}: {short_text(name)}", text)
        if len(json.dumps(value)) > LONGEST_OBJECT:
            raise OptionError(f"{self.name}: expected at most {LONGEST_OBJECT:,} characters")
        return value

    def _parse(self, text: str) -> Any:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if len(dict(pairs)) < len(pairs):
                raise OptionError(f"{self.name}: expected each name once")
            return dict(pairs)

        try:
            return json.loads(text[: LONGEST_OBJECT + 1] or "{}", object_pairs_hook=unique)
        except (ValueError, RecursionError) as error:
            raise OptionError(
                f"{self.name}: expected JSON of at most {LONGEST_OBJECT:,} characters, found "
                f"{short_text(text)}"
            ) from error


@dataclass(frozen=True)
class NumberOption(OperationOption):
    """Option that is a number.

    Attributes:
        least: least value.
        most: greatest value.
        is_whole: whether it has no fraction.
    """

    least: float = -math.inf
    most: float = math.inf
    is_whole: bool = False

    def read(self, value: Any) -> Any:
        """Return the number, which may be given as text.

        Raises:
            OptionError: If it is none, or out of bounds.
        """
        kind = int if self.is_whole else float
        number: float | None = None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                number = kind(value)
                if not isinstance(value, str) and number != value:
                    number = None
        if number is None or not self.least <= number <= self.most:
            noun = "a whole number" if self.is_whole else "a number"
            raise OptionError(
                f"{self.name}: expected {noun} from {self.least:g} to {self.most:g}, found "
                f"{short_text(value)}"
            )
        return number


class Operation(ABC):
    """Operation: one of the classes below, by what its results are made from."""

    name: ClassVar[str]
    """Name in options."""
    title: ClassVar[str]
    """Label on pages."""
    formats: ClassVar[tuple[ResultFormat, ...]]
    """Formats of the results, the default first."""
    options: ClassVar[tuple[OperationOption, ...]] = ()
    """Options that only this operation has."""
    is_combined: ClassVar[bool] = False
    """Whether a result is made from several images or granules."""
    reads_granules: ClassVar[bool] = False
    """Whether its targets are granules, which are read whole. Only jobs take such targets."""
    needs_grid: ClassVar[bool] = True
    """Whether the pixel grid of a result must be known before it is made."""
    hdus: ClassVar[int] = 1
    """HDUs of a FITS result, if its WCS needs no tables."""

    def check_bands(self, bands: Sequence[str], *, are_needed: bool) -> None:
        """Check the option `bands`.

        Args:
            bands: names given, in order.
            are_needed: whether the images are searched by band, as for sky positions in a job.

        Raises:
            OptionError: If the operation has no use for them, or needs others.
        """
        if bands and not are_needed:
            raise OptionError(
                f"bands: expected none for operation {self.name} of listed files, "
                f"found {len(bands)}"
            )

    def by_targets(
        self,
        regions: Callable[[], T],
        granules: Callable[[ReducingOperation], T],  # noqa: ARG002 - for operations on granules
        programs: Callable[[], T],  # noqa: ARG002 - for operations that run programs
    ) -> T:
        """Return the result of the function for the targets that the operation takes.

        Args:
            regions: function for regions of images and arrays.
            granules: function for granules, called with the operation.
            programs: function for granules that a program of a user reads.
        """
        return regions()

    def choose_images(
        self,
        image_bands: Sequence[str],
        bands: Sequence[str],  # noqa: ARG002 - for operations that choose
        distance: Callable[[int], float] | None,  # noqa: ARG002
    ) -> tuple[list[int], str]:
        """Choose the images of a target or a result; by default all.

        Args:
            image_bands: band of each image that could be used.
            bands: the option `bands`.
            distance: function that returns the angle between the target and the centre of an
                image, for images that were searched; `None` for images that were listed.

        Returns:
            Indices of the images, in the order of use, and the reason if there are none.
        """
        return list(range(len(image_bands))), ""

    def shown_array(self, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - for those with arrays
        """Return the name of the array of a result that pictures show; empty for images.

        Args:
            options: values of the operation's own options.
        """
        return ""

    def result_bytes(self, options: Mapping[str, Any]) -> int | None:  # noqa: ARG002 - as above
        """Return the size of a result in bytes; `None` if its images decide it.

        Args:
            options: values of the operation's own options.
        """
        return None


class Interruption(Exception):  # noqa: N818 - no error: nobody wants the result any more
    """The work was stopped before a result was made."""


def check_stop(should_stop: Callable[[], bool]) -> None:
    """Check whether to continue; called between the steps of long work.

    Raises:
        Interruption: If the work is to stop.
    """
    if should_stop():
        raise Interruption


class ConvertingOperation(Operation):
    """Operation that makes each result from one image."""

    @abstractmethod
    def convert(
        self,
        cutout: Cutout,
        name: Path,
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bytes:
        """Return the content of a result, in the format of the suffix of `name`.

        Args:
            cutout: the cut of an image.
            name: name of the result.
            options: values of the operation's own options.
            should_stop: function that returns whether to stop; long work calls `check_stop`.

        Raises:
            RegionError: If the operation or the format cannot use the cutout.
            Interruption: If the work was stopped before the end.
        """

    def convert_array(
        self,
        cutout: ArrayCutout,
        name: Path,
        options: Mapping[str, Any],  # noqa: ARG002 - for operations with options
        should_stop: Callable[[], bool],  # noqa: ARG002 - for operations that take long
    ) -> bytes:
        """Return the content of a result, as `convert` does, of a cut of an array.

        Raises:
            SwatheError: If the operation or the format cannot use the cutout.
            Interruption: If the work was stopped before the end.
        """
        from swathe.files.array_outputs import saving

        into = BytesIO()
        saving(cutout, name)(into)
        return into.getvalue()


class GroupingOperation(Operation):
    """Operation that makes each result from a group of targets."""

    is_combined = True

    def name_results(
        self,
        targets: Sequence[str],  # noqa: ARG002 - for operations with a result for each target
        groups: Sequence[str],
    ) -> list[str]:
        """Return for each target the name of the result it goes into.

        Args:
            targets: id of the target of each image, if a target has several images.
            groups: group of each image or granule; empty if the list has no groups.
        """
        return [group or self.name for group in groups]

    @abstractmethod
    def combine(
        self,
        path: Path,
        grid: Grid | None,
        rows: RowTable,
        pixels: Sequence[Path],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write a result; return false if it was stopped before the end.

        Args:
            path: file of the result.
            grid: pixel grid of the result, if the operation needs one and it is known.
            rows: rows of the images or granules, in order.
            pixels: file of each of them, on the grid or as `read_granule` writes it.
            options: values of the operation's own options.
            should_stop: function that returns whether to stop.

        Raises:
            RegionError: If the images cannot be combined, or the size of the result is not known.
            SwatheError: If granules cannot be put together.
        """


class CombiningOperation(GroupingOperation):
    """Operation that makes each result from the images of a group, resampled to one grid."""

    def combine(
        self,
        path: Path,
        grid: Grid | None,
        rows: RowTable,
        pixels: Sequence[Path],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write a result of the resampled images; return false if it was stopped."""
        from swathe.operations.grid import AlignedImage

        if grid is None:
            raise RegionError("the size of its result is not known")
        positions = zip(pixels, rows.sky[:, :2].tolist(), strict=True)
        images = [AlignedImage(file, ra, dec) for file, (ra, dec) in positions]
        return not should_stop() and self.make(path, grid, images, options, should_stop)

    @abstractmethod
    def make(
        self,
        path: Path,
        grid: Grid,
        images: Sequence[AlignedImage],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write a result; return false if it was stopped before the end.

        Args:
            path: file of the result.
            grid: pixel grid of the result and of the images, whose positions differ.
            images: the images, in order.
            options: values of the operation's own options.
            should_stop: function that returns whether to stop.

        Raises:
            RegionError: If the images cannot be combined.
        """


class ReducingOperation(GroupingOperation):
    """Operation that makes each result from the granules of a group."""

    reads_granules = True
    needs_grid = False

    def by_targets(
        self,
        regions: Callable[[], T],  # noqa: ARG002 - for other operations
        granules: Callable[[ReducingOperation], T],
        programs: Callable[[], T],  # noqa: ARG002 - for other operations
    ) -> T:
        """Return the result of the function for granules."""
        return granules(self)

    def combine(
        self,
        path: Path,
        grid: Grid | None,  # noqa: ARG002 - the options have the grid
        rows: RowTable,
        pixels: Sequence[Path],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write a result of the granules; return false if it was stopped."""
        return self.reduce(path, list(zip(rows.id, pixels, strict=True)), options, should_stop)

    @abstractmethod
    def read_granule(
        self,
        source: str,
        array: str | None,
        options: Mapping[str, Any],
        path: Path,
        most_bytes: int | None,
        count: Callable[[Mapping[str, Any]], None],
    ) -> str:
        """Read a granule, write what the result needs of it to a file, and return its version.

        Args:
            source: path, URL, or `STORE:path` of the granule.
            array: path of its array; `None`: that of the options, or the only one.
            options: values of the operation's own options.
            path: file that is written.
            most_bytes: largest size of an array that is read; `None`: any.
            count: function that is called with the traffic of the file, also after an error.

        Raises:
            SwatheError: If the granule cannot be read, or does not suit the options.
        """

    @abstractmethod
    def reduce(
        self,
        path: Path,
        granules: Sequence[tuple[str, Path]],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write a result; return false if it was stopped before the end.

        Args:
            path: file of the result.
            granules: name of each granule, and its file from `read_granule`, in order.
            options: values of the operation's own options.
            should_stop: function that returns whether to stop.

        Raises:
            SwatheError: If the granules cannot be put together.
        """

    @abstractmethod
    def arrays_of(
        self, file: ArrayFile, array: str | None, options: Mapping[str, Any]
    ) -> list[Array]:
        """Return the arrays of a granule that are read: the variable first.

        Raises:
            SwatheError: If the granule lacks one of them.
        """

    @abstractmethod
    def shown_array(self, options: Mapping[str, Any]) -> str:
        """Return the name of the array of a result that pictures show."""

    @abstractmethod
    def result_bytes(self, options: Mapping[str, Any]) -> int:
        """Return the size of a result in bytes."""


class ProgramOperation(Operation):
    """Operation whose results a user's program makes from groups of granules, in the sandbox."""

    is_combined = True
    reads_granules = True
    needs_grid = False

    def by_targets(
        self,
        regions: Callable[[], T],  # noqa: ARG002 - for other operations
        granules: Callable[[ReducingOperation], T],  # noqa: ARG002
        programs: Callable[[], T],
    ) -> T:
        """Return the result of the function for programs."""
        return programs()
