"""Read ASDF files: every ndarray of the tree is an array, named by its path, such as `/roman/data`.

The tree is parsed as plain YAML (PyYAML, which asdf brings) and the headers of blocks here: asdf
itself would import the code of every package that offers a tag. Tags are not resolved: a mapping is
a group, its texts and numbers are attributes. Nothing but the file is read: references to other
files stay texts, arrays in other files are refused. The root's attribute `gwcs` names the paths of
world coordinate systems. A `/` in a key is written `~1`, a `~` is `~0` (as in JSON pointers).

References:
    ASDF Standard 1.6, low-level file layout and core/ndarray-1.1.0.
"""

from __future__ import annotations

import json
import math
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import (
    IndexWriter,
    by_library,
    contiguous,
    encode_attribute,
    inline,
    refusal,
    regular,
)
from swathe.arrays.readers.asdf_arrays import View
from swathe.arrays.readers.asdf_tree import node_of_rest, open_tree, walk, yaml_package
from swathe.arrays.readers.limits import BoundedFile, check_chunk, chunk_fault, typed_errors
from swathe.core.errors import FormatError, LimitError, NoSuchHduError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.arrays.readers.asdf_blocks import Block

FILTERS: dict[str, dict[str, Any]] = {
    "zlib": {"name": "deflate"},
    "bzp2": {"name": "bzip2"},
    "lz4": {"name": "lz4", "framing": "asdf"},
}
UNKNOWN = np.dtype("V0")
"""Type of what is not read."""


def describe(file: IO[bytes]) -> bytes:
    """Return the chunk index of an ASDF file.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If its tree is damaged, or it is not ASDF.
        LimitError: If its tree is too large.
        OptionError: If PyYAML is not installed.
    """
    source = BoundedFile(file)
    with typed_errors("ASDF"):
        root, blocks = open_tree(source)
        index = IndexWriter("asdf", f"PyYAML {yaml_package().__version__}")
        gwcs: list[str] = []
        for path, value, kind in walk(root):
            if kind == "array":
                _add(index, path, value, blocks, source)
            elif kind == "gwcs":
                gwcs.append(path)
            else:
                index.groups[path] = value
        index.groups["/"] = {**index.groups.get("/", {}), "gwcs": encode_attribute(gwcs)}
    return index.to_bytes()


def read(file: IO[bytes], name: str, start: int, stop: int) -> bytes:
    """Return elements of an array that is a view of a block.

    Args:
        file: the file, for reading at any position.
        name: path of the array.
        start: first element, in C order.
        stop: end of the elements.

    Returns:
        The elements, in the byte order of the index.

    Raises:
        FormatError: If the file is damaged.
        LimitError: If the block is too large.
        NoSuchHduError: If the file has no such array.
        OptionError: If PyYAML is not installed.
    """
    source = BoundedFile(file)
    with typed_errors("ASDF"):
        root, blocks = open_tree(source)
        for path, value, kind in walk(root):
            if kind == "array" and path == name:
                return _elements(name, value, blocks, source, start, stop)
    raise NoSuchHduError(f"expected an array of the file, found {name}")


def rest(file: IO[bytes]) -> bytes:
    """Return the tree without its arrays and GWCS, as the JSON of `node_of_rest`.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If the file is damaged, or the tree too deep.
        OptionError: If PyYAML is not installed.
    """
    with typed_errors("ASDF"):
        root, _ = open_tree(BoundedFile(file))
        return json.dumps(node_of_rest(root)).encode()


def _add(
    index: IndexWriter, path: str, node: Any, blocks: Sequence[Block], file: BoundedFile
) -> None:
    """Add an array of the tree to an index; a damaged one is refused, and the others are read."""
    try:
        with typed_errors("ASDF"):
            view = View(path, node, blocks)
            storage = _storage(index, view, file)
    except (FormatError, LimitError) as error:
        index.add(path, UNKNOWN, (), refusal(str(error)))
        return
    index.add(path, view.dtype, view.shape, storage, attributes=view.attributes)


def _storage(index: IndexWriter, view: View, file: BoundedFile) -> dict[str, Any]:
    if view.refusal:
        return refusal(view.refusal)
    if fault := chunk_fault([], view.dtype.itemsize):
        return refusal(fault)
    if view.data is not None:
        return inline(view.data.tobytes())
    block = view.block
    if block is None:
        raise FormatError(f"array {view.path}: expected a block")
    size = math.prod(view.shape) * view.dtype.itemsize
    if not block.compression:
        if view.is_plain:
            return contiguous(block.offset + view.offset)
        if view.shape and view.strides[-1] == view.dtype.itemsize and min(view.strides) > 0:
            rows = [*[1] * (len(view.shape) - 1), view.shape[-1]]
            return regular(block.offset + view.offset, rows, [*view.strides[:-1], size])
        return by_library("elements that are not stored in C order")
    if block.compression not in FILTERS:
        return refusal(f"compression {block.compression}")
    if view.is_plain and view.offset == 0 and size == block.data_size and size:
        filters = [FILTERS[block.compression]]
        pieces = block.pieces(file) if block.compression == "lz4" else []
        if chunk_shape := _piece_shape(view, [each[2] for each in pieces]):
            starts, lengths = [each[0] for each in pieces], [each[1] for each in pieces]
            numbers = range(len(pieces))
            return index.chunks(chunk_shape, filters, numbers, starts, lengths, is_padded=False)
        if fault := chunk_fault(view.shape, view.dtype.itemsize):
            return refusal(fault)
        return index.chunks(view.shape, filters, [0], [block.offset], [block.used_size])
    if block.compression == "lz4":
        return refusal("a part of a block that is compressed by lz4")
    return by_library("a part of a compressed block")


def _piece_shape(view: View, sizes: Sequence[int]) -> list[int]:
    """Return the shape of the pieces of a block that are compressed each by itself.

    It is empty if the pieces are no chunks of the array.
    """
    if len(sizes) < 2 or len(set(sizes[:-1])) != 1 or not 0 < sizes[-1] <= sizes[0]:
        return []
    inner = view.dtype.itemsize
    for axis in reversed(range(len(view.shape))):
        length = view.shape[axis]
        rows, rest = divmod(sizes[0], inner)
        if rest:
            return []
        if rows <= length and (axis == 0 or length % rows == 0):
            return [*[1] * axis, rows, *view.shape[axis + 1 :]]
        inner *= length
    return []


def _elements(
    path: str, node: Any, blocks: Sequence[Block], file: BoundedFile, start: int, stop: int
) -> bytes:
    """Return elements of a view of a block."""
    view = View(path, node, blocks)
    if not 0 <= start <= stop <= math.prod(view.shape):
        raise FormatError(
            f"array {path}: expected elements in 0 to {math.prod(view.shape)}, "
            f"found {start} to {stop}"
        )
    check_chunk(f"array {path}", (stop - start) * view.dtype.itemsize)
    if view.block is None or view.refusal:
        raise FormatError(f"array {path}: expected one in a block")
    data = view.block.decode(file)
    array = np.ndarray(view.shape, view.dtype, data, view.offset, view.strides)
    part: bytes = array.flat[start:stop].tobytes()
    return part
