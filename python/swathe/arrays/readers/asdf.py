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

import math
import re
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
from swathe.arrays.readers.asdf_blocks import Block, read_blocks
from swathe.arrays.readers.bounds import BoundedFile, check_chunk, typed_errors
from swathe.core.errors import FormatError, LimitError, NoSuchHduError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_TREE_BYTES = 64 << 20
MOST_NODES = 300_000
MOST_LEVELS = 500
MOST_ELEMENTS = 1000
"""Elements of a sequence that becomes an attribute."""
TREE_END = re.compile(rb"\r?\n\.\.\.[ \t]*\r?(\n|\Z)")
TREE_START = re.compile(rb"^%YAML", re.MULTILINE)
NDARRAY = "tag:stsci.edu:asdf/core/ndarray-"
QUANTITY = "tag:stsci.edu:asdf/unit/quantity-"
GWCS = "tag:stsci.edu:gwcs/wcs-"
PLAIN = "tag:yaml.org,2002:"
TYPES = {
    **{f"int{8 * size}": f"i{size}" for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": f"u{size}" for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": f"f{size}" for size in (2, 4, 8)},
    **{"complex64": "c8", "complex128": "c16", "bool8": "b1"},
}
TEXT_TYPES = {"ascii": "S", "ucs4": "U"}
FILTERS = {"zlib": "deflate", "bzp2": "bzip2", "lz4": "asdflz4"}


def describe(file: IO[bytes]) -> bytes:
    """Return the chunk index of an ASDF file.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If it is damaged or not ASDF.
        LimitError: If its tree is too large.
        OptionError: If PyYAML is not installed.
    """
    bounded = BoundedFile(file)
    with typed_errors("ASDF"):
        root, blocks = _open(bounded)
        index = IndexWriter("asdf", f"PyYAML {_yaml().__version__}")
        gwcs: list[str] = []
        for path, value, kind in _walk(root):
            if kind == "array":
                _add(index, path, value, blocks, bounded)
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
    bounded = BoundedFile(file)
    with typed_errors("ASDF"):
        root, blocks = _open(bounded)
        for path, value, kind in _walk(root):
            if kind == "array" and path == name:
                return _elements(name, value, blocks, bounded, start, stop)
    raise NoSuchHduError(f"expected an array of the file, found {name}")


def _yaml() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise OptionError("ASDF needs PyYAML: pip install swathe[asdf]") from error
    return yaml


def _open(file: BoundedFile) -> tuple[Any, list[Block]]:
    """Return the root node of the tree, and the blocks."""
    if file.part("ASDF", 0, min(6, file.size)) != b"#ASDF ":
        raise FormatError("expected #ASDF at the start of the file")
    yaml = _yaml()
    text, end = _tree_text(file)
    blocks = read_blocks(file, end)
    if not text:
        raise FormatError("expected a tree in the file, found blocks only")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.compose(text, Loader=loader), blocks


def _tree_text(file: BoundedFile) -> tuple[bytes, int]:
    """Return the YAML of the tree, and the byte after it."""
    file.seek(0)
    data, size = b"", 64 << 10
    while True:
        data += file.read(size)
        if data.find(b"\xd3BLK") != -1 and not TREE_START.search(data[: data.find(b"\xd3BLK")]):
            return b"", data.find(b"\xd3BLK")
        if found := TREE_END.search(data):
            first = TREE_START.search(data)
            if first is None or first.start() > found.start():
                raise FormatError("expected %YAML before the end of the tree")
            return data[first.start() : found.start() + 1], found.end()
        if len(data) >= file.size:
            raise FormatError("tree: expected its end (...), found that of the file")
        if len(data) > MOST_TREE_BYTES:
            raise LimitError(f"tree: expected at most {MOST_TREE_BYTES} bytes")
        size = len(data)


