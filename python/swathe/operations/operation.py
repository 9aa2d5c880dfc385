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

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.files.cutout import Cutout
    from swathe.operations.grid import AlignedImage, Grid

ALIGNING_MEMORY = 160
"""Bytes of memory per pixel of an image while it is resampled to a grid."""


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
        choices: its values and their labels on pages.
        default: value if it is not given.
    """

    name: str
    title: str
    help: str
    choices: tuple[tuple[str, str], ...]
    default: str

    @property
    def values(self) -> tuple[str, ...]:
        """Return the possible values."""
        return tuple(value for value, _ in self.choices)


class Operation(ABC):
    """Operation: a `ConvertingOperation` or a `CombiningOperation`."""

    name: ClassVar[str]
    """Name in options."""
    title: ClassVar[str]
    """Label on pages."""
    formats: ClassVar[tuple[ResultFormat, ...]]
    """Formats of the results, the default first."""
    options: ClassVar[tuple[OperationOption, ...]] = ()
    """Options that only this operation has."""
    is_combined: ClassVar[bool] = False
    """Whether a result is made from several images."""
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


class ConvertingOperation(Operation):
    """Operation that makes each result from one image."""

    @abstractmethod
    def convert(self, cutout: Cutout, name: Path) -> bytes:
        """Return the content of a result, in the format of the suffix of `name`.

        Raises:
            RegionError: If the format cannot hold the cutout.
        """


class CombiningOperation(Operation):
    """Operation that makes each result from the images of a group, resampled to one grid."""

    is_combined = True

    def name_results(
        self,
        targets: Sequence[str],  # noqa: ARG002 - for operations with a result for each target
        groups: Sequence[str],
    ) -> list[str]:
        """Return for each image the name of the result it goes into.

        Args:
            targets: id of the target of each image, if a target has several images.
            groups: group of each image; empty if the list has no groups.
        """
        return [group or self.name for group in groups]

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
