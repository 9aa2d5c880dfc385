"""Convert cutouts that the engine wrote as FITS into arrays of pixels and pictures."""

from __future__ import annotations

import hashlib
import math
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from swathe import _swathe
from swathe.files.cutout import Cutout, saving

if TYPE_CHECKING:
    from pathlib import Path


class FileDigest(NamedTuple):
    """Size in bytes and SHA-256 of a file."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileDigest:
        """Read size and SHA-256 of a file."""
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.stat().st_size, sha256)


def digest_of(content: bytes) -> FileDigest:
    """Return size and SHA-256 of a file with this content."""
    return FileDigest(len(content), hashlib.sha256(content).hexdigest())


def read_cutout(path: Path) -> Cutout:
    """Read the whole of a small image that the engine cut."""
    native = _swathe.open(str(path))
    hdu = native.find()
    shape = native.shape(hdu)
    return Cutout(
        native.cut(hdu, [0] * len(shape), shape[::-1], "strict"), str(path), native.version, hdu
    )


def count_pixels(cut: Path) -> int:
    """Return the number of pixels of a cutout that the engine wrote as FITS."""
    native = _swathe.open(str(cut))
    return math.prod(native.shape(native.find()))


def convert(cutout: Cutout, name: Path) -> bytes:
    """Return a cutout in the format of a name's suffix.

    Raises:
        RegionError: If a picture cannot show the cutout.
    """
    into = BytesIO()
    saving(cutout, name)(into)
    return into.getvalue()
