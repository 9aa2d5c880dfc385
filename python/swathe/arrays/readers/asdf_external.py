"""Arrays of ASDF whose block is that of another file of its folder (`source: name.asdf`).

Only for a file of a user who allows it, in a process that may read that folder and nothing else.

References:
    ASDF Standard 1.6, core/ndarray-1.1.0, and low-level file layout (exploded form).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from swathe.arrays.index_writer import IndexWriter, by_library, inline, refusal
from swathe.arrays.readers.asdf import UNKNOWN
from swathe.arrays.readers.asdf_arrays import View
from swathe.arrays.readers.asdf_tree import (
    blocks_of,
    is_quantity,
    member,
    open_tree,
    plain,
    walk,
    yaml_package,
)
from swathe.arrays.readers.limits import BoundedFile, check_chunk, typed_errors
from swathe.arrays.readers.other_files import file_within
from swathe.core.errors import FormatError, NoSuchHduError, RegionError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_NAME = 4096


def describe(folder: str, name: str) -> bytes:
    """Return a chunk index of the arrays of a file that lie in others.

    An array that is still refused has the reason.

    Args:
        folder: real path of the folder of the file.
        name: name of the file in it.

    Raises:
        FormatError: If it is damaged or not ASDF.
    """
    index = IndexWriter("asdf", f"PyYAML {yaml_package().__version__}")
    for path, node, source in _arrays(folder, name):
        try:
            with _view(path, node, source, folder, name) as (view, _):
                pass
        except (SwatheError, OSError) as error:
            index.add(path, UNKNOWN, (), refusal(str(error)))
            continue
        storage = refusal(view.refusal) if view.refusal else by_library(_where(source))
        if view.data is not None:
            storage = inline(view.data.tobytes())
        index.add(path, view.dtype, view.shape, storage, attributes=view.attributes)
    return index.to_bytes()


def read(folder: str, name: str, array: str, start: Sequence[int], stop: Sequence[int]) -> bytes:
    """Return the elements `[start, stop)` of an array of `describe`, in C order.

    Raises:
        FormatError: If its file is damaged.
        LimitError: If its block is too large.
        NoSuchHduError: If the file has no such array in another one.
        RegionError: If the region is not within the array.
    """
    for path, node, source in _arrays(folder, name):
        if path != array:
            continue
        with typed_errors("ASDF"), _view(path, node, source, folder, name) as (view, file):
            if view.block is None or view.refusal:
                raise FormatError(f"array {path}: expected one in a block, found {view.refusal}")
            sides = list(zip(start, stop, strict=True))
            if len(sides) != len(view.shape) or not all(
                0 <= low <= high <= side
                for (low, high), side in zip(sides, view.shape, strict=True)
            ):
                raise RegionError(f"{path}: expected a region within {view.shape}, found {sides}")
            check_chunk(f"array {path}", view.block.data_size)
            data = view.block.decode(file)
            values: np.ndarray[Any, Any] = np.ndarray(
                view.shape, view.dtype, data, view.offset, view.strides
            )
            return values[tuple(slice(*each) for each in sides)].tobytes()
    raise NoSuchHduError(f"expected an array in another file, found {array}")


def _arrays(folder: str, name: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the arrays that name another file: path, node, and the name of the file."""
    with open(os.path.join(folder, name), "rb") as content, typed_errors("ASDF"):
        root, _ = open_tree(BoundedFile(content))
        for path, node, kind in walk(root):
            if kind != "array":
                continue
            value = member(node, "value") if is_quantity(node) else node
            source = member(value, "source") if value.id == "mapping" else None
            if source is not None and isinstance(text := plain(source), str):
                yield path, node, text


@contextmanager
def _view(
    path: str, node: Any, source: str, folder: str, name: str
) -> Iterator[tuple[View, BoundedFile]]:
    """Open the file of an array; the values are a view of its block, and the file.

    Raises:
        FormatError: If the source is no file of the folder with one block.
    """
    parts = urlsplit(source)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost") or parts.fragment:
        raise FormatError(f"{_where(source)}: expected the name of a file, found a URL")
    around = os.path.join(folder, name)
    with open(file_within(folder, unquote(parts.path)[:LONGEST_NAME], around), "rb") as content:
        file = BoundedFile(content)
        blocks = blocks_of(file)
        if len(blocks) != 1:
            raise FormatError(f"{_where(source)}: expected one block, found {len(blocks)}")
        yield View(path, node, blocks, is_external=True), file


def _where(source: str) -> str:
    return f"data in another file, {source!r:.200}"
