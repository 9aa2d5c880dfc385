"""Arrays in lists of targets: the chunk index of each file, and the axes that columns name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from swathe.core.errors import RegionError, SwatheError
from swathe.core.row_record import fault_of
from swathe.files.targets.cells import is_missing, text_of
from swathe.files.targets.hdus import is_array_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.arrays.array_tree import ArrayDescription, ArrayTree
    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable

SUFFIXES: tuple[str, ...] = (
    ".asdf",
    ".cdf",
    ".dcm",
    ".tif",
    ".tiff",
    ".h4",
    ".h5",
    ".hdf",
    ".hdf4",
    ".hdf5",
    ".he4",
    ".he5",
    ".nc",
    ".nc4",
    ".zarr",
)
"""Suffixes of files that are opened before a run. Others are opened if a row names an array: a list
of 100,000 FITS files would be read twice."""
MOST_PATHS = 20
"""Number of arrays named in an error."""
THREADS = 8
"""Files that are described at the same time."""


def with_arrays(
    rows: RowTable, columns: Mapping[str, Any], tree_of: Callable[[str], ArrayTree | None]
) -> RowTable:
    """Return rows with the planes that columns named like axes choose; index files of arrays.

    A cell is an index or `first:last`; an empty one takes the whole axis. A file that its reader
    rejects, and a cell that is no range of the axis, are faults of their rows.

    Args:
        rows: rows of a list, without those of FITS files changed.
        columns: columns of the list, by their names in lower case.
        tree_of: function that returns the arrays of a file, `None` for FITS; it keeps its index.
    """
    from swathe.core.row_table import DictColumn

    hdus, sources, sound = rows.hdu.list(), rows.source.list(), rows.sound.tolist()
    files = {
        source
        for source, hdu, is_sound in zip(sources, hdus, sound, strict=True)
        if is_sound and (_is_array_file(source) or is_array_path(hdu))
    }
    if not files:
        return rows
    trees, faults_by_file = _describe(sorted(files), tree_of)
    faults: dict[int, Fault] = {}
    planes = rows.planes.list()
    for row, (source, hdu) in enumerate(zip(sources, hdus, strict=True)):
        if source in faults_by_file:
            if sound[row]:
                faults[row] = faults_by_file[source]
            continue
        tree = trees.get(source)
        if tree is None or not sound[row]:
            continue
        array = tree.arrays.get(hdu) if hdu is not None else _only_plane(tree)
        if array is None:
            faults[row] = ("error", f"{source}: {_missing(tree, hdu)}")
            continue
        hdus[row] = array.path
        try:
            planes[row] = _planes(array, columns, row) or planes[row]
        except RegionError as error:
            faults[row] = ("error", f"{source}, {array.path}: {error}")
    rows = replace(rows, planes=DictColumn.of(planes), hdu=DictColumn.of(hdus))
    return rows.with_status(faults)


def _missing(tree: ArrayTree, path: str | None) -> str:
    """Return why a row has no array."""
    paths = list(tree.arrays)
    some = ", ".join(paths[:MOST_PATHS]) + (", ..." if len(paths) > MOST_PATHS else "")
    what = "one array with two axes or more" if path is None else f"an array {path}"
    return f"expected {what}, found {some or 'none'}"


def _only_plane(tree: ArrayTree) -> ArrayDescription | None:
    """Return the only array with a plane; `None` if there are others."""
    planes = tree.planes()
    return planes[0] if len(planes) == 1 else None


def _is_array_file(source: str) -> bool:
    path = urlsplit(source).path if "://" in source else source
    return path.lower().endswith(SUFFIXES)


def _describe(
    files: list[str], tree_of: Callable[[str], ArrayTree | None]
) -> tuple[dict[str, ArrayTree | None], dict[str, Fault]]:
    """Return the arrays of each file, and the faults of those that cannot be read."""

    def describe(file: str) -> ArrayTree | Fault | None:
        try:
            return tree_of(file)
        except SwatheError as error:
            return fault_of(error)

    with ThreadPoolExecutor(THREADS) as threads:
        answers = dict(zip(files, threads.map(describe, files), strict=True))
    faults = {file: each for file, each in answers.items() if isinstance(each, tuple)}
    trees = {file: each for file, each in answers.items() if not isinstance(each, tuple)}
    return trees, faults


def _planes(
    array: ArrayDescription, columns: Mapping[str, Any], row: int
) -> tuple[int, ...] | None:
    """Return first and last of each axis but those of a plane, fastest first, as the engine has it.

    `None` if no column names one of them.

    Raises:
        RegionError: If a cell is no range of its axis.
    """
    fastest = [name.lower() for name in reversed(array.dims)]
    lengths = array.shape[::-1]
    plane = [len(lengths) - 1 - axis for axis in array.plane or ()]
    spans: list[int] = []
    is_chosen = False
    for axis, name in enumerate(fastest):
        if axis in plane:
            continue
        cell = columns[name][row] if name in columns else None
        if cell is None or is_missing(cell) or not text_of(cell).strip():
            spans += [0, lengths[axis]]
            continue
        spans += _range(name, text_of(cell).strip(), lengths[axis])
        is_chosen = True
    return tuple(spans) if is_chosen else None


def _range(name: str, text: str, length: int) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    try:
        start = int(first) if first or not colon else 0
        stop = (int(last) if last else length) if colon else start + 1
    except ValueError:
        raise RegionError(f"{name}: expected an index or first:last, found {text[:40]!r}") from None
    if not 0 <= start < stop <= length:
        raise RegionError(f"{name}: expected a range within 0:{length}, found {text[:40]}")
    return start, stop
