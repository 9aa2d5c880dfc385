"""What a chunk index says of the arrays of a file: paths, shapes, types, attributes."""

from __future__ import annotations

import base64
import json
import posixpath
import re
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from swathe.arrays.array_names import ArrayNames
from swathe.core.errors import FormatError, NoSuchArrayError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

READER_VERSIONS = {
    "hdf5": 2,
    "netcdf3": 1,
    "hdf4": 1,
    "tiff": 3,
    "asdf": 2,
    "zarr": 1,
    "dicom": 2,
}
"""Version of the reader of each format. Add one when it describes any file in another way than
before: an index of another version is made anew."""
MOST_NAMES = 1000
"""Names of other arrays in one attribute."""


@dataclass(frozen=True)
class ArrayDescription:
    """What an index says of an array.

    Attributes:
        path: its path in the file, from `/`.
        dtype: type of the elements as stored.
        shape: elements along each axis, slowest first.
        dims: names of the axes; empty if they have none.
        storage: where its elements lie.
    """

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    storage: Mapping[str, Any]
    _attributes: Mapping[str, Any]
    _fill: str | None

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes: texts, NumPy numbers and arrays."""
        with _damage(f"attributes of array {self.path}"):
            return {name: decode_attribute(each) for name, each in self._attributes.items()}

    @cached_property
    def fill(self) -> Any:
        """Return the element of chunks that are not stored; `None` if the file names none."""
        if self._fill is None:
            return None
        import numpy as np

        with _damage(f"fill value of array {self.path}"):
            return np.frombuffer(base64.b64decode(self._fill), self.dtype)[0]

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Return the shape of a chunk; `None` if the array is not in chunks."""
        shape = self.storage.get("chunk_shape")
        return None if shape is None else tuple(shape)

    @cached_property
    def plane(self) -> tuple[int, int] | None:
        """Return the numbers of the axes of its planes; `None` if it has less than two axes.

        Those are the axes named y and x, else the last two.
        """
        if "y" in self.dims and "x" in self.dims:
            return self.dims.index("y"), self.dims.index("x")
        return (len(self.shape) - 2, len(self.shape) - 1) if len(self.shape) > 1 else None

    @property
    def filters(self) -> tuple[str, ...]:
        """Return the names of the filters of its chunks, in the order of writing."""
        return tuple(each["name"] for each in self.storage.get("filters", ()))

    @property
    def data(self) -> bytes | None:
        """Return the elements of an array that lies in the index, in C order; else `None`."""
        if self.storage["kind"] != "inline":
            return None
        with _damage(f"elements of array {self.path}"):
            return base64.b64decode(self.storage["data"])


PLACE_UNITS = {
    "latitude": {
        "degrees_north",
        "degree_north",
        "degrees_n",
        "degree_n",
        "degreesn",
        "degreen",
    },
    "longitude": {"degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee"},
}
"""Units that make a coordinate a latitude or longitude (CF 4.1 and 4.2), in lower case."""
TIFF_COPY = re.compile(r"/\d+/(overview_\d+|mask(_\d+)?|mask_overview_\d+)")
"""Paths of smaller copies and of masks."""