def _walk(root: Any) -> Iterator[tuple[str, Any, str]]:
    """Return what is in the tree: path, and a node of an `array`, or attributes of a `group`.

    Nodes that are referred to many times (aliases) count each time.
    """
    stack = [("", root, True)]
    nodes = size = 0
    arrays: set[str] = set()
    while stack:
        path, node, has_attributes = stack.pop()
        nodes += 1
        if nodes > MOST_NODES or path.count("/") > MOST_LEVELS:
            raise FormatError(
                f"tree: expected at most {MOST_NODES} nodes and {MOST_LEVELS} levels; "
                "aliases count each time"
            )
        if node.tag.startswith(NDARRAY) or _is_quantity(node):
            if path in arrays:
                raise FormatError(f"tree: expected one {path}, found two")
            arrays.add(path)
            nodes += _count(_member(node, "data") if node.id == "mapping" else node, MOST_NODES)
            yield path, node, "array"
            continue
        if node.tag.startswith(GWCS):
            yield path, node, "gwcs"
            has_attributes = False
        attributes: dict[str, Any] = {}
        inner = []
        for key, child in _children(node):
            if child.id == "scalar" or _is_plain_sequence(child):
                nodes += 1 if child.id == "scalar" else len(child.value)
                size += _size(child)
                if has_attributes and (value := _attribute(child)) is not None:
                    attributes[key] = value
            else:
                inner.append((f"{path}/{key}", child, has_attributes))
        stack += reversed(inner)
        if size > MOST_TREE_BYTES:
            raise FormatError(f"tree: expected at most {MOST_TREE_BYTES} bytes of attributes")
        if attributes:
            yield path or "/", attributes, "group"


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """Return the members of a mapping or sequence, with their keys as parts of a path."""
    if node.id == "sequence":
        yield from ((str(number), child) for number, child in enumerate(node.value))
    elif node.id == "mapping":
        keys: set[str] = set()
        for key, child in node.value:
            if key.id != "scalar" or key.value in keys:
                raise FormatError(f"tree: expected keys that are texts, each once, found {key.tag}")
            keys.add(key.value)
            yield key.value.replace("~", "~0").replace("/", "~1"), child


def _member(node: Any, name: str) -> Any:
    """Return a member of a mapping, or None."""
    return next((child for key, child in node.value if key.value == name), None)


def _is_quantity(node: Any) -> bool:
    """Return whether it is an array with a unit."""
    if not node.tag.startswith(QUANTITY) or node.id != "mapping":
        return False
    value = _member(node, "value")
    return value is not None and value.tag.startswith(NDARRAY)


def _is_plain_sequence(node: Any) -> bool:
    return (
        node.id == "sequence"
        and not node.tag.startswith(NDARRAY)
        and 0 < len(node.value) <= MOST_ELEMENTS
        and all(each.id == "scalar" for each in node.value)
    )


def _size(node: Any) -> int:
    return len(node.value) if node.id == "scalar" else sum(len(each.value) for each in node.value)


def _count(node: Any, most: int) -> int:
    """Return the number of nodes below a node, counted up to a limit."""
    stack, nodes = [node] if node is not None else [], 0
    while stack and nodes <= most:
        nodes += 1
        each = stack.pop()
        if each.id == "sequence":
            stack.extend(each.value)
    return nodes


def _attribute(node: Any) -> Any:
    """Return the JSON of a text, number or sequence of them; None for null."""
    if node.id == "scalar":
        value = _scalar(node)
        return None if value is None else encode_attribute(value)
    values = [_scalar(each) for each in node.value]
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {bool}:
        return encode_attribute(np.array(values))
    return encode_attribute([each.value for each in node.value])


def _scalar(node: Any) -> Any:
    """Return a text, a number, a boolean or None; what is none of these is its text."""
    kind = node.tag.removeprefix(PLAIN)
    if kind == "null":
        return None
    if kind in ("int", "float", "bool"):
        value = _yaml().SafeLoader("").construct_object(node)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return str(node.value)
        return value
    return str(node.value)


