"""Write a chunk index: what a file says of its arrays, and where their chunks lie.

The format is described in docs/design/030-chunk-index.md. `crates/chunk-index` reads it.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.array_tree import READER_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

MAGIC = b"SWIX\x01\0\0\0"
CHUNK = np.dtype([("number", "<u8"), ("offset", "<u8"), ("length", "<u8"), ("skips", "<u4")])
"""A chunk: number in C order over the grid of chunks, first byte, length, and filters left out (bit
`i` is set if filter `i` was not applied to it)."""


@dataclass
class IndexWriter:
    """A chunk index that grows by one array at a time.

    Attributes:
        format: name of the format, such as `hdf5`.
        library: library that read the file, with its version.
        groups: attributes of each group, by its path; `/` is the root.
        notes: warnings about the file.
        missing: packages that are not installed, and with which more of the file may be read.
    """

    format: str
    library: str
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    _arrays: list[dict[str, Any]] = field(default_factory=list)
    _chunks: list[NDArray[Any]] = field(default_factory=list)
    _chunk_count: int = 0

    def add(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: Sequence[int],
        storage: Mapping[str, Any],
        *,
        dims: Sequence[str] = (),
        attributes: Mapping[str, Any] | None = None,
        fill: bytes | None = None,
    ) -> None:
        """Add an array.

        Args:
            name: its path in the file, from `/`.
            dtype: type of the elements as stored, with their byte order.
            shape: elements along each axis, slowest first.
            storage: one of the functions below.
            dims: names of the axes, one for each; empty if they have none.
            attributes: attributes, encoded by `encode_attribute`.
            fill: element of missing chunks; zeros by default.
        """
        self._arrays.append(
            {
                "name": name,
                "dtype": dtype.descr if dtype.names else dtype.str,
                "element_bytes": dtype.itemsize,
                "shape": [int(length) for length in shape],
                "dims": list(dims),
                "attributes": dict(attributes or {}),
                "fill": None if fill is None else base64.b64encode(fill).decode(),
                "storage": dict(storage),
            }
        )

    def chunks(
        self,
        chunk_shape: Sequence[int],
        filters: Sequence[Mapping[str, Any]],
        numbers: ArrayLike,
        offsets: ArrayLike,
        lengths: ArrayLike,
        skips: ArrayLike = 0,
        *,
        is_padded: bool = True,
    ) -> dict[str, Any]:
        """Return the storage of an array in chunks, whose table is added to the index.

        Args:
            chunk_shape: elements of a chunk along each axis, slowest first.
            filters: filters in the order in which a writer applies them, each with its `name` and
                parameters, as `crates/codecs` knows them.
            numbers: numbers of the stored chunks, in C order over the grid.
            offsets: first byte of each.
            lengths: bytes of each as stored.
            skips: bits of the filters that were not applied to each.
            is_padded: whether chunks at the far edges are stored whole.
        """
        table = np.empty(np.size(numbers), CHUNK)
        table["number"], table["offset"] = numbers, offsets
        table["length"], table["skips"] = lengths, skips
        table.sort(order="number")
        first, self._chunk_count = self._chunk_count, self._chunk_count + len(table)
        self._chunks.append(table)
        return {
            "kind": "chunks",
            "chunk_shape": [int(length) for length in chunk_shape],
            "is_padded": is_padded,
            "filters": [dict(each) for each in filters],
            "first": first,
            "count": len(table),
        }

    def to_bytes(self) -> bytes:
        """Return the index: magic, length of the JSON, JSON, and the columns of all chunks."""
        head = {
            "format": self.format,
            "library": self.library,
            "reader": READER_VERSIONS[self.format],
            "groups": self.groups,
            "arrays": self._arrays,
            "chunks": self._chunk_count,
            **({"notes": self.notes} if self.notes else {}),
            **({"missing": sorted(self.missing)} if self.missing else {}),
        }
        text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
        table = np.concatenate([np.empty(0, CHUNK), *self._chunks])
        columns = [table[name].tobytes() for name in CHUNK.names or ()]
        return b"".join([MAGIC, struct.pack("<Q", len(text)), text, *columns])


def contiguous(offset: int) -> dict[str, Any]:
    """Return the storage of an array whose elements follow each other from a byte, in C order."""
    return {"kind": "contiguous", "offset": int(offset)}


def regular(offset: int, chunk_shape: Sequence[int], strides: Sequence[int]) -> dict[str, Any]:
    """Return the storage of an array in plain chunks at regular distances.

    Args:
        offset: first byte of the first chunk.
        chunk_shape: elements of a chunk along each axis, slowest first.
        strides: bytes from a chunk to the next one along each axis.
    """
    return {
        "kind": "regular",
        "offset": int(offset),
        "chunk_shape": [int(length) for length in chunk_shape],
        "strides": [int(stride) for stride in strides],
    }


def inline(data: bytes) -> dict[str, Any]:
    """Return the storage of a small array that is kept in the index, in C order."""
    return {"kind": "inline", "data": base64.b64encode(data).decode()}


def by_library(why: str) -> dict[str, Any]:
    """Return the storage of an array that only the format's library reads, and why."""
    return {"kind": "library", "why": why}


def refusal(why: str) -> dict[str, Any]:
    """Return the storage of an array that is not read, and why."""
    return {"kind": "refused", "why": why}


def encode_attribute(value: Any) -> Any:
    """Return the JSON of an attribute: a text, or type, shape and bytes of an array.

    Numbers keep their type. A text that is not valid UTF-8 is kept with backslashes.

    Raises:
        TypeError: If it is of another type.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        texts = [encode_attribute(each) for each in array.ravel().tolist()]
        return {"texts": texts, "shape": list(array.shape)}
    if array.dtype.kind not in "biufcV":
        raise TypeError(f"expected a text or numbers, found {array.dtype}")
    return {
        "dtype": array.dtype.descr if array.dtype.names else array.dtype.str,
        "shape": list(array.shape),
        "data": base64.b64encode(array.tobytes()).decode(),
    }