class ArrayTree:
    """The arrays and groups of a file.

    Attributes:
        format: name of the format, such as `hdf5`.
        library: library that read the file, with its version.
        reader: version of our reader of the format; 0 in indexes that do not name it.
        arrays: descriptions by path, in the order of the file.
        notes: warnings of the library about the file.
        missing: packages that were not installed, and with which more of the file may be read.
        memo: what readers of the file find once, by keys of theirs.
    """

    def __init__(self, text: bytes) -> None:
        """Read the JSON of an index.

        Raises:
            FormatError: If something is missing in it, or of another type.
        """
        with _damage("chunk index"):
            self._read(json.loads(text))

    def _read(self, head: dict[str, Any]) -> None:
        self.format: str = head["format"]
        self.library: str = head["library"]
        self.reader: int = head.get("reader", 0)
        self.notes: list[str] = [str(note) for note in head.get("notes", ())]
        self.missing: list[str] = [str(name) for name in head.get("missing", ())]
        self._groups: dict[str, Any] = head["groups"]
        self._coordinates: dict[str, dict[str, ArrayDescription]] = {}
        self.memo: dict[Any, Any] = {}
        self.arrays: dict[str, ArrayDescription] = {
            each["name"]: ArrayDescription(
                each["name"],
                dtype_of(each["dtype"]),
                tuple(each["shape"]),
                tuple(each["dims"]),
                each["storage"],
                each["attributes"],
                each["fill"],
            )
            for each in head["arrays"]
        }
        for each in self.arrays.values():
            _ = each.storage["kind"]  # all that use an array ask for it

    @property
    def is_current(self) -> bool:
        """Check whether the reader, with the packages of today, would say the same."""
        additions = (name.isidentifier() and find_spec(name) for name in self.missing)
        return self.reader == READER_VERSIONS.get(self.format) and not any(additions)

    def with_arrays(self, others: ArrayTree) -> ArrayTree:
        """Return a tree in which the arrays of another one stand in place of those of its paths.

        An array whose path became that of a group is left out.
        """
        tree = copy(self)
        tree._coordinates, tree.memo = {}, {}
        tree.arrays = dict(self.arrays)
        for path, new in others.arrays.items():
            old = self.arrays.get(path)
            has_names = old is not None and len(old.dims) == len(new.shape)
            tree.arrays[path] = replace(new, dims=old.dims) if old and has_names else new
            for group in groups_around(path):
                tree.arrays.pop(group, None)
        return tree

    @cached_property
    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of each group, by its path."""
        with _damage("attributes of groups"):
            return {
                path: {name: decode_attribute(each) for name, each in attributes.items()}
                for path, attributes in self._groups.items()
            }

    def find(self, name: str) -> ArrayDescription | None:
        """Return the array of a path, or of a last name if only one has it; `None` if none is it.

        `/` at the start may be left out. The path of an array comes before the names of others.
        """
        path = self._names.path_of(name)
        return None if path is None else self.arrays[path]

    def array(self, name: str | None, url: str) -> ArrayDescription:
        """Return the array of a path or a last name, as `find` does; without one the default.

        Args:
            name: path or name; `None` for the only array with two axes or more, `only_plane`.
            url: path or URL of the file, for an error.

        Raises:
            NoSuchArrayError: If there is none, or several; lists some of these, or near names.
        """
        array = self.only_plane if name is None else self.find(name)
        if array is not None:
            return array
        if name is not None:
            raise NoSuchArrayError(
                f"{url}: expected the path of an array, found {name!r:.100}; "
                f"{self._names.hint(name)}"
            )
        raise NoSuchArrayError(
            f"{url}: expected one array with two axes or more, found {len(self.planes())}: "
            f"give array=; {self._names.text}"
        )

    @property
    def _names(self) -> ArrayNames:
        names = self.memo.get(ArrayNames)
        if names is None:
            names = self.memo[ArrayNames] = ArrayNames(self.arrays)
        return names

    def planes(self) -> list[ArrayDescription]:
        """Return the arrays with two axes or more that are no coordinates.

        Coordinates are those that others name, and latitudes and longitudes by their units. Bounds
        are left out, too, and smaller copies and masks of the images of a TIFF. They are found once
        for an open file: all arrays are asked for their attributes.
        """
        planes: list[ArrayDescription] | None = self.memo.get("planes")
        if planes is None:
            planes = self.memo["planes"] = self._find_planes()
        return list(planes)

    def _find_planes(self) -> list[ArrayDescription]:
        is_copy = TIFF_COPY.fullmatch if self.format == "tiff" else lambda _: None
        planes = [
            each for each in self.arrays.values() if len(each.shape) > 1 and not is_copy(each.path)
        ]
        coordinates = {other.path for each in planes for other in self.coordinates(each).values()}
        for each in self.arrays.values():
            name = each.attributes.get("bounds")
            if isinstance(name, str) and (bounds := self.near(each.path, name)) is not None:
                coordinates.add(bounds.path)
        planes = [each for each in planes if each.path not in coordinates]
        # A file of places alone has no others.
        return [each for each in planes if not _is_place(each)] or planes

    @property
    def only_plane(self) -> ArrayDescription | None:
        """Return the default array: the only one of `planes`; `None` if there are others.

        Of ASDF it is the only one called `data`, as in files of Roman: beside it are its errors.
        """
        planes = self.planes()
        if len(planes) > 1 and self.format == "asdf":
            planes = [each for each in planes if each.path.rpartition("/")[2] == "data"]
        return planes[0] if len(planes) == 1 else None

    def coordinates(self, array: ArrayDescription) -> dict[str, ArrayDescription]:
        """Return the coordinates of an array, by name (CF conventions, sections 5 and 5.7).

        Those are arrays named as one of its axes, and those that its attribute `coordinates`
        names, in its group or the nearest group around it.
        """
        coordinates = self._coordinates.get(array.path)
        if coordinates is None:
            coordinates = self._coordinates[array.path] = self._find_coordinates(array)
        return coordinates

    def _find_coordinates(self, array: ArrayDescription) -> dict[str, ArrayDescription]:
        texts = array.attributes.get("coordinates", "")
        names = texts.split() if isinstance(texts, str) else []
        if len(names) > MOST_NAMES:
            raise FormatError(
                f"array {array.path}: coordinates: expected at most {MOST_NAMES:,} names, "
                f"found {len(names):,}"
            )
        coordinates = {}
        for name in dict.fromkeys([*array.dims, *names]):
            other = self.near(array.path, name)
            if other is not None and other.path != array.path:
                coordinates[name] = other
        return coordinates

    def near(self, path: str, name: str) -> ArrayDescription | None:
        """Return the array of a name in the group of another one, or in the nearest around it.

        A name may be a path, also one such as `../lat` (CF 2.7).
        """
        if "./" in name:
            around = posixpath.join(posixpath.dirname(path), name)
            return self.arrays.get(posixpath.normpath(around))
        for group in groups_around(path):
            other = self.arrays.get(posixpath.join(group, name))
            if other is not None:
                return other
        return None


def _is_place(array: ArrayDescription) -> bool:
    """Return whether the units of an array are those of a latitude or longitude."""
    units = array.attributes.get("units")
    return isinstance(units, str) and any(
        units.strip().lower() in names for names in PLACE_UNITS.values()
    )


@contextmanager
def _damage(what: str) -> Iterator[None]:
    """Raise the errors of reading a part of an index that is not as a reader writes it.

    Raises:
        FormatError: In place of them.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(
            f"{what}: expected as the reader of the format writes it, found a damaged one: "
            f"{error!r:.200}"
        ) from error


def groups_around(path: str) -> Iterator[str]:
    """Yield the paths of the groups around an array, the nearest first."""
    while (group := posixpath.dirname(path)) != path:
        yield group or "/"
        path = group


def decode_attribute(value: Any) -> Any:
    """Return the attribute of `encode_attribute`: a text, a NumPy scalar, or an array."""
    import numpy as np

    if isinstance(value, str):
        return value
    if "texts" in value:
        texts = np.array([decode_attribute(each) for each in value["texts"]], object)
        array = texts.reshape(value["shape"])
    else:
        dtype = dtype_of(value["dtype"])
        array = np.frombuffer(base64.b64decode(value["data"]), dtype).reshape(value["shape"])
    return array[()] if array.ndim == 0 else array


def dtype_of(text: Any) -> np.dtype[Any]:
    """Return the dtype of its JSON: a text, or the fields of a compound type."""
    import numpy as np

    if isinstance(text, str):
        return np.dtype(text)
    return np.dtype([(name, dtype_of(of), *map(tuple, rest)) for name, of, *rest in text])
