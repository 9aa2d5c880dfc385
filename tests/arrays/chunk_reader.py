"""Read arrays by a chunk index in plain Python: what the engine must agree with."""

from __future__ import annotations

import base64
import bz2
import json
import math
import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swathe.arrays.array_tree import decode_attribute, dtype_of
from swathe.arrays.index_writer import CHUNK, MAGIC


@dataclass
class Array:
    """An array of a chunk index."""

    head: dict[str, Any]
    table: NDArray[Any]
    file: Path

    @property
    def dims(self) -> list[str]:
        return list(self.head["dims"])

    @property
    def storage(self) -> dict[str, Any]:
        return dict(self.head["storage"])

    @property
    def kind(self) -> str:
        return str(self.storage["kind"])

    @cached_property
    def attributes(self) -> dict[str, Any]:
        return {name: decode_attribute(of) for name, of in self.head["attributes"].items()}

    def values(self) -> NDArray[Any]:
        dtype, shape = dtype_of(self.head["dtype"]), tuple(self.head["shape"])
        assert dtype.itemsize == self.head["element_bytes"]
        assert len(self.dims) in (0, len(shape))
        size = math.prod(shape) * dtype.itemsize
        match self.storage:
            case {"kind": "contiguous", "offset": offset}:
                data = self.part(offset, size)
                return np.frombuffer(data, dtype).reshape(shape)
            case {"kind": "inline", "data": data}:
                return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
            case {"kind": "regular", "offset": offset, "chunk_shape": part, "strides": strides}:
                array = np.zeros(shape, dtype)
                grid = [-(-a // b) for a, b in zip(shape, part, strict=True)]
                for at in np.ndindex(*grid):
                    first = offset + sum(a * b for a, b in zip(at, strides, strict=True))
                    size = math.prod(part) * dtype.itemsize
                    self.put(array, at, np.frombuffer(self.part(first, size), dtype), True)
                return array
            case {"kind": "chunks"}:
                return self.chunks(dtype, shape)
        raise AssertionError(f"{self.head['name']} is not stored plainly: {self.storage}")

    def part(self, offset: int, length: int) -> bytes:
        with self.file.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
        assert len(data) == length
        return data

    def chunks(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        storage = self.storage
        fill = self.head["fill"]
        array = np.zeros(shape, dtype)
        if fill is not None:
            array[...] = np.frombuffer(base64.b64decode(fill), dtype)[0]
        grid = [-(-a // b) for a, b in zip(shape, storage["chunk_shape"], strict=True)]
        rows = self.table[storage["first"] : storage["first"] + storage["count"]]
        assert len(rows) == storage["count"]
        assert (np.diff(rows["number"].astype(np.int64)) > 0).all()
        for number, offset, length, skips in rows.tolist():
            data = self.part(offset, length)
            for at, one in reversed(list(enumerate(storage["filters"]))):
                if not skips >> at & 1:
                    data = undo(one, data)
            at = tuple(int(each) for each in np.unravel_index(number, grid))
            if storage["filters"][-1:] and storage["filters"][-1]["name"] == "rawdeflate":
                data = data[: math.prod(storage["chunk_shape"]) * dtype.itemsize]
            self.put(array, at, np.frombuffer(data, dtype), storage["is_padded"])
        return array

    def put(
        self, array: NDArray[Any], at: tuple[int, ...], values: NDArray[Any], is_padded: bool
    ) -> None:
        part = self.storage["chunk_shape"]
        corner = [a * b for a, b in zip(at, part, strict=True)]
        size = [min(a, b - c) for a, b, c in zip(part, array.shape, corner, strict=True)]
        place = tuple(slice(a, a + b) for a, b in zip(corner, size, strict=True))
        chunk = values.reshape(part if is_padded else size)
        array[place] = chunk[tuple(slice(length) for length in size)]


def undo(one: dict[str, Any], data: bytes) -> bytes:
    """Decode one filter of a chunk."""
    import imagecodecs

    match one["name"]:
        case "deflate":
            return zlib.decompress(data)
        case "rawdeflate":
            whole = zlib.decompress(data, -zlib.MAX_WBITS)
            assert len(whole) == one["size"]
            return whole[one["from"] :]
        case "bits":
            kind = f"{'><'[not one['big_endian']]}{'i' if one['signed'] else 'u'}{one['size']}"
            shift = 8 * one["size"] - one["bits"]
            elements = np.frombuffer(data[: len(data) // one["size"] * one["size"]], kind)
            extended: bytes = (elements << shift >> shift).astype(kind).tobytes()
            return extended
        case "bzip2":
            return bz2.decompress(data)
        case "lzw":
            return bytes(imagecodecs.lzw_decode(data))
        case "zstd":
            return bytes(imagecodecs.zstd_decode(data))
        case "packbits":
            return bytes(imagecodecs.packbits_decode(data))
        case "lz4" if one["framing"] == "asdf":
            parts = []
            while data:
                (length,) = struct.unpack(">I", data[:4])
                block, data = data[4 : 4 + length], data[4 + length :]
                size = struct.unpack("<I", block[:4])[0]
                parts.append(bytes(imagecodecs.lz4_decode(block[4:], out=size)))
            return b"".join(parts)
        case "horizontal":
            order = ">" if one["big_endian"] else "<"
            rows = np.frombuffer(data, f"{order}u{one['size']}")
            rows = rows.astype(rows.dtype.newbyteorder("=")).reshape(
                -1, one["width"], one["samples"]
            )
            sums = np.add.accumulate(rows, axis=1, dtype=rows.dtype)
            return sums.astype(f"{order}u{one['size']}").tobytes()
        case "floating":
            row = one["width"] * one["samples"] * one["size"]
            rows = np.frombuffer(data, "u1").reshape(-1, row // one["samples"], one["samples"])
            sums = np.add.accumulate(rows, axis=1, dtype="u1").reshape(len(rows), one["size"], -1)
            return sums[:, :: 1 if one["big_endian"] else -1].transpose(0, 2, 1).tobytes()
    raise AssertionError(f"no filter {one}")


def arrays_of(index: bytes, file: Path) -> dict[str, Array]:
    """Return the arrays of an index by their names."""
    head, table = parts_of(index)
    arrays = {each["name"]: Array(each, table, file) for each in head["arrays"]}
    assert len(arrays) == len(head["arrays"])
    return arrays


def parts_of(index: bytes) -> tuple[dict[str, Any], NDArray[Any]]:
    """Return the JSON and the table of an index."""
    assert index[:8] == MAGIC
    (length,) = struct.unpack("<Q", index[8:16])
    head = json.loads(index[16 : 16 + length])
    table = np.empty(head["chunks"], CHUNK)
    start = 16 + length
    for name in CHUNK.names or ():
        column = np.frombuffer(index, CHUNK[name], head["chunks"], start)
        table[name] = column
        start += column.nbytes
    assert start == len(index)
    return head, table
