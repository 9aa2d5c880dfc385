"""Cut each target: pixels, or a grey picture of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.costs.format_costs import SOURCE
from swathe.operations.operation import ConvertingOperation, ResultFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from swathe.files.cutout import Cutout


class CutOperation(ConvertingOperation):
    """One result for each target."""

    name = "cut"
    title = "Cut each target"
    formats = (
        ResultFormat(
            "fits",
            "FITS",
            "an image",
            ".fits",
            "application/fits",
            0.03,
            10e-6,
            is_plain=True,
        ),
        ResultFormat(
            "npy", "NumPy array", "an array", ".npy", "application/octet-stream", 0.03, 1e-3
        ),
        ResultFormat(
            "png",
            "PNG, grey",
            "a picture",
            ".png",
            "image/png",
            0.05,
            5e-3,
            pixel_bytes=1,
            is_compressed=True,
            memory_per_pixel=24,
        ),
        ResultFormat(
            "nc",
            "NetCDF, of arrays",
            "an array with its coordinates",
            ".nc",
            "application/x-netcdf",
            0.05,
            5e-3,
        ),
        ResultFormat("h5", "HDF5, of arrays", "an array", ".h5", "application/x-hdf5", 0.05, 5e-3),
        ResultFormat("tif", "TIFF, of arrays", "an array", ".tif", "image/tiff", 0.05, 5e-3),
        ResultFormat(
            "asdf", "ASDF, of arrays", "an array", ".asdf", "application/x-asdf", 0.05, 5e-3
        ),
        # The suffix is part of the name of each result.
        ResultFormat(
            SOURCE, "As the source", "a cutout", "", "application/octet-stream", 0.05, 5e-3
        ),
    )

    def convert(
        self,
        cutout: Cutout,
        name: Path,
        options: Mapping[str, Any],  # noqa: ARG002 - it has none
        should_stop: Callable[[], bool],  # noqa: ARG002 - it is quick
    ) -> bytes:
        """Return the pixels or the picture."""
        from swathe.files.conversion import convert

        return convert(cutout, name)


OPERATION = CutOperation()
