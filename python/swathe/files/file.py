"""Open files of any format; those of FITS, and what callers need to know of a file."""

from __future__ import annotations

import copyreg
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from swathe.arrays.indexing import MAGIC
from swathe.core.errors import (
    ChangedError,
    FormatError,
    NoSuchHduError,
    NotAnImageError,
    OptionError,
)
from swathe.files.array_file import ArrayFile, tree_of
from swathe.files.external_arrays import ExternalFile
from swathe.files.hdu import HduInfo
from swathe.files.image import Image
from swathe.files.open_object import OpenObject
from swathe.files.recent_files import forget, open_anew, recent_file
from swathe.files.source_name import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astropy.io import fits

    from swathe._swathe import HduKey
    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.sky import SkyBoxes
    from swathe.files.source_name import Source

IMAGES = ("image", "compressed-image")
HOLDINGS = {"empty": "no data", "table": "a table", "other": "data of another kind"}
MOST_NAMES = 20
"""Number of HDUs named in an error."""


def open(path: Source, *, allow_external: bool = False) -> File | Any:
    """Open a file by path or URL: a `File` of FITS, or an `ArrayFile` of another format.

    The others are HDF5, NetCDF, HDF4, TIFF, ASDF, Zarr and DICOM. The format is recognised by the
    bytes of the file, not by its name. The whole file may be compressed by gzip, bzip2 or compress.

    URLs have a scheme `http(s)://`, `s3://`, `gs://`, `az://`, `root(s)://` or `dav(s)://`. An
    object in a store of the catalogue is `NAME:path`. Only the needed headers are read. A file that
    is open for reading is opened again by its path, from its beginning.

    Args:
        path: path or URL.
        allow_external: whether arrays of a local HDF5 or ASDF file may lie in other files of its
            folder: external storage and links, virtual datasets, `source` of ASDF. Else they are
            refused. Only for files that you trust; needs Linux with Landlock.

    Raises:
        TypeError: If it is something else, such as the bytes of a file or an HDUList.
        NotFoundError, AccessError, SourceError: If it cannot be read.
        FormatError: If it is of none of these formats, or damaged.
        OptionError: If the library of its format is not installed; with `allow_external` if it is
            no local file.
        SettingsError: With `allow_external`, if this system has no Landlock.
    """
    file = open_any(path, fresh=True)
    return with_external(file) if allow_external else file


def with_external(file: File | ArrayFile) -> ExternalFile:
    """Return an open file with its arrays that lie in other files of its folder.

    Raises:
        OptionError: If it is FITS, no local file, or compressed as a whole.
        SwatheError: As `ExternalFile` does.
    """
    if not isinstance(file, ArrayFile):
        raise OptionError(f"{file.url}: allow_external: expected a file of arrays, found FITS")
    return ExternalFile(file)


class File(OpenObject):
    """An open FITS file, at the version it had when it was opened.

    It is closed at the end of a `with` block, by `close`, or when nothing refers to it.

    It is the sequence of its HDUs: `len(file)`, iteration and `file.hdus` include all of them, and
    `file[3]` is the image in HDU 3. `file.images` are the HDUs that hold an image.

    It can be pickled: by path and version, without its content.

    Attributes:
        url: absolute path or URL, without credentials.
        version: size, and ETag or modification time.
    """

    def __repr__(self) -> str:
        return f"<File {self.url}>"

    def _repr_html_(self) -> str:
        from swathe.files.notebook import page, table

        facts = {
            "path": self.url,
            "size": f"{self.size:,} bytes, {self.compression or 'not compressed'}",
            "version": self.version,
        }
        rows = [
            [hdu.index, hdu.name or "", hdu.kind, tuple(hdu.shape) or "", hdu.bitpix or ""]
            for hdu in self.hdus
        ]
        return page(
            "File", facts, tables=[table(["HDU", "name", "holds", "shape", "BITPIX"], rows)]
        )

    def close(self) -> None:
        """Close the file. To use it or its images then raises ValueError; cutouts stay valid."""
        native = self._object
        super().close()
        if native is not None:
            forget(native)

    @cached_property
    def hdus(self) -> list[HduInfo]:
        """Return the properties of all HDUs."""
        return [HduInfo.of(native) for native in self._native.hdus()]

    def __len__(self) -> int:
        return len(self.hdus)

    def __iter__(self) -> Iterator[HduInfo]:
        """Iterate over all HDUs, as in `hdus`."""
        return iter(self.hdus)

    @property
    def images(self) -> list[Image]:
        """Return the HDUs that hold an image."""
        return [Image(self, info.index) for info in self.hdus if info.kind in IMAGES]

    def __getitem__(self, hdu: HduKey) -> Image:
        """Return the image in an HDU by number (-1: the last), name, or name and EXTVER.

        Raises:
            NoSuchHduError: If there is no such HDU.
            NotAnImageError: If it holds no image; `header` returns the header of any HDU.
        """
        return self._image(self._index(hdu))

    def header(self, hdu: HduKey = 0) -> fits.Header:
        """Return the header of any HDU, by default the primary one.

        Raises:
            NoSuchHduError: If there is no such HDU.
        """
        return Image(self, self._index(hdu)).header

    def image(self, hdu: HduKey | None = None) -> Image:
        """Return the image in an HDU, by default the first image.

        Raises:
            NoSuchHduError, NotAnImageError: As in `file[hdu]`.
        """
        return Image(self, self._native.find()) if hdu is None else self[hdu]

    def _index(self, hdu: HduKey) -> int:
        if isinstance(hdu, int) and hdu < 0:
            count = len(self.hdus)
            if hdu < -count:
                raise NoSuchHduError(
                    f"{self.url}: no HDU {hdu}: expected {-count} to {count - 1}; it has only "
                    f"{count} HDUs"
                )
            hdu += count
        return self._native.find(hdu)

    def _image(self, index: int) -> Image:
        """Return the image in an HDU, after a check that the HDU holds one."""
        image = Image(self, index)
        try:
            # Every use of an image begins with this call.
            _ = image.shape
        except FormatError:
            info = self.hdus[index]
            if info.kind in IMAGES:
                return image  # a damaged one, whose use raises the error
            raise NotAnImageError(
                f"{self.url}, HDU {_hdu_label(info)}: expected an image, "
                f"found {HOLDINGS[info.kind]}; {self._where_images_are()}"
            ) from None
        return image

    def _where_images_are(self) -> str:
        images = [_hdu_label(info) for info in self.hdus if info.kind in IMAGES]
        if not images:
            return "no HDU of the file holds an image"
        label_list = ", ".join(images[:MOST_NAMES]) + (", ..." if len(images) > MOST_NAMES else "")
        return f"images are in HDU{'s' if len(images) > 1 else ''} {label_list}"


