"""Whole files of datasets for download: local ones by us, those of web servers by a redirect."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import BinaryIO

from swathe import _swathe
from swathe.core.errors import LimitError, NotFoundError
from swathe.jobs import Result
from swathe.portal.http.ranges import PART
from swathe.stores.bucket_results import reader
from swathe.stores.registry import known_stores

TYPES = {
    ".asdf": "application/x-asdf",
    ".bz2": "application/x-bzip2",
    ".dcm": "application/dicom",
    ".fit": "application/fits",
    ".fits": "application/fits",
    ".fz": "application/fits",
    ".gz": "application/gzip",
    ".h5": "application/x-hdf5",
    ".hdf": "application/x-hdf",
    ".hdf4": "application/x-hdf",
    ".hdf5": "application/x-hdf5",
    ".he5": "application/x-hdf5",
    ".nc": "application/netcdf",
    ".nc4": "application/netcdf",
    ".tif": "image/tiff; application=geotiff",
    ".tiff": "image/tiff; application=geotiff",
    ".z": "application/x-compress",
    ".zarr": "application/vnd+zarr",
}
FITS = "application/fits"


def media_type_of(path: str, usual: str) -> str:
    """Return the media type of an object from its name, or the usual one."""
    return TYPES.get(PurePosixPath(path.lower()).suffix, usual)


def place_of(file: str) -> str:
    """Return the path or URL of `STORE:path`, without credentials."""
    stores = known_stores()
    return file if stores is None else stores.locate(file)[1]


def is_served(file: str) -> bool:
    """Return whether a whole file can be downloaded: it is local, or on a web server."""
    return place_of(file).startswith(("/", "http://", "https://"))


def open_table(file: str, most: int) -> BinaryIO:
    """Open a table for reading, from a store or from a server that users may read from.

    The caller has checked that users may.

    Raises:
        LimitError: If it is larger than `most` bytes.
        SwatheError: If it cannot be opened.
    """
    source = _swathe.open_source(file, known_stores())
    if source.size > most:
        raise LimitError(f"{file}: expected at most {most:,} bytes, found {source.size:,}")
    return reader(source, PART)


def whole_file(file: str, name: str, media_type: str) -> Result | str:
    """Return a file, opened below the root of its store, or its URL on a web server.

    Args:
        file: the file as `STORE:path`.
        name: name for the download.
        media_type: type of its content.

    Raises:
        NotFoundError: If there is no such file, or its store is neither local nor a web server.
        AccessError: If the file is outside its store.
    """
    place = place_of(file)
    if place.startswith(("http://", "https://")):
        return place
    stores = known_stores()
    if stores is None:
        raise NotFoundError(f"{file}: no such file")
    if not is_served(file):
        raise NotFoundError(
            f"{file}: expected a local file or one on a web server, found another store; only cuts "
            "of it are served"
        )
    source = stores.open(file)
    etag = f'"{hashlib.sha256(source.version.encode()).hexdigest()[:32]}"'
    return Result(file, name, source.size, etag, media_type, "", lambda: reader(source, PART))