def _plain(node: Any) -> Any:
    """Return a node as lists and scalars."""
    if node.id == "scalar":
        return _scalar(node)
    if node.id == "sequence":
        return [_plain(each) for each in node.value]
    return {key: _plain(child) for key, child in _children(node)}


def _has_none(values: Any) -> bool:
    """Return whether a list of lists has None in it."""
    return any(map(_has_none, values)) if isinstance(values, list) else values is None


class _View:
    """What an ndarray of the tree says of itself.

    Attributes:
        attributes: unit and mask.
        dtype: type of its elements.
        shape: elements along each axis; checked to fit the block.
        block: the block of its data, or None if they are inline or elsewhere.
        offset: first byte in the decoded block.
        strides: bytes between elements along each axis.
        data: inline data, or None.
        refusal: why it is not read, or an empty text.
    """

    def __init__(self, path: str, node: Any, blocks: Sequence[Block]) -> None:
        self.attributes: dict[str, Any] = {}
        if _is_quantity(node):
            unit = _member(node, "unit")
            if unit is not None and unit.id == "scalar":
                self.attributes["unit"] = encode_attribute(str(unit.value))
            node = _member(node, "value")
        self.path = path
        self.data: Any = None
        self.block: Block | None = None
        self.shape: tuple[int, ...] = ()
        self.strides: list[int] = []
        self.offset, self.refusal = 0, ""
        members: dict[str, Any] = {"data": node}
        if node.id == "mapping":
            members = dict(_children(node))
        if (mask := members.pop("mask", None)) is not None:
            self.attributes["mask"] = encode_attribute(
                str(mask.value) if mask.id == "scalar" else "array"
            )
        self._members = {key: _plain(child) for key, child in members.items()}
        self.dtype = self._dtype()
        if "data" in self._members:
            self._set_inline()
        else:
            self._set_block(blocks)

    def _fault(self, what: str, value: object) -> FormatError:
        return FormatError(f"array {self.path}: expected {what}, found {str(value)[:100]}")

    def _dtype(self) -> np.dtype[Any]:
        if "datatype" not in self._members:
            return np.dtype("f8")
        try:
            return dtype_of(self._members["datatype"], self._members.get("byteorder", "big"))
        except (TypeError, ValueError, KeyError) as error:
            raise self._fault("a datatype of ASDF", self._members["datatype"]) from error

    def _set_inline(self) -> None:
        values = self._members["data"]
        dtype = self.dtype if "datatype" in self._members else None
        if dtype is not None and dtype.names:
            self.refusal = "an inline array of records"
            return
        if _has_none(values):
            self.refusal = "inline values that are masked"
            return
        try:
            array = np.array(values, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._fault("values of one shape and type", error) from error
        if array.dtype.kind not in "biufcSU":
            raise self._fault("numbers or texts", array.dtype)
        shape = self._members.get("shape", list(array.shape))
        if math.prod(array.shape) != math.prod(shape):
            raise self._fault(f"values of shape {shape}", array.shape)
        self.dtype, self.shape, self.data = array.dtype, tuple(shape), array

    def _set_block(self, blocks: Sequence[Block]) -> None:
        members = self._members
        shape = members.get("shape")
        if not isinstance(shape, list) or not all(
            type(length) is int and 0 <= length < 1 << 62 for length in shape[1:]
        ):
            raise self._fault("a shape", shape)
        source = members.get("source")
        if isinstance(source, str):
            self.shape = tuple(length if type(length) is int else 0 for length in shape)
            self.refusal = f"data in another file ({source[:200]})"
            return
        if type(source) is not int or not -len(blocks) <= source < len(blocks):
            raise self._fault(f"a block of {len(blocks)}", source)
        self.block = blocks[source]
        self.offset = members.get("offset", 0)
        if type(self.offset) is not int or not 0 <= self.offset <= self.block.data_size:
            raise self._fault(f"an offset in {self.block.data_size} bytes", self.offset)
        inner = math.prod(shape[1:]) * self.dtype.itemsize
        if shape and shape[0] == "*":
            row = members["strides"][0] if members.get("strides") else inner
            if type(row) is not int or row <= 0:
                raise self._fault("rows of some bytes", row)
            shape[0] = (self.block.data_size - self.offset) // row
        if shape and (type(shape[0]) is not int or not 0 <= shape[0] < 1 << 62):
            raise self._fault("a shape", shape)
        self.shape = tuple(shape)
        plain = [self.dtype.itemsize * math.prod(shape[at + 1 :]) for at in range(len(shape))]
        self.strides = members.get("strides") or plain
        if len(self.strides) != len(shape) or any(type(each) is not int for each in self.strides):
            raise self._fault(f"{len(shape)} strides", self.strides)
        reach = [(length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(min(each, 0) for each in reach)
        last = self.offset + sum(max(each, 0) for each in reach) + self.dtype.itemsize
        if 0 not in self.shape and not (first >= 0 and last <= self.block.data_size):
            raise self._fault(
                f"its bytes in a block of {self.block.data_size}", f"{first} to {last}"
            )
        self.is_plain = list(self.strides) == plain or 0 in self.shape


def dtype_of(datatype: Any, order: str) -> np.dtype[Any]:
    """Return the dtype of a datatype of ASDF.

    Args:
        datatype: a name, a text type with its length, or a list of fields.
        order: `big` or `little`.

    Raises:
        ValueError: If it is none.
    """
    sign = {"big": ">", "little": "<"}[order]
    if isinstance(datatype, str) and datatype in TYPES:
        return np.dtype(sign + TYPES[datatype])
    if not isinstance(datatype, list) or not datatype:
        raise ValueError(datatype)
    if datatype[0] in list(TEXT_TYPES):
        if len(datatype) != 2 or not 0 < datatype[1] < 1 << 20:
            raise ValueError(datatype)
        return np.dtype(f"{sign}{TEXT_TYPES[datatype[0]]}{datatype[1]}")
    fields: list[Any] = []
    for number, field in enumerate(datatype):
        if not isinstance(field, dict):
            fields.append((f"f{number}", dtype_of(field, order)))
            continue
        inner = dtype_of(field["datatype"], field.get("byteorder", order))
        shape = field.get("shape") or []
        if any(type(each) is not int or not 0 < each < 1 << 20 for each in shape):
            raise ValueError(datatype)
        fields.append((str(field.get("name") or f"f{number}"), inner, tuple(shape)))
    return np.dtype(fields)


def _add(
    index: IndexWriter, path: str, node: Any, blocks: Sequence[Block], file: BoundedFile
) -> None:
    """Add an array of the tree to an index."""
    view = _View(path, node, blocks)
    storage = _storage(index, view, file)
    index.add(path, view.dtype, view.shape, storage, attributes=view.attributes)


def _storage(index: IndexWriter, view: _View, file: BoundedFile) -> dict[str, Any]:
    if view.refusal:
        return refusal(view.refusal)
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
        filters = [{"name": FILTERS[block.compression]}]
        pieces = block.pieces(file) if block.compression == "lz4" else []
        if chunk_shape := _piece_shape(view, [each[2] for each in pieces]):
            starts, lengths = [each[0] for each in pieces], [each[1] for each in pieces]
            numbers = range(len(pieces))
            return index.chunks(chunk_shape, filters, numbers, starts, lengths, is_padded=False)
        return index.chunks(view.shape, filters, [0], [block.offset], [block.used_size])
    if block.compression == "lz4":
        return refusal("a part of a block that is compressed by lz4")
    return by_library("a part of a compressed block")


def _piece_shape(view: _View, sizes: Sequence[int]) -> list[int]:
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
    view = _View(path, node, blocks)
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