def _hdu_label(info: HduInfo) -> str:
    """Return number and name of an HDU as text."""
    return str(info.index) if info.name is None else f"{info.index} ({info.name})"


def reopen(name: str, version: str, allow_external: bool = False) -> File | ArrayFile:
    """Open a file again, as after unpickling.

    Raises:
        ChangedError: If it has another version now.
    """
    file = open_any(name, fresh=True)
    if file.version != version:
        raise ChangedError(
            f"{file.url}: expected the version {version}, found {file.version}: it changed; "
            "open it again"
        )
    return with_external(file) if allow_external else file


def _pickle(file: File | ArrayFile) -> tuple[Any, ...]:
    """Return the path and version that pickle and copy open again."""
    return reopen, (file.name or file.url, file.version, isinstance(file, ExternalFile))


copyreg.pickle(File, _pickle)
copyreg.pickle(ArrayFile, _pickle)
copyreg.pickle(ExternalFile, _pickle)


def open_from_cache(path: Source, fresh: bool = False) -> File:
    """Open a FITS file, or return the one opened before if it has not changed.

    The index entry of an object on a server is taken as valid, unless `fresh`. If it is not, a cut
    raises `ChangedError`.
    """
    recent = recent_file(name_of(path), fresh)
    return File(recent.native, recent.notes, recent.name)


def open_any(path: Source, fresh: bool = False, alone: bool = False) -> File | ArrayFile:
    """Open a file of any format, as `open_from_cache` does.

    Args:
        path: path or URL.
        fresh: whether an object on a server is asked for its version.
        alone: whether no other reader of this process shares it, so that its traffic is of one.

    Raises:
        FormatError: If it is of no known format, or damaged.
        OptionError: If the library of its format is not installed.
    """
    name = name_of(path)
    recent = open_anew(name, fresh) if alone else recent_file(name, fresh)
    if recent.tree is None:
        recent.tree = tree_of(recent.native)
    if recent.tree is None:
        return File(recent.native, recent.notes, recent.name)
    return ArrayFile(recent.native, recent.tree, recent.notes, recent.name)


def arrays_of(file: str) -> ArrayTree | None:
    """Return the arrays of a file, and keep its chunk index for cuts; `None` for FITS.

    A local file that begins as FITS is not opened: a list may have very many.

    Raises:
        SwatheError: If it cannot be read, or its reader rejects it.
    """
    if _begins_as_fits(file):
        return None
    source = open_any(file)
    return source.tree if isinstance(source, ArrayFile) else None


def _begins_as_fits(file: str) -> bool:
    """Check whether a name is that of a local file that begins as FITS."""
    name = name_of(file)
    if "://" in name or not os.path.isfile(name):
        return False
    (start,) = MAGIC["fits"]
    try:
        content = os.open(name, os.O_RDONLY)  # half the time of a file object
    except OSError:
        return False  # the engine says why
    try:
        return os.read(content, len(start)) == start
    except OSError:
        return False
    finally:
        os.close(content)


def sky_of(file: str, hdu: HduKey | None) -> SkyBoxes:
    """Return what makes boxes around positions on an image, or on an array by its path.

    Raises:
        SwatheError: If the file cannot be read, or has no such array or WCS.
    """
    if isinstance(hdu, str) and hdu.startswith("/"):
        from swathe.files.places.sky import array_sky

        source = open_any(file)
        if isinstance(source, ArrayFile):
            return array_sky(source[hdu])
    return open_from_cache(file).image(hdu).sky
