"""Stack the images of each group: one image, and the number of images at each pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.operations.operation import (
    ALIGNING_MEMORY,
    CombiningOperation,
    OperationOption,
    ResultFormat,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.operations.grid import AlignedImage, Grid


class StackOperation(CombiningOperation):
    """One image of all targets, or of each group."""

    name = "stack"
    title = "Stack all into one image"
    formats = (
        ResultFormat(
            "fits",
            "FITS",
            "a stack",
            ".fits",
            "application/fits",
            0.1,
            30e-3,
            pixel_bytes=8,
            memory_per_pixel=ALIGNING_MEMORY,
        ),
    )
    options = (
        OperationOption(
            "stack",
            "How to stack",
            "Way to combine the pixels of a stack",
            (
                ("mean", "Mean"),
                ("median", "Median"),
                ("sigma-clipped", "Sigma-clipped mean"),
                ("weighted", "Weighted mean"),
            ),
            "mean",
        ),
    )
    hdus = 2

    def make(
        self,
        path: Path,
        grid: Grid,
        images: Sequence[AlignedImage],
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Write the stack and, as its second HDU, the number of images at each pixel."""
        from swathe.operations.stacking import write_stack

        return write_stack(path, grid, images, options["stack"], should_stop)


OPERATION = StackOperation()
