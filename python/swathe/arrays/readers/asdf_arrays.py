"""Arrays of an ASDF tree: what each says of its type, its shape and its place in a block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import encode_attribute
from swathe.arrays.readers.asdf_tree import children, is_quantity, member, plain
from swathe.arrays.readers.limits import check_shape
from swathe.arrays.readers.other_files import HOW_TO_READ
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.arrays.readers.asdf_blocks import Block

TYPES = {
    **{f"int{8 * size}": f"i{size}" for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": f"u{size}" for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": f"f{size}" for size in (2, 4, 8)},
    **{"complex64": "c8", "complex128": "c16", "bool8": "b1"},
}
TEXT_TYPES = {"ascii": "S", "ucs4": "U"}


def _has_none(values: Any) -> bool:
    """Return whether a list of lists has None in it."""
    return any(map(_has_none, values)) if isinstance(values, list) else values is None


class View:
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

    def __init__(
        self, path: str, node: Any, blocks: Sequence[Block], is_external: bool = False
    ) -> None:
        """Read a node of the tree.

        Args:
            path: path of the array.
            node: the node.
            blocks: blocks of the file.
            is_external: whether the block is the only one of another file, which it names.

        Raises:
            FormatError: If the node is damaged, or its block too small.
        """
        self.attributes: dict[str, Any] = {}
        if is_quantity(node):
            unit = member(node, "unit")
            if unit is not None and unit.id == "scalar":
                self.attributes["unit"] = encode_attribute(str(unit.value))
            node = member(node, "value")
        self.path = path
        self.data: Any = None
        self.block: Block | None = None
        self.shape: tuple[int, ...] = ()
        self.strides: list[int] = []
        self.offset, self.refusal = 0, ""
        members: dict[str, Any] = {"data": node}
        if node.id == "mapping":
            members = dict(children(node))
        if (mask := members.pop("mask", None)) is not None:
            self.attributes["mask"] = encode_attribute(
                str(mask.value) if mask.id == "scalar" else "array"
            )
        self._members = {key: plain(child) for key, child in members.items()}
        if is_external and isinstance(self._members.get("source"), str):
            self._members["source"] = 0
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
            self.refusal = f"data in another file, {source!r:.200}{HOW_TO_READ}"
            return
        end = blocks[-1].fault if blocks else ""  # what is behind it is not known
        if type(source) is not int or not -len(blocks) <= source < len(blocks):
            raise self._fault(f"a block of {len(blocks)}", f"{source}; {end}" if end else source)
        if fault := blocks[source].fault or (end if source < 0 else ""):
            raise FormatError(f"array {self.path}: {fault}")
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
        check_shape(f"array {self.path}", shape)
        self.shape = tuple(shape)
        steps = [self.dtype.itemsize * math.prod(shape[at + 1 :]) for at in range(len(shape))]
        self.strides = members.get("strides") or steps
        if len(self.strides) != len(shape) or any(type(each) is not int for each in self.strides):
            raise self._fault(f"{len(shape)} strides", self.strides)
        reach = [(length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(min(each, 0) for each in reach)
        last = self.offset + sum(max(each, 0) for each in reach) + self.dtype.itemsize
        if 0 not in self.shape and not (first >= 0 and last <= self.block.data_size):
            raise self._fault(
                f"its bytes in a block of {self.block.data_size}", f"{first} to {last}"
            )
        self.is_plain = list(self.strides) == steps or 0 in self.shape


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
