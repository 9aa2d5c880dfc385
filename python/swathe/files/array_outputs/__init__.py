"""Files of cuts of arrays: one function for each format, chosen by the suffix."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from swathe.core.errors import OutputError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from swathe.files.variable import VariableSet

SUFFIXES = (
    *(".nc", ".nc4", ".h5", ".hdf5", ".zarr"),
    *(".tif", ".tiff", ".asdf", ".dcm", ".fits", ".npy", ".png"),
)
DEFAULTS = {
    "hdf5": ".nc",
    "netcdf3": ".nc",
    "hdf4": ".nc",
    "tiff": ".tif",
    "asdf": ".asdf",
    "zarr": ".zarr",
    "dicom": ".nc",
}
"""Suffix of a cut without a name, by the format of the source."""


ONE_ARRAY = (".tif", ".tiff", ".dcm", ".npy", ".png")
"""Suffixes of files that have the elements of one array, without other arrays beside it."""


def suffix_of(file_format: str) -> str:
    """Return the suffix of results of a list in the format of their source.

    Results of a Zarr are NetCDF: a list has files, and a Zarr is a folder.
    """
    return ".nc" if file_format == "zarr" else DEFAULTS[file_format]


def saving(cutout: VariableSet, path: Path) -> Callable[[BinaryIO], object]:
    """Return the function that writes the kind of file given by the suffix.

    Raises:
        OutputError: If the suffix is unknown, or the format cannot hold the cut.
        OptionError: If the library of the format is not installed.
        RegionError: If the file is a picture, and the cut neither one plane nor bands of colours.
    """
    with typed_errors(cutout, path):
        return _saver(cutout, path)


def warn_of_planes(cutout: VariableSet, path: Path) -> None:
    """Warn of quality planes that a cut has and a kind of file does not hold."""
    text = cutout.attrs.get("ancillary_variables")
    names = text.split() if isinstance(text, str) else []
    planes = [name for name in names if name in cutout.variables]
    if planes and path.suffix.lower() in ONE_ARRAY:
        warnings.warn(
            f"{path}: {path.suffix} has one array: quality planes {', '.join(planes)} are left "
            "out; write .nc, .h5, .zarr, .asdf or .fits",
            stacklevel=3,
        )


@contextmanager
def typed_errors(cutout: VariableSet, path: Path) -> Iterator[None]:
    """Raise what a library raises as an OutputError."""
    try:
        yield
    except SwatheError:
        raise
    except Exception as error:  # the libraries' own classes share no base
        raise OutputError(
            f"{cutout.url}, array {cutout.path}: {path.suffix} cannot hold it: "
            f"{type(error).__name__}: {str(error)[:200]!r}"
        ) from error


def _saver(cutout: VariableSet, path: Path) -> Callable[[BinaryIO], object]:
    import numpy as np

    match path.suffix.lower():
        case ".nc" | ".nc4" as suffix:
            from swathe.files.array_outputs.hdf5 import hdf5_bytes
            from swathe.files.array_outputs.netcdf_classic import classic_bytes, fits_classic

            if suffix == ".nc" and cutout.format == "netcdf3" and fits_classic(cutout):
                content = classic_bytes(cutout)
            else:
                content = hdf5_bytes(cutout)
            return lambda file: file.write(content)
        case ".h5" | ".hdf5":
            from swathe.files.array_outputs.hdf5 import hdf5_bytes

            content = hdf5_bytes(cutout)
            return lambda file: file.write(content)
        case ".tif" | ".tiff":
            from swathe.files.array_outputs.geotiff import geotiff_bytes

            content = geotiff_bytes(cutout)
            return lambda file: file.write(content)
        case ".asdf":
            from swathe.files.array_outputs.asdf import asdf_bytes

            content = asdf_bytes(cutout)
            return lambda file: file.write(content)
        case ".dcm":
            from swathe.files.array_outputs.dicom import dicom_bytes

            content = dicom_bytes(cutout)
            return lambda file: file.write(content)
        case ".fits":
            from swathe.files.array_outputs.fits import fits_bytes

            content = fits_bytes(cutout)
            return lambda file: file.write(content)
        case ".npy":
            return lambda file: np.save(file, cutout.data, allow_pickle=False)
        case ".png":
            from swathe.files.array_outputs.png import draw

            image = draw(cutout)
            return lambda file: image.save(file, "PNG")
        case suffix:
            raise OutputError(
                f"{path}: cannot write {suffix or 'without a suffix'}; known: {', '.join(SUFFIXES)}"
            )
