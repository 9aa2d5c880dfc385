"""The tree of an ASDF file as plain YAML: no tag is resolved, nothing else is read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import encode_attribute
from swathe.arrays.readers.asdf_blocks import Block, read_blocks
from swathe.core.errors import FormatError, LimitError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.arrays.readers.limits import BoundedFile

MOST_TREE_BYTES = 64 << 20
LONGEST_NUMBER = 100
"""Characters of a number; a longer one stays text."""
MOST_NODES = 300_000
MOST_LEVELS = 500
MOST_WRITTEN_LEVELS = 200
MOST_ELEMENTS = 1000
"""Elements of a sequence that becomes an attribute."""
TREE_END = re.compile(rb"\r?\n\.\.\.[ \t]*\r?(\n|\Z)")
TREE_START = re.compile(rb"^%YAML", re.MULTILINE)
NDARRAY = "tag:stsci.edu:asdf/core/ndarray-"
QUANTITY = "tag:stsci.edu:asdf/unit/quantity-"
GWCS = "tag:stsci.edu:gwcs/wcs-"
PLAIN = "tag:yaml.org,2002:"


def yaml_package() -> Any:
    """Return PyYAML; raise OptionError if it is not installed."""
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise OptionError("ASDF needs PyYAML: pip install swathe[asdf]") from error
    return yaml


def open_tree(file: BoundedFile) -> tuple[Any, list[Block]]:
    """Return the root node of the tree, and the blocks."""
    yaml = yaml_package()
    text, end = _tree_text(file)
    blocks = read_blocks(file, end)
    if not text:
        raise FormatError("expected a tree in the file, found blocks only")
    return yaml.compose(text, Loader=_loader()), blocks


@lru_cache
def _loader() -> Any:
    """Return a loader of PyYAML that counts levels: libyaml's calls itself until it crashes."""
    yaml = yaml_package()

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        level = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            """Begin a node, one level below its parent."""
            self.level += 1
            if self.level > MOST_LEVELS:
                raise FormatError(
                    f"file rejected: its tree is nested too deep: expected at most {MOST_LEVELS} "
                    "levels, found more"
                )
            super().descend_resolver(parent, index)

        def ascend_resolver(self) -> None:
            """End a node."""
            self.level -= 1
            super().ascend_resolver()

    return Loader


def blocks_of(file: BoundedFile) -> list[Block]:
    """Return the blocks of a file, with or without a tree.

    Raises:
        FormatError: If the file is damaged or not ASDF.
    """
    return read_blocks(file, _tree_text(file)[1])


def _tree_text(file: BoundedFile) -> tuple[bytes, int]:
    """Return the YAML of the tree, and the byte after it."""
    if file.part("ASDF", 0, min(6, file.size)) != b"#ASDF ":
        raise FormatError("expected #ASDF at the start of the file")
    file.seek(0)
    data, size = b"", 8 << 10  # less than a server sends first
    while True:
        data += file.read(size)
        if data.find(b"\xd3BLK") != -1 and not TREE_START.search(data[: data.find(b"\xd3BLK")]):
            return b"", data.find(b"\xd3BLK")
        match = TREE_END.search(data)
        if match and (match.end() < len(data) or len(data) >= file.size):
            first = TREE_START.search(data)
            if first is None or first.start() > match.start():
                raise FormatError("expected %YAML before the end of the tree")
            return data[first.start() : match.start() + 1], match.end()
        if len(data) >= file.size:
            raise FormatError("tree: expected its end (...), found that of the file")
        if len(data) > MOST_TREE_BYTES:
            raise LimitError(f"tree: expected at most {MOST_TREE_BYTES} bytes")
        size = len(data)


def walk(root: Any) -> Iterator[tuple[str, Any, str]]:
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
        if node.tag.startswith(NDARRAY) or is_quantity(node):
            if path in arrays:
                raise FormatError(f"tree: expected one {path}, found two")
            arrays.add(path)
            nodes += _count(member(node, "data") if node.id == "mapping" else node, MOST_NODES)
            yield path, node, "array"
            continue
        if node.tag.startswith(GWCS):
            yield path, node, "gwcs"
            has_attributes = False
        attributes: dict[str, Any] = {}
        inner = []
        for key, child in children(node):
            if child.id == "scalar" or _is_plain_sequence(child):
                nodes += 1 if child.id == "scalar" else len(child.value)
                size += _size(child)
                if size > MOST_TREE_BYTES:
                    raise FormatError(
                        f"tree: expected at most {MOST_TREE_BYTES} bytes of attributes"
                    )
                if has_attributes and (value := _attribute(child)) is not None:
                    attributes[key] = value
            else:
                inner.append((f"{path}/{key}", child, has_attributes))
        stack += reversed(inner)
        if attributes:
            yield path or "/", attributes, "group"


def children(node: Any) -> Iterator[tuple[str, Any]]:
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


def member(node: Any, name: str) -> Any:
    """Return a member of a mapping, or None."""
    return next((child for key, child in node.value if key.value == name), None)


def is_quantity(node: Any) -> bool:
    """Return whether it is an array with a unit."""
    if not node.tag.startswith(QUANTITY) or node.id != "mapping":
        return False
    value = member(node, "value")
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
    # A longer number takes time with the square of its length.
    if kind in ("int", "float", "bool") and len(node.value) <= LONGEST_NUMBER:
        value = _constructor().construct_object(node)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return str(node.value)
        return value
    return str(node.value)


def node_of_rest(node: Any, level: int = 0) -> Any:
    """Return a tree without arrays and GWCS as JSON: scalars, lists, `{"pairs": ...}` of mappings.

    In a list null stands for what is left out. A key is a text, or a whole number. Infinite
    numbers and NaN are as Python's JSON writes them. A date is `{"timestamp": ...}` with its text.

    Raises:
        FormatError: If there are more than `MOST_WRITTEN_LEVELS`.
    """
    if node.id == "scalar":
        is_date = node.tag == f"{PLAIN}timestamp" and _is_timestamp(node.value)
        return {"timestamp": node.value} if is_date else _scalar(node)
    if level > MOST_WRITTEN_LEVELS:
        raise FormatError(f"tree: expected at most {MOST_WRITTEN_LEVELS} levels in a cut as ASDF")
    if node.id == "sequence":
        members: list[Any] = []
        for child in node.value:
            members.append(None if _is_apart(child) else node_of_rest(child, level + 1))
        return members
    pairs: list[Any] = []
    for key, child in node.value:
        if not _is_apart(child):
            name = _scalar(key)
            is_whole = isinstance(name, int) and not isinstance(name, bool)
            pairs.append((name if is_whole else key.value, node_of_rest(child, level + 1)))
    return {"pairs": pairs}


def _is_timestamp(text: str) -> bool:
    """Check whether a text is a date or a time of YAML."""
    is_short = len(text) <= LONGEST_NUMBER and "\n" not in text
    return is_short and _constructor().timestamp_regexp.match(text) is not None


def _is_apart(node: Any) -> bool:
    return node.tag.startswith((NDARRAY, GWCS)) or is_quantity(node)


@lru_cache
def _constructor() -> Any:
    return yaml_package().constructor.SafeConstructor()


def plain(node: Any) -> Any:
    """Return a node as lists and scalars."""
    if node.id == "scalar":
        return _scalar(node)
    if node.id == "sequence":
        return [plain(each) for each in node.value]
    return {key: plain(child) for key, child in children(node)}
