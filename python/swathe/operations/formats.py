"""Convert cutouts that the engine wrote as FITS into arrays of pixels and pictures."""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import TYPE_CHECKING, Literal, NamedTuple

from swathe import _swathe
from swathe.files.cutout import Cutout, saving

if TYPE_CHECKING:
    from pathlib import Path

Format = Literal["fits", "npy", "png", "rgb"]
Operation = Literal["cut", "stack"]
Stack = Literal["mean", "median", "sigma-clipped", "weighted"]
BANDS = 3
"""Bands of a picture of format `rgb`, red first."""
SUFFIXES: dict[Format, str] = {"fits": ".fits", "npy": ".npy", "png": ".png", "rgb": ".png"}


def is_combined(operation: Operation, form: Format) -> bool:
    """Check whether results are made from several images."""
    return operation == "stack" or form == "rgb"


class FileDigest(NamedTuple):
    """A file that was written: its size and checksum."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileDigest:
        """Read size and SHA-256 of a file."""
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.stat().st_size, sha256)


def read_cutout(path: Path) -> Cutout:
    """Read the whole of a small image that the engine cut."""
    native = _swathe.open(str(path))
    hdu = native.find()
    shape = native.shape(hdu)
    return Cutout(
        native.cut(hdu, [0] * len(shape), shape[::-1], "strict"), str(path), native.version, hdu
    )


def convert_to_bytes(cut: Path, name: Path) -> bytes:
    """Return a cutout in the format of a name's suffix, and remove its FITS file.

    Raises:
        RegionError: if a picture cannot show the cutout.
    """
    into = BytesIO()
    try:
        saving(read_cutout(cut), name)(into)
    finally:
        cut.unlink()
    return into.getvalue()


def convert(cut: Path, path: Path, *, overwrite: bool = True) -> None:
    """Write a cutout in the format of the suffix of `path`, and remove its FITS file.

    Raises:
        OutputExistsError: if the file exists and `overwrite` is false.
        RegionError: if a picture cannot show the cutout.
        OutputError: if the file cannot be written.
    """
    try:
        read_cutout(cut).write(path, overwrite=overwrite)
    finally:
        cut.unlink()
