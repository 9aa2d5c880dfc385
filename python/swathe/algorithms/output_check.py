"""Check what a run has written: the type by its content, and the arrays that it must have."""

from __future__ import annotations

import codecs
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from swathe.algorithms.definition import Output
from swathe.algorithms.local_granules import array_of
from swathe.algorithms.media_types import MEDIA_TYPES, MediaType
from swathe.arrays.indexing import format_of
from swathe.core.errors import LimitError, SwatheError
from swathe.core.format import count_text, size_text
from swathe.files.array import Array
from swathe.files.array_file import ArrayFile
from swathe.files.file import open as open_file
from swathe.files.variable import Variable, masked_values

READ_BYTES = 1 << 20
MOST_JSON_BYTES = 16 << 20
MOST_JSON_VALUES = 1_000_000
"""Values of an output of JSON: while it is parsed, no other thread of a portal runs."""
CHECKS_S = 10.0
"""Time for the checks of all arrays of a group, in seconds: fill values cost no bytes in a file."""
BLOCK_ELEMENTS = 1 << 22
MOST_ELEMENTS = 1 << 30
"""Elements of an array that are searched for a valid value: a small file may declare any number."""


@dataclass(frozen=True)
class CheckTime:
    """Time that the checks of a group have.

    Attributes:
        is_gone: asked between blocks; if true, the checks end.
        end: when checks of arrays end, in seconds of the monotonic clock.
    """

    is_gone: Callable[[], bool] | None = None
    end: float = field(default_factory=lambda: time.monotonic() + CHECKS_S)

    def check_stop(self) -> None:
        """Check that the run was not cancelled.

        Raises:
            LimitError: If it was.
        """
        if self.is_gone is not None and self.is_gone():
            raise LimitError("the run was cancelled while its outputs were checked")

    def check(self, array: str) -> None:
        """Check that there is time left for an array.

        Raises:
            LimitError: If there is none, or the run was cancelled.
        """
        self.check_stop()
        if time.monotonic() > self.end:
            raise LimitError(
                f"array {array}: expected a valid value within {CHECKS_S:g} s of checks, "
                "found none so far"
            )


def output_fault(path: Path, output: Output, check_time: CheckTime) -> str | None:
    """Return why a file is not what an output must be; `None` if it is.

    Libraries that read it run in confined processes.

    Args:
        path: the file.
        output: what it must be.
        check_time: time that is left for all outputs of its group.

    Raises:
        LimitError: If the run was cancelled.
    """
    kind = MEDIA_TYPES[output.media_type]
    if not _has_type(path, kind, check_time):
        with path.open("rb") as file:
            start = file.read(8)
        return f"expected {output.media_type}, found {start!r} at its start"
    if output.media_type == "application/json":
        return _json_fault(path)
    if not output.checks:
        return None
    try:
        with open_file(path) as file:
            assert isinstance(file, ArrayFile), "its type has arrays"
            for name in output.checks:
                if not has_values(array_of(file, name), check_time):
                    return f"expected an array {name} with a valid value, found none"
    except SwatheError as error:
        check_time.check_stop()
        return str(error).replace(str(path), path.name)
    return None


def _has_type(path: Path, kind: MediaType, check_time: CheckTime) -> bool:
    """Check whether a file begins as its type does, or is text."""
    with path.open("rb") as file:
        if kind.is_text:
            return _is_text(_parts(file, check_time))

        def read_at(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        if kind.formats:
            return format_of(read_at) in kind.formats
        return file.read(READ_BYTES).startswith(kind.starts)


def _parts(file: BinaryIO, check_time: CheckTime) -> Iterator[bytes]:
    while part := file.read(READ_BYTES):
        check_time.check_stop()
        yield part


def _is_text(parts: Iterator[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in parts:
            if b"\0" in part:
                return False
            decoder.decode(part)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _json_fault(path: Path) -> str | None:
    size = path.stat().st_size
    if size > MOST_JSON_BYTES:
        return f"expected at most {size_text(MOST_JSON_BYTES)} of JSON, found {size_text(size)}"
    content = path.read_bytes()
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > MOST_JSON_VALUES:
        return f"expected at most {count_text(MOST_JSON_VALUES, 'value')} of JSON, found {values:,}"
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        return f"expected JSON, found other text: {error}"
    return None


def has_values(array: Array, check_time: CheckTime) -> bool:
    """Check whether an array has a valid value: neither fill, nor NaN, nor an empty text.

    Raises:
        FormatError: If it cannot be read.
        LimitError: If it has too many elements, or the time is over.
    """
    if array.size > MOST_ELEMENTS:
        raise SwatheError(
            f"array {array.path}: expected at most {count_text(MOST_ELEMENTS, 'element')}, found "
            f"{array.size:,}"
        )
    for start, stop in _blocks(array.shape, BLOCK_ELEMENTS):
        check_time.check(array.path)
        data = array.read(start, stop)
        values = masked_values(Variable(data, array.dims, array.attrs), array.fill)
        valid = values.compressed()
        if valid.dtype.kind == "f":
            valid = valid[np.isfinite(valid)]
        elif valid.dtype.kind in "SU":
            valid = valid[valid != valid.dtype.type()]
        if valid.size:
            return True
    return False


def _blocks(shape: Sequence[int], most: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the first and last elements of blocks of an array, each with `most` at most."""
    steps = []
    left = most
    for length in reversed(shape):
        steps.append(min(max(1, length), max(1, left)))
        left //= max(1, length)
    steps.reverse()
    if not math.prod(shape):
        return
    ranges = [range(0, length, step) for length, step in zip(shape, steps, strict=True)]
    for start in itertools.product(*ranges):
        stop = [
            min(first + step, length)
            for first, step, length in zip(start, steps, shape, strict=True)
        ]
        yield list(start), stop
