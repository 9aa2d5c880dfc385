"""Arrays in lists of targets: the chunk index of each file, and the axes that columns name."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError, SwatheError
from swathe.core.row_record import fault_of
from swathe.files.targets.cells import is_missing, text_of
from swathe.files.targets.hdus import is_array_path
from swathe.stores.registry import is_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.arrays.array_tree import ArrayDescription, ArrayTree
    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable

FITS_NAMES = re.compile(r"\.(fits?|fts|fz)(\.(gz|bz2|z|fz))?$", re.IGNORECASE)
"""Names, without a query, that are taken for FITS on a server, unless a row names an array."""
MOST_REMOTE = 1000
"""Other files on servers that are opened to see what they are. If all of these are FITS, and no row
names an array, the rest is taken for FITS."""
THREADS = 8
"""Files that are described at the same time."""
MOST_IN_TURN = 64
"""Local files of FITS are recognised in microseconds, so that a thread takes several at once."""


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
    with_path = {source for source, hdu in zip(sources, hdus, strict=True) if is_array_path(hdu)}
    files = dict.fromkeys(file for file, is_sound in zip(sources, sound, strict=True) if is_sound)
    trees, faults_by_file = _trees_of(list(files), with_path, tree_of)
    if not trees and not faults_by_file:
        return rows
    faults: dict[int, Fault] = {}
    planes = rows.planes.list()
    # What an error lists is looked for once, not for each of its rows.
    array_of = lru_cache(maxsize=1000)(partial(_array_of, trees))
    for row, (source, hdu) in enumerate(zip(sources, hdus, strict=True)):
        if source in faults_by_file:
            if sound[row]:
                faults[row] = faults_by_file[source]
            continue
        tree = trees.get(source)
        if tree is None or not sound[row]:
            continue
        array = array_of(source, hdu)
        if isinstance(array, SwatheError):
            faults[row] = fault_of(array)
            continue
        hdus[row] = array.path
        try:
            planes[row] = _planes(array, columns, row) or planes[row]
        except RegionError as error:
            faults[row] = ("error", f"{source}, {array.path}: {error}")
    rows = replace(rows, planes=DictColumn.of(planes), hdu=DictColumn.of(hdus))
    return rows.with_status(faults)


def _array_of(
    trees: Mapping[str, ArrayTree], source: str, path: str | None
) -> ArrayDescription | SwatheError:
    """Return the array of a row, or why it has none."""
    try:
        return trees[source].array(path, source)
    except SwatheError as error:
        return error


def _trees_of(
    files: list[str], with_path: set[str], tree_of: Callable[[str], ArrayTree | None]
) -> tuple[dict[str, ArrayTree], dict[str, Fault]]:
    """Return the arrays of files that are not FITS, and the faults of those that are rejected.

    Args:
        files: files of a list.
        with_path: files with a row that names an array.
        tree_of: as for `with_arrays`.
    """
    remote = [file for file in files if "://" in file or (":" in file and is_named(file))]
    as_fits = {file for file in remote if FITS_NAMES.search(file.partition("?")[0])}
    others = {*[file for file in remote if file not in as_fits][MOST_REMOTE:]} - with_path
    later = others | (as_fits - with_path)
    trees, faults = _describe([file for file in files if file not in later], tree_of)
    if others and (with_path or trees):
        more_trees, more_faults = _describe(sorted(others), tree_of)
        trees, faults = trees | more_trees, faults | more_faults
    # Those that cannot be read now have their error where they are cut: a copy may be readable.
    faults_by_file = {
        file: fault_of(error)
        for file, error in faults.items()
        if file in with_path or not isinstance(error, OSError)
    }
    return trees, faults_by_file


def _describe(
    files: list[str], tree_of: Callable[[str], ArrayTree | None]
) -> tuple[dict[str, ArrayTree], dict[str, SwatheError]]:
    """Return the arrays of each file that has some, and the errors of those that have errors."""

    def describe(part: list[str]) -> list[ArrayTree | SwatheError | None]:
        answers: list[ArrayTree | SwatheError | None] = []
        for file in part:
            try:
                answers.append(tree_of(file))
            except SwatheError as error:
                answers.append(error)
        return answers

    length = max(1, min(MOST_IN_TURN, len(files) // (2 * THREADS)))
    parts = [files[at : at + length] for at in range(0, len(files), length)]
    with ThreadPoolExecutor(THREADS) as threads:
        try:
            of_parts = chain.from_iterable(threads.map(describe, parts))
            answers = dict(zip(files, of_parts, strict=True))
        except BaseException:  # after Ctrl-C those that have not begun never do
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    faults = {file: each for file, each in answers.items() if isinstance(each, SwatheError)}
    trees = {
        file: each
        for file, each in answers.items()
        if each is not None and not isinstance(each, SwatheError)
    }
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
