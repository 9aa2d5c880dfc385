"""Operations: jobs and `cut_many` make results from the regions that the engine cuts.

An operation declares its formats and options. It chooses the images of each result, states the cost
of a result, and makes the results. Jobs, workers, `cut_many`, pages, the REST interface and the
commands ask `swathe.operations.registry` for it. A new operation is one module in
`swathe.operations.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from swathe.core.errors import OptionError, RegionError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.core.row_table import RowTable
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile
    from swathe.files.cutout import Cutout
    from swathe.operations.grid import AlignedImage, Grid

ALIGNING_MEMORY = 160
"""Bytes of memory per pixel of an image while it is resampled to a grid."""
LONGEST_OPTION = 500
"""Characters of an option that is a text."""


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
    default: str
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
        if len(text) > LONGEST_OPTION:
            raise OptionError(
                f"{self.name}: expected at most {LONGEST_OPTION} characters, found {len(text):,}"
            )
        if self.check is not None:
            self.check(text)
        return text


class Operation(ABC):
    """Operation: a `ConvertingOperation`, a `CombiningOperation` or a `ReducingOperation`."""

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


class ConvertingOperation(Operation):
    """Operation that makes each result from one image."""

    @abstractmethod
    def convert(self, cutout: Cutout, name: Path) -> bytes:
        """Return the content of a result, in the format of the suffix of `name`.

        Raises:
            RegionError: If the format cannot hold the cutout.
        """


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
    ) -> None:
        """Read a granule, and write what the result needs of it to a file.

        Args:
            source: path, URL, or `STORE:path` of the granule.
            array: path of its array; `None`: that of the options, or the only one.
            options: values of the operation's own options.
            path: file that is written.
            most_bytes: largest size of an array that is read; `None`: any.

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
