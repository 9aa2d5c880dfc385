"""NetCDF classic (CDF-1, CDF-2, CDF-5): the chunk index, from the header that we parse.

References:
    NetCDF Classic Format Specification, Unidata.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from swathe.arrays.index_writer import IndexWriter, contiguous, encode_attribute, refusal, regular
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8"}
WIDE_TYPES = {7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
"""Types that only CDF-5 has."""
DIMENSIONS, VARIABLES, ATTRIBUTES = 10, 11, 12
MOST_HEADER = 16 << 20
"""Limit of the header, in bytes."""
FIRST_READ = 8 << 10
"""Bytes of a header that are read first; then as many as before, until it ends."""
MOST_NAME, MOST_AXES = 1024, 32
MOST_ENTRIES = 100_000
"""Limit of the dimensions, variables, or attributes of one of these."""


def describe(file: BinaryIO) -> bytes:
    """Return the chunk index of a NetCDF classic file.

    Raises:
        FormatError: If its header is not valid.
    """
    size = file.seek(0, 2)
    file.seek(0)
    return _Header(file, size).index()


def read(_: BinaryIO, name: str, **region: Sequence[int]) -> bytes:  # noqa: ARG001
    """Raise an error: every array of this format is read without a library.

    Raises:
        FormatError: Always.
    """
    raise FormatError(f"{name}: expected an array that only a library reads, found plain numbers")


class _Header:
    """A header while it is parsed."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._limit = min(size, MOST_HEADER)
        content = self._content = file.read(min(self._limit, FIRST_READ))
        self._at = 4
        self._version = content[3] if content[:3] == b"CDF" and len(content) > 3 else 0
        if self._version not in (1, 2, 5):
            raise FormatError(f"expected CDF and version 1, 2 or 5, found {content[:4]!r}")
        self._count = struct.Struct(">Q" if self._version == 5 else ">I")
        self._begin = struct.Struct(">I" if self._version == 1 else ">Q")
        self._types = TYPES | (WIDE_TYPES if self._version == 5 else {})

    def index(self) -> bytes:
        """Parse the header, and return the index."""
        records = self._number(self._count)
        is_streaming = records == (1 << 8 * self._count.size) - 1
        names, sides = [], []
        for _ in range(self._list_length(DIMENSIONS, 4 + self._count.size)):
            names.append(self._name())
            sides.append(self._number(self._count))
        if sides.count(0) > 1:
            raise FormatError(f"expected one record dimension at most, found {sides.count(0)}")
        attributes = self._attributes()
        length = self._list_length(VARIABLES, 8 + 3 * self._count.size)
        variables = [self._variable(names, sides) for _ in range(length)]
        row_bytes = self._row_bytes(variables)
        if is_streaming:
            begins = [each["begin"] for each in variables if each["is_record"]]
            rest = self._size - min(begins, default=self._size)
            records = max(0, rest) // row_bytes if row_bytes else 0
        writer = IndexWriter("netcdf3", "swathe", {"/": attributes})
        visits: set[str] = set()
        for each in variables:
            if each["name"] in visits:
                raise FormatError(f"variable {each['name']}: expected it once, found it twice")
            visits.add(each["name"])
            self._add(writer, each, records, row_bytes)
        return writer.to_bytes()

    def _row_bytes(self, variables: list[dict[str, Any]]) -> int:
        """Return the bytes of a record; the rows of a single variable have no padding."""
        rows = [each["row_bytes"] for each in variables if each["is_record"]]
        return rows[0] if len(rows) == 1 else sum(_with_padding(row) for row in rows)

    def _add(
        self, writer: IndexWriter, variable: dict[str, Any], records: int, row_bytes: int
    ) -> None:
        """Add a variable; it is refused if the file lacks some of its data."""
        name, begin, dtype = variable["name"], variable["begin"], variable["dtype"]
        shape = [*variable["sides"]]
        bytes_all = variable["row_bytes"]
        if variable["is_record"]:
            shape[0] = records
            bytes_all = (records - 1) * row_bytes + variable["row_bytes"] if records else 0
        storage = contiguous(begin)
        if bytes_all and (begin < self._at or begin + bytes_all > self._size):
            # The other variables of the file can be read.
            storage = refusal(
                f"expected {bytes_all} bytes from {self._at} to the end at {self._size}, "
                f"found it to begin at {begin}"
            )
        elif variable["is_record"] and math.prod(shape):
            strides = [row_bytes] + [0] * (len(shape) - 1)
            storage = regular(begin, [1, *shape[1:]], strides)
        writer.add(
            f"/{name}",
            dtype,
            shape,
            storage,
            dims=variable["dims"],
            attributes=variable["attributes"],
        )

    def _variable(self, names: list[str], sides: list[int]) -> dict[str, Any]:
        name = self._name()
        axes = self._number(self._count)
        if axes > MOST_AXES:
            raise FormatError(f"variable {name}: expected {MOST_AXES} axes at most, found {axes}")
        numbers = [self._number(self._count) for _ in range(axes)]
        if any(number >= len(names) for number in numbers):
            raise FormatError(
                f"variable {name}: expected dimensions below {len(names)}, found {numbers}"
            )
        if any(sides[number] == 0 for number in numbers[1:]):
            raise FormatError(f"variable {name}: expected the record dimension first")
        attributes = self._attributes()
        dtype = self._dtype(name)
        self._number(self._count)  # vsize, which is too small for large variables
        begin = self._number(self._begin)
        is_record = bool(numbers) and sides[numbers[0]] == 0
        shape = [sides[number] for number in numbers]
        row_bytes = math.prod(shape[1:] if is_record else shape) * dtype.itemsize
        if row_bytes >= 1 << 63:
            raise FormatError(f"variable {name}: expected fewer than 2^63 bytes, found {shape}")
        return {
            "name": name,
            "dims": [names[number] for number in numbers],
            "sides": shape,
            "attributes": attributes,
            "dtype": dtype,
            "begin": begin,
            "is_record": is_record,
            "row_bytes": row_bytes,
        }

    def _attributes(self) -> dict[str, Any]:
        attributes = {}
        for _ in range(self._list_length(ATTRIBUTES, 4 + 2 * self._count.size)):
            name = self._name()
            dtype = self._dtype(name)
            count = self._number(self._count)
            content = self._take(count * dtype.itemsize, name)
            self._take(-len(content) % 4, name)
            value: Any = content.rstrip(b"\0")
            if dtype.kind != "S":
                value = np.frombuffer(content, dtype)
                value = value[0] if len(value) == 1 else value
            attributes[name] = encode_attribute(value)
        return attributes

    def _list_length(self, tag: int, least_bytes: int) -> int:
        """Return the number of entries of a list, each of `least_bytes` or more."""
        found_tag = self._number(struct.Struct(">I"))
        count = self._number(self._count)
        room = (self._limit - self._at) // least_bytes
        if count > min(MOST_ENTRIES, room) or found_tag != (tag if count or found_tag else 0):
            raise FormatError(
                f"header at byte {self._at}: expected list {tag} of {min(MOST_ENTRIES, room)} "
                f"entries at most, found list {found_tag} of {count}"
            )
        return count

    def _name(self) -> str:
        length = self._number(self._count)
        if not 1 <= length <= MOST_NAME:
            raise FormatError(
                f"header at byte {self._at}: expected a name of 1 to {MOST_NAME} bytes, "
                f"found {length}"
            )
        name = self._take(length, "a name")
        self._take(-length % 4, "a name")
        if b"/" in name or b"\0" in name:
            raise FormatError(f"name: expected one without '/' and zeros, found {name!r}")
        return name.decode("utf-8", "backslashreplace")

    def _dtype(self, name: str) -> np.dtype[Any]:
        number = self._number(struct.Struct(">I"))
        if number not in self._types:
            raise FormatError(f"{name}: expected one of types {[*self._types]}, found {number}")
        return np.dtype(self._types[number])

    def _number(self, of: struct.Struct) -> int:
        return int(of.unpack(self._take(of.size, "a number"))[0])

    def _take(self, length: int, what: str) -> bytes:
        end = self._at + length
        if len(self._content) < end <= self._limit:
            more = min(max(end, 2 * len(self._content)), self._limit) - len(self._content)
            self._content += self._file.read(more)
        if end > len(self._content):
            raise FormatError(
                f"header: expected {what} of {length} bytes at {self._at}, "
                f"found its end at {self._limit}"
            )
        self._at = end
        return self._content[self._at - length : self._at]


def _with_padding(length: int) -> int:
    return length + -length % 4
