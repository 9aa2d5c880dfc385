"""Media types of outputs: their suffixes, and how their content begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MediaType:
    """Media type of an output.

    Attributes:
        suffix: suffix of the file's name.
        formats: formats of arrays that the content may have, as `swathe.open` knows them.
        starts: first bytes that it may have instead.
        is_text: whether it is UTF-8 without control characters instead.
    """

    suffix: str
    formats: tuple[str, ...] = ()
    starts: tuple[bytes, ...] = ()
    is_text: bool = False

    @property
    def has_arrays(self) -> bool:
        """Check whether arrays of it can be read by name."""
        return bool(self.formats) and "fits" not in self.formats


MEDIA_TYPES = {
    "application/netcdf": MediaType(".nc", ("hdf5", "netcdf3")),
    "application/x-hdf5": MediaType(".h5", ("hdf5",)),
    "application/x-hdf": MediaType(".hdf", ("hdf4",)),
    "application/x-asdf": MediaType(".asdf", ("asdf",)),
    "application/fits": MediaType(".fits", ("fits",)),
    "image/fits": MediaType(".fits", ("fits",)),
    "image/tiff": MediaType(".tif", ("tiff",)),
    "image/png": MediaType(".png", starts=(b"\x89PNG\r\n\x1a\n",)),
    "image/jpeg": MediaType(".jpg", starts=(b"\xff\xd8\xff",)),
    "application/x-npy": MediaType(".npy", starts=(b"\x93NUMPY",)),
    "application/zip": MediaType(".zip", starts=(b"PK\x03\x04",)),
    "application/json": MediaType(".json", is_text=True),
    "text/csv": MediaType(".csv", is_text=True),
    "text/plain": MediaType(".txt", is_text=True),
}
