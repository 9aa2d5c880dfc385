"""Sections of the dumps of runs, read within limits."""

from __future__ import annotations

import io
import math
import re
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from swathe.core.errors import LimitError, NoSuchRunError, RegionError
from swathe.files.preview import Stretch, grey
from swathe.portal.pictures import MOST_PIXELS, check_limits, png_of, room
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.reading.stored_array import StoredArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord

Index: TypeAlias = tuple[int | slice, ...]
AXIS = re.compile(r"(-?\d{1,15})|(-?\d{1,15})?:(-?\d{1,15})?")
MOST_BYTES = 1 << 28
"""Chunks that a section touches, at most, bytes: they are read whole."""
LONGEST_INDEX = 1000


@dataclass(frozen=True)
class Section:
    """A part of an array of a run at one iteration; nothing is read before it is asked for.

    Attributes:
        dump: where the iteration lies.
        settings: those of the array.
        index: whole numbers and slices, one for each axis.
    """

    catalog: Catalog
    run: RunRecord
    array: RunArrayRecord
    dump: DumpRecord
    settings: ArraySettings
    index: Index

    @property
    def label(self) -> str:
        """Return its name for users: `NAME@NUMBER, ARRAY[ITERATION]`."""
        return f"{self.run.label}, {self.array.name}[{self.dump.iteration}]"

    @property
    def tag(self) -> str:
        """Return what changes when its elements may have changed."""
        return f"{self.run.id}-{self.array.id}-{self.dump.iteration}-{self.dump.at.timestamp()}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of its axes."""
        axes = zip(self.index, self.settings.shape, strict=True)
        return tuple(
            len(range(*each.indices(length))) for each, length in axes if isinstance(each, slice)
        )

    def read(self) -> NDArray[Any]:
        """Return its elements.

        Raises:
            LimitError: If it is too large, or other users read too much at the same time.
            NotFoundError, AccessError, SourceError, FormatError: If it cannot be read.
        """
        touched_bytes = self._touched_bytes()
        if touched_bytes > MOST_BYTES:
            raise LimitError(
                f"{self.label}: expected a section in chunks of at most {MOST_BYTES} bytes, found "
                f"{touched_bytes}; read it with swathe.open_run"
            )
        # Room is counted in pixels of pictures; 8 bytes count as one.
        with room.reserve(-(-touched_bytes // 8), self.label):
            catalog = self.catalog
            dumps = StoredArray(self.run, self.array, [self.dump], (), lambda: nullcontext(catalog))
            return dumps[self.dump.iteration][self.index]

    def _touched_bytes(self) -> int:
        sharding = self.settings.sharding
        chunks = 1
        axes = zip(self.index, self.settings.shape, sharding.chunk_shape, strict=True)
        for each, length, width in axes:
            if isinstance(each, slice):
                positions = range(*each.indices(length))
                chunks *= positions[-1] // width - positions[0] // width + 1 if positions else 0
        return chunks * math.prod(sharding.chunk_shape) * sharding.dtype.itemsize

    def npy(self) -> bytes:
        """Return it as a file of NumPy; errors are those of `read`."""
        file = io.BytesIO()
        np.save(file, self.read(), allow_pickle=False)
        return file.getvalue()

    def png(self, stretch: Stretch, low: float | None, high: float | None, size: int) -> bytes:
        """Return a picture of a plane, its longer side `size` pixels; the first axis is upwards.

        Raises:
            RegionError: If it has not two axes, is too large, or `low` is not below `high`.
        """
        from PIL import Image

        check_limits(low, high)
        shape, kind = self.shape, self.settings.sharding.dtype.kind
        if len(shape) != 2 or 0 in shape or math.prod(shape) > MOST_PIXELS or kind == "c":
            raise RegionError(
                f"{self.label}: expected two axes of at most {MOST_PIXELS} real numbers, found "
                f"{self.settings.dtype} of {shape}"
            )
        return png_of(Image.fromarray(grey(self.read(), stretch, low, high)), size)


def section_of(
    catalog: Catalog, run: RunRecord, array_name: str, iteration: int, index: str
) -> Section:
    """Return a section of an array at one iteration.

    Args:
        catalog: catalogue of the run.
        run: the run, which the user may read.
        array_name: name of the array.
        iteration: the iteration.
        index: as in brackets of NumPy, `64,:,:`; empty: the plane in the middle.

    Raises:
        NoSuchRunError: If the run has no such array, or the iteration was not written.
        RegionError: If the index is invalid, or the array is of mode append.
    """
    array = array_of(catalog, run, array_name)
    dump = catalog.dump(array.id, iteration)
    if dump is None:
        raise NoSuchRunError(
            f"{run.label}, {array.name}: expected an iteration that was written, found {iteration}"
        )
    settings = ArraySettings.of_record(array.settings)
    if settings.mode == "append":
        raise RegionError(
            f"{run.label}, {array.name}: its mode is append; read its rows with swathe.open_run"
        )
    text = index or middle_of(settings.shape)
    return Section(catalog, run, array, dump, settings, parse_index(text, settings.shape))


def array_of(catalog: Catalog, run: RunRecord, name: str) -> RunArrayRecord:
    """Return an array of a run by its name.

    Raises:
        NoSuchRunError: If it has none of this name.
    """
    array = next((each for each in catalog.run_arrays(run.id) if each.name == name), None)
    if array is None:
        raise NoSuchRunError(f"{run.label}: expected an array of it, found {name[:100]!r}")
    return array


def middle_of(shape: tuple[int, ...]) -> str:
    """Return the index of the plane of the last two axes that is in the middle of the others."""
    return ",".join([*(str(length // 2) for length in shape[:-2]), *([":"] * len(shape[-2:]))])


def parse_index(text: str, shape: tuple[int, ...]) -> Index:
    """Return an index by its text, `64,:,0:32`; one part for each axis.

    Raises:
        RegionError: If it is none, or out of range.
    """
    parts = text[:LONGEST_INDEX].replace(" ", "").split(",")
    index: list[int | slice] = []
    for part, length in zip(parts, shape, strict=False):
        match = AXIS.fullmatch(part)
        if match is None:
            break
        if match[1] is None:
            first, last = (int(each) if each else None for each in match.group(2, 3))
            index.append(slice(first, last))
        elif -length <= int(match[1]) < length:
            index.append(int(match[1]))
        else:
            raise RegionError(f"index: expected less than {length}, found {part}")
    if len(index) != len(shape) or len(parts) != len(shape):
        raise RegionError(
            f"index: expected a number, ':' or FIRST:LAST for each of {len(shape)} axes, found "
            f"{text[:80]!r}"
        )
    return tuple(index)
