"""Open files of arrays: HDF5, NetCDF, HDF4, TIFF, ASDF, Zarr and DICOM."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from swathe.arrays.array_tree import ArrayTree
from swathe.arrays.indexing import describe, format_of, read, reads_of
from swathe.core.errors import FormatError, NoSuchArrayError
from swathe.files.array import Array
from swathe.files.open_object import OpenObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe import _swathe
    from swathe.arrays.array_tree import ArrayDescription


class ArrayFile(OpenObject):
    """An open file of arrays, at the version it had when it was opened.

    It maps paths to arrays: `file["/science/lst"]`, `file["lst"]` if no other array has this name,
    `len(file)` and iteration over the paths. It is closed at the end of a `with` block, or by
    `close`. It can be pickled: by path and version, without its content (`swathe.files.file` says
    how).

    Attributes:
        tree: what the file says of its arrays and groups.
    """

    def __init__(
        self,
        native: _swathe.Object,
        tree: ArrayTree,
        notes: list[str] | None = None,
        name: str | None = None,
    ) -> None:
        """Wrap the engine's file and its arrays. Users call `swathe.open`."""
        super().__init__(native, notes, name)
        self.tree = tree

    def __repr__(self) -> str:
        return f"<ArrayFile {self.url}, {self.format}, {len(self)} arrays>"

    @property
    def format(self) -> str:
        """Return the format: `hdf5`, `netcdf3`, `hdf4`, `tiff`, `asdf`, `zarr` or `dicom`."""
        return self.tree.format

    def member_names(self, prefix: str) -> list[str]:
        """Return the objects of a Zarr folder, as it was opened, whose names begin with a prefix.

        Any other file has none.
        """
        return self._native.member_names(prefix)

    @property
    def notes(self) -> list[str]:
        """Return warnings about the file: of its library, and of the engine."""
        return [*self.tree.notes, *super().notes]

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes of the root group."""
        return dict(self.tree.groups.get("/", {}))

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of each group, by its path."""
        return dict(self.tree.groups)

    @property
    def arrays(self) -> list[Array]:
        """Return all arrays."""
        return [Array(self, each) for each in self.tree.arrays.values()]

    def __len__(self) -> int:
        return len(self.tree.arrays)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths of all arrays."""
        return iter(self.tree.arrays)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.tree.find(path) is not None

    def __getitem__(self, path: str) -> Array:
        """Return an array by its path, or by its last name if only one has it.

        `/` at the start may be left out.

        Raises:
            NoSuchArrayError: If there is no such array, or several have the name.
        """
        if not isinstance(path, str):
            raise NoSuchArrayError(
                f"{self.url}: expected the path of an array, found {path!r:.100}"
            )
        return Array(self, self.tree.array(path, self.url))

    def near(self, path: str, name: str) -> Array | None:
        """Return the array of a name in the group of another one, or in the nearest around it."""
        description = self.tree.near(path, name)
        return None if description is None else Array(self, description)

    def array(self, path: str | None = None) -> Array:
        """Return an array by path or name, by default the only one with two axes or more.

        Coordinates of other arrays do not count.

        Raises:
            NoSuchArrayError: If there is no such array, or there are several.
        """
        return Array(self, self.tree.array(None, self.url)) if path is None else self[path]

    def read_by_library(self, array: ArrayDescription, start: list[int], stop: list[int]) -> bytes:
        """Return the elements `[start, stop)` of an array that only the library reads."""
        file = reads_of(self._native)
        return read(file, self.format, array.path, array.shape, start, stop, self.url)


def tree_of(native: _swathe.Object) -> ArrayTree | None:
    """Return the arrays of a file, as its index entry has them, or as its library says.

    An index of another version of the reader, or a damaged one, is made anew; so is one of arrays
    that were refused for lack of a package that is installed now. `None` if it is a file of FITS,
    or of no known format.

    Raises:
        FormatError: If the library rejects the file.
        LimitError: If reading it needs too much memory or time.
        OptionError: If the library is not installed.
    """
    text = native.chunk_index()
    if text is not None:
        with suppress(FormatError):
            tree = ArrayTree(text)
            if tree.is_current:
                return tree
    file_format = "fits" if native.is_fits else format_of(native.read_at)
    if file_format in ("fits", None):
        return None
    native.set_chunk_index(describe(reads_of(native), file_format, native.url))
    text = native.chunk_index()
    assert text is not None
    try:
        return ArrayTree(text)
    except FormatError as error:
        raise FormatError(f"{native.url}: {error}") from error
